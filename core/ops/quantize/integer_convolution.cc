// SPDX-License-Identifier: Apache-2.0
#include "core/ops/quantize/integer_convolution.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"

namespace onward {
namespace {

constexpr int64_t kWorkPerThread = int64_t{1} << 20;  // products

// Sums of one plane of outputs, in order, handed on many at a time.
class SumsInOrder {
 public:
  explicit SumsInOrder(int64_t outputs) : outputs_(outputs) {}

  // Where the next sums go; kLineOutputs have room.
  int32_t* next() { return sums_ + held_; }
  template <typename HandOn>
  void Add(int64_t n, const HandOn& hand_on) {
    held_ += n;
    const bool all = handed_ + held_ == outputs_;
    if (held_ < kHeld && !all) return;
    // Whole panels; the last ones wait for those that follow them.
    const int64_t count = all ? held_ : held_ / kPanelColumns * kPanelColumns;
    hand_on(sums_, Segment{0, handed_, count, outputs_ - handed_});
    handed_ += count;
    held_ -= count;
    std::copy_n(sums_ + count, held_, sums_);
  }

 private:
  static constexpr int64_t kHeld = 512;
  alignas(32) int32_t sums_[kHeld + 2 * kPanelColumns];
  const int64_t outputs_;
  int64_t held_ = 0, handed_ = 0;
};

}  // namespace

void IntegerConvolution::RunPanels(const Weights& weights, int64_t image, int64_t group,
                                   int64_t position, int64_t n, const uint8_t* panels,
                                   const ReceiveSums& receive) const {
  absl::InlinedVector<Segment, 8> segments;
  planes_.ForOutputs(position, n, [&](int64_t at, int64_t output, int64_t length) {
    segments.push_back({at - position, output, length});
  });
  if (segments.empty()) return;
  // Whole panels are read from the beginning of a segment on.
  alignas(64) int32_t tile[kMaxRowBlock * kMostColumns + kPanelColumns], column_sums[kMostColumns];
  const int64_t channels = geometry_.out_channels / geometry_.groups;
  const auto multiply = [&](const uint8_t* rows, int64_t count, const int32_t* starts,
                            int32_t* to) {
    for (int64_t at = 0; at < n; at += kPanelColumns) {
      gemm_.Multiply(rows, count, panels + at / kPanelColumns * gemm_.panel_bytes(), starts,
                     to + at, kMostColumns);
    }
  };
  if (!weights.ones.empty()) multiply(weights.ones.data(), 1, kNoStarts, column_sums);
  for (int64_t m = 0; m < channels; m += kMaxRowBlock) {
    const int64_t count = std::min(kMaxRowBlock, channels - m);
    const int64_t first = group * channels + m;
    multiply(weights.rows + first * gemm_.row_bytes(), count, &weights.starts[first], tile);
    for (int64_t i = 0; i < count; ++i) {
      int32_t* sums = tile + i * kMostColumns;
      if (weights.zeros[first + i] != 0) {
        RemoveRowZero(weights.zeros[first + i], column_sums, n, sums);
      }
      receive(image, first + i, sums, segments);
    }
  }
}

// One output channel per group.
void IntegerConvolution::RunDepthwise(const KernelCall& call, const Tensor& x, const Tensor& w,
                                      const Tensor* x_zero, const Tensor* w_zero,
                                      const ReceiveSums& receive) const {
  const DepthwiseLayout& layout = *depthwise_;
  const int64_t depth = gemm_.depth(), channels = geometry_.in_channels / geometry_.groups;
  const int64_t rows = layout.rows_out(), columns = layout.columns_out();
  const int64_t in_bytes = channels * geometry_.window.in_elements();
  const uint8_t padding = x_zero == nullptr ? 0 : *x_zero->data<uint8_t>();
  const auto zero = static_cast<uint32_t>(x_.Number(x_zero, 0));
  const int64_t w_zeros = w_zero == nullptr ? 1 : w_zero->elements();
  const auto run_group = [&](int64_t image, int64_t m, uint8_t* plane) {
    const uint8_t* from = x.data<uint8_t>() + (image * geometry_.groups + m) * in_bytes;
    layout.planes().Fill(from, 0, channels, padding, plane);
    const DepthwiseWeights taps(layout, w_, w, w_.Number(w_zero, m % w_zeros), m * depth);
    const auto start = static_cast<int32_t>(0 - zero * taps.sum());
    SumsInOrder sums(rows * columns);
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = 0; column < columns; column += kLineOutputs) {
        const int64_t n = std::min(kLineOutputs, columns - column);
        const uint8_t* at = plane + layout.RowBegin(row) + layout.ColumnBegin(column);
        taps.Sum(at, n, x_.flip(), start, sums.next());
        sums.Add(n, [&](const int32_t* values, const Segment& segment) {
          receive(image, m, values, {&segment, 1});
        });
      }
    }
  };
  const int64_t tasks = geometry_.batch * geometry_.groups;
  const int64_t grain = kWorkPerThread / ((depth + 4) * rows * columns + in_bytes + 1) + 1;
  const int64_t worth = (tasks - 1) / grain + 1, threads = std::min(slots_, worth);
  const int64_t items = ItemsFor(worth, threads);
  ParallelItems(items, threads, [&](int64_t item, int64_t slot) {
    uint8_t* plane = At<uint8_t>(call.workspace, plane_) + slot * layout.group_bytes();
    for (int64_t task = tasks * item / items; task < tasks * (item + 1) / items; ++task) {
      run_group(task / geometry_.groups, task % geometry_.groups, plane);
    }
  });
}

