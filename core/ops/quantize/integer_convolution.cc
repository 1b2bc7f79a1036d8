// SPDX-License-Identifier: Apache-2.0
#include "core/ops/quantize/integer_convolution.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"

namespace onward {
namespace {

constexpr int64_t kWorkPerThread = int64_t{1} << 20;  // products

}  // namespace

void IntegerConvolution::RunPanel(const Weights& weights, int64_t image, int64_t group,
                                  int64_t position, int64_t n, int32_t x_zero, const uint8_t* panel,
                                  const ReceiveSums& receive) const {
  alignas(64) int32_t tile[kMaxRowBlock * kPanelColumns], zeros[kPanelColumns];
  alignas(64) int32_t column_sums[kPanelColumns];
  std::fill_n(zeros, kPanelColumns, x_zero);
  absl::InlinedVector<Segment, 8> segments;
  planes_.ForOutputs(position, n, [&](int64_t at, int64_t output, int64_t length) {
    segments.push_back({at - position, output, length});
  });
  if (!weights.ones.empty()) gemm_.Multiply(weights.ones.data(), 1, panel, column_sums);
  const int64_t channels = geometry_.out_channels / geometry_.groups;
  for (int64_t m = 0; m < channels; m += kMaxRowBlock) {
    const int64_t count = std::min(kMaxRowBlock, channels - m);
    const int64_t first = group * channels + m;
    gemm_.Multiply(weights.rows + first * gemm_.row_bytes(), count, panel, tile);
    for (int64_t i = 0; i < count; ++i) {
      int32_t* sums = tile + i * kPanelColumns;
      RemoveZeroPoints(sums, n, weights.zeros[first + i], weights.sums[first + i], zeros,
                       column_sums, gemm_.depth(), sums);
      receive(image, first + i, sums, segments);
    }
  }
}

// One output channel per group, and no zero points of weights.
void IntegerConvolution::RunDepthwise(const Weights& weights, const Tensor& w, int64_t image,
                                      const uint8_t* plane, int32_t x_zero,
                                      const ReceiveSums& receive) const {
  const int64_t depth = gemm_.depth(), channels = geometry_.in_channels / geometry_.groups;
  const int64_t columns = planes_.columns_out();
  const int64_t work = (depth + 4) * planes_.rows_out() * (columns + kLineOutputs);
  ParallelFor(geometry_.groups, kWorkPerThread / work + 1, [&](int64_t begin, int64_t end) {
    alignas(32) int32_t sums[kPanelColumns];
    for (int64_t m = begin; m < end; ++m) {
      const DepthwiseWeights taps(w_, w, m * depth, depth);
      const uint8_t* from = plane + m * channels * planes_.channel_bytes();
      const auto start = static_cast<int32_t>(0 - static_cast<uint32_t>(x_zero) *
                                                      static_cast<uint32_t>(weights.sums[m]));
      for (int64_t row = 0; row < planes_.rows_out(); ++row) {
        for (int64_t column = 0; column < columns; column += kLineOutputs) {
          taps.Sum(from + row * planes_.line() + column, planes_.offsets().data(), x_.flip(), start,
                   sums);
          const int64_t output = row * columns + column;
          const Segment segment = {0, output, std::min(kLineOutputs, columns - column),
                                   planes_.rows_out() * columns - output};
          receive(image, m, sums, {&segment, 1});
        }
      }
    }
  });
}

void IntegerConvolution::Run(const KernelCall& call, const Tensor& x, const Tensor& w,
                             const Tensor* x_zero, const Tensor* w_zero,
                             const ReceiveSums& receive) const {
  const ConvGeometry& g = geometry_;
  Weights weights;
  if (kept_ != nullptr) {
    weights.rows = kept_->data();
    weights.sums = kept_sums_->data();
  } else {
    PackWeights(w, At<uint8_t>(call.workspace, rows_), At<int32_t>(call.workspace, row_sums_));
    weights.rows = At<uint8_t>(call.workspace, rows_);
    weights.sums = At<int32_t>(call.workspace, row_sums_);
  }
  const int64_t w_zeros = w_zero == nullptr ? 1 : w_zero->elements();
  bool any = false;
  for (int64_t m = 0; m < g.out_channels; ++m) {
    weights.zeros.push_back(w_.Number(w_zero, m % w_zeros));
    any |= weights.zeros.back() != 0;
  }
  if (any) {
    weights.ones.resize(gemm_.row_bytes());
    gemm_.PackOnes(weights.ones.data());
  }
  const uint8_t padding = x_zero == nullptr ? 0 : *x_zero->data<uint8_t>();
  const int32_t zero = x_.Number(x_zero, 0);
  const int64_t positions = planes_.positions();
  const int64_t panels = (positions + kPanelColumns - 1) / kPanelColumns;
  const int64_t rows = g.out_channels / g.groups + 4;
  const int64_t grain = kWorkPerThread / (rows * kPanelColumns * (gemm_.depth() + 8)) + 1;
  const int64_t image_bytes = g.in_channels * g.window.in_elements();
  auto* plane = At<uint8_t>(call.workspace, plane_);
  for (int64_t image = 0; image < g.batch; ++image) {
    const uint8_t* from = x.data<uint8_t>() + image * image_bytes;
    if (!planes_.as_it_is()) {
      ParallelFor(
          g.in_channels, 65536 / planes_.channel_bytes() + 1,
          [&](int64_t begin, int64_t end) { planes_.Fill(from, begin, end, padding, plane); });
    }
    const uint8_t* base = planes_.as_it_is() ? from : plane;
    if (IsDepthwise(weights)) {
      RunDepthwise(weights, w, image, base, zero, receive);
      continue;
    }
    const int64_t tasks = g.groups * panels;
    const int64_t worth = (tasks - 1) / grain + 1, threads = std::min(slots_, worth);
    const int64_t items = ItemsFor(worth, threads);
    ParallelItems(items, threads, [&](int64_t item, int64_t slot) {
      uint8_t* panel = At<uint8_t>(call.workspace, panel_) + slot * gemm_.panel_bytes();
      for (int64_t task = tasks * item / items; task < tasks * (item + 1) / items; ++task) {
        const int64_t group = task / panels, position = task % panels * kPanelColumns;
        const int64_t n = std::min(kPanelColumns, positions - position);
        const int64_t channel = group * (g.in_channels / g.groups);
        gemm_.PackPanel(base + channel * planes_.channel_bytes() + position,
                        planes_.offsets().data(), n, x_.flip(), panel);
        RunPanel(weights, image, group, position, n, zero, panel, receive);
      }
    });
  }
}

void RunByDefinition(const ConvGeometry& g, const Tensor& x, const Tensor& w, const Tensor* x_zero,
                     const Tensor* w_zero, const ByteOperand& of_x, const ByteOperand& of_w,
                     const ReceiveSums& receive) {
  const Window& window = g.window;
  const int64_t channels = g.in_channels / g.groups, taps = window.kernel_elements();
  const int64_t inside = window.in_elements(), outputs = window.out_elements();
  const int64_t w_zeros = w_zero == nullptr ? 1 : w_zero->elements();
  const int32_t x_offset = of_x.Number(x_zero, 0);
  const int64_t work = channels * taps + 1;
  ParallelFor(g.batch * g.out_channels * outputs, kWorkPerThread / work + 1,
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  const int64_t output = i % outputs, m = i / outputs % g.out_channels;
                  const int64_t image = i / outputs / g.out_channels;
                  const int64_t group = m / (g.out_channels / g.groups);
                  const int32_t w_offset = of_w.Number(w_zero, m % w_zeros);
                  uint32_t sum = 0;
                  for (int64_t t = 0; t < taps; ++t) {
                    int64_t at = 0, stride = 1, rest_out = output, rest_tap = t;
                    bool padding = false;
                    for (int d = window.rank() - 1; d >= 0; --d) {
                      const int64_t o = rest_out % window.out[d], k = rest_tap % window.kernel[d];
                      rest_out /= window.out[d];
                      rest_tap /= window.kernel[d];
                      const int64_t p =
                          o * window.strides[d] - window.pads_begin[d] + k * window.dilations[d];
                      padding |= p < 0 || p >= window.in[d];
                      at += p * stride;
                      stride *= window.in[d];
                    }
                    if (padding) continue;
                    for (int64_t c = 0; c < channels; ++c) {
                      const int64_t plane = image * g.in_channels + group * channels + c;
                      const int32_t a = of_x.Number(&x, plane * inside + at) - x_offset;
                      const int32_t b = of_w.Number(&w, (m * channels + c) * taps + t) - w_offset;
                      sum += static_cast<uint32_t>(a * b);
                    }
                  }
                  const int32_t corrected[kPanelColumns] = {static_cast<int32_t>(sum)};
                  const Segment segment = {0, output, 1};
                  receive(image, m, corrected, {&segment, 1});
                }
              });
}

}  // namespace onward