void IntegerConvolution::Run(const KernelCall& call, const Tensor& x, const Tensor& w,
                             const Tensor* x_zero, const Tensor* w_zero,
                             const ReceiveSums& receive) const {
  if (depthwise_.has_value()) return RunDepthwise(call, x, w, x_zero, w_zero, receive);
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
  const int32_t zero = x_.Number(x_zero, 0);
  for (int64_t m = 0; m < g.out_channels; ++m) {
    weights.zeros.push_back(w_.Number(w_zero, m % w_zeros));
    weights.starts.push_back(
        OfColumnZero(zero, weights.zeros.back(), weights.sums[m], gemm_.depth()));
    any |= weights.zeros.back() != 0;
  }
  if (any) {
    weights.ones.resize(gemm_.row_bytes());
    gemm_.PackOnes(weights.ones.data());
  }
  const uint8_t padding = x_zero == nullptr ? 0 : *x_zero->data<uint8_t>();
  const int64_t positions = planes_.positions(), columns = stretch_ * kPanelColumns;
  const int64_t stretches = (positions + columns - 1) / columns;
  const int64_t rows = g.out_channels / g.groups + 4;
  const int64_t grain = kWorkPerThread / (rows * columns * (gemm_.depth() + 8)) + 1;
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
    const int64_t tasks = g.groups * stretches;
    const int64_t worth = (tasks - 1) / grain + 1, threads = std::min(slots_, worth);
    const int64_t items = ItemsFor(worth, threads);
    ParallelItems(items, threads, [&](int64_t item, int64_t slot) {
      uint8_t* panels = At<uint8_t>(call.workspace, panel_) + slot * stretch_ * gemm_.panel_bytes();
      for (int64_t task = tasks * item / items; task < tasks * (item + 1) / items; ++task) {
        const int64_t group = task / stretches, position = task % stretches * columns;
        const int64_t n = std::min(columns, positions - position);
        const int64_t channel = group * (g.in_channels / g.groups);
        const uint8_t* first = base + channel * planes_.channel_bytes() + position;
        for (int64_t at = 0; at < n; at += kPanelColumns) {
          gemm_.PackPanel(first + at, planes_.offsets().data(), std::min(kPanelColumns, n - at),
                          x_.flip(), panels + at / kPanelColumns * gemm_.panel_bytes());
        }
        RunPanels(weights, image, group, position, n, panels, receive);
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
