// SPDX-License-Identifier: Apache-2.0
// ConvInteger and QLinearConv: rows of weights (signed) with panels of output positions
// (unsigned), for each image and group.
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "core/base/parallel.h"
#include "core/base/status.h"
#include "core/ops/conv/conv_geometry.h"
#include "core/ops/cpu/adapt.h"
#include "core/ops/movement/movement.h"
#include "core/ops/quantize/byte_planes.h"
#include "core/ops/quantize/granularity.h"
#include "core/ops/quantize/integer_gemm.h"
#include "core/ops/quantize/quantize.h"
#include "core/ops/quantize/requantize.h"

namespace onward {
namespace {

constexpr int64_t kWorkPerThread = int64_t{1} << 20;  // products

bool IsByte(DType dtype) { return dtype == DType::kInt8 || dtype == DType::kUint8; }

// Outputs [output, output + n) of a channel's plane are the sums from `at` on.
struct Segment {
  int64_t at, output, n;
};

// Receives the corrected sums of one channel; kPanelColumns of them can be read.
using Receive = std::function<void(int64_t image, int64_t channel, const int32_t* sums,
                                   absl::Span<const Segment> segments)>;

class Convolution {
 public:
  Convolution(ConvGeometry geometry, BytePlanes planes, ByteOperand x, ByteOperand w)
      : geometry_(std::move(geometry)),
        planes_(std::move(planes)),
        x_(x),
        w_(w),
        gemm_(static_cast<int64_t>(planes_.offsets().size()), IntegerGemm::Side::kColumns) {
    panel_ = work_.Add(slots_ * gemm_.panel_bytes());
    if (!planes_.as_it_is()) plane_ = work_.Add(planes_.bytes());
  }

  const ConvGeometry& geometry() const { return geometry_; }
  size_t workspace_bytes() const { return work_.bytes(); }

  void PackBeforehand(const Tensor& w) {
    kept_ = std::make_shared<std::vector<uint8_t>>(row_bytes());
    kept_sums_ = std::make_shared<std::vector<int32_t>>(geometry_.out_channels);
    PackWeights(w, kept_->data(), kept_sums_->data());
  }
  void PackAtRuns() {
    rows_ = work_.Add(row_bytes());
    row_sums_ = work_.Add(geometry_.out_channels * sizeof(int32_t));
  }

  void Run(const KernelCall& call, const Tensor& x, const Tensor& w, const Tensor* x_zero,
           const Tensor* w_zero, const Receive& receive) const;

 private:
  struct Weights {
    const uint8_t* rows;
    const int32_t* sums;
    std::vector<int32_t> zeros;  // of each row
    std::vector<uint8_t> ones;   // empty where no zero point needs the columns' sums
  };

  size_t row_bytes() const { return geometry_.out_channels * gemm_.row_bytes(); }
  void PackWeights(const Tensor& w, uint8_t* rows, int32_t* sums) const {
    for (int64_t m = 0; m < geometry_.out_channels; ++m) {
      sums[m] = gemm_.PackRow(w.data<uint8_t>() + m * gemm_.depth(), w_.flip(),
                              rows + m * gemm_.row_bytes());
    }
  }
  void RunPanel(const Weights& weights, int64_t image, int64_t group, int64_t position, int64_t n,
                int32_t x_zero, const uint8_t* panel, const Receive& receive) const;

  ConvGeometry geometry_;
  BytePlanes planes_;
  ByteOperand x_, w_;
  IntegerGemm gemm_;
  int64_t slots_ = Threads();
  WorkspacePlan work_;
  size_t panel_ = 0, plane_ = 0, rows_ = 0, row_sums_ = 0;
  std::shared_ptr<std::vector<uint8_t>> kept_;
  std::shared_ptr<std::vector<int32_t>> kept_sums_;
};

void Convolution::RunPanel(const Weights& weights, int64_t image, int64_t group, int64_t position,
                           int64_t n, int32_t x_zero, const uint8_t* panel,
                           const Receive& receive) const {
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

void Convolution::Run(const KernelCall& call, const Tensor& x, const Tensor& w,
                      const Tensor* x_zero, const Tensor* w_zero, const Receive& receive) const {
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

// Any geometry, one output after the other.
void RunByDefinition(const ConvGeometry& g, const Tensor& x, const Tensor& w, const Tensor* x_zero,
                     const Tensor* w_zero, const ByteOperand& of_x, const ByteOperand& of_w,
                     const Receive& receive) {
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

struct Inputs {
  int x, w, x_zero, w_zero;
};

// Runs the convolution of a call and hands its sums on.
using RunConvolution = std::function<void(const KernelCall& call, const Receive& receive)>;

struct Prepared {
  ConvGeometry geometry;
  size_t workspace_bytes = 0;
  RunConvolution run;
};

absl::Status CheckCount(const KernelRequest& request, int input, int64_t channels) {
  if (!request.HasInput(input)) return absl::OkStatus();
  const Shape& shape = request.in(input);
  if (shape.elements() == 1 || (shape.rank() == 1 && shape[0] == channels && channels > 0)) {
    return absl::OkStatus();
  }
  return NodeError(request.node,
                   absl::StrCat("input ", input, " has shape ", shape.ToString(),
                                ", expected one element", channels > 1 ? " or " : "",
                                channels > 1 ? absl::StrCat(channels, ", one per channel") : ""));
}

absl::StatusOr<Prepared> Prepare(const KernelRequest& request, const Inputs& at) {
  for (int i : {at.x, at.w}) {
    if (!request.HasInput(i)) return NodeError(request.node, absl::StrCat("needs input ", i));
    if (!IsByte(request.inputs[i].dtype)) {
      return NodeError(request.node, absl::StrCat("input ", i, " must be int8 or uint8"));
    }
  }
  ONWARD_RETURN_IF_ERROR(CheckSameType(request, at.x, {at.x_zero}));
  ONWARD_RETURN_IF_ERROR(CheckSameType(request, at.w, {at.w_zero}));
  Prepared prepared;
  ONWARD_ASSIGN_OR_RETURN(prepared.geometry,
                          GeometryOfConv(request.node, request.in(at.x), request.in(at.w)));
  const ConvGeometry& g = prepared.geometry;
  ONWARD_RETURN_IF_ERROR(CheckCount(request, at.x_zero, 1));
  ONWARD_RETURN_IF_ERROR(CheckCount(request, at.w_zero, g.out_channels));
  const ByteOperand x{request.inputs[at.x].dtype == DType::kInt8, false};
  const ByteOperand w{request.inputs[at.w].dtype == DType::kInt8, true};
  std::optional<BytePlanes> planes = BytePlanes::Of(g);
  if (!planes.has_value() || planes->offsets().empty()) {
    prepared.run = [g, at, x, w](const KernelCall& call, const Receive& receive) {
      RunByDefinition(g, *call.inputs[at.x], *call.inputs[at.w], InputAt(call.inputs, at.x_zero),
                      InputAt(call.inputs, at.w_zero), x, w, receive);
    };
    return prepared;
  }
  auto convolution = std::make_shared<Convolution>(g, *std::move(planes), x, w);
  if (request.inputs[at.w].constant != nullptr) {
    convolution->PackBeforehand(*request.inputs[at.w].constant);
  } else {
    convolution->PackAtRuns();
  }
  prepared.workspace_bytes = convolution->workspace_bytes();
  prepared.run = [convolution, at](const KernelCall& call, const Receive& receive) {
    convolution->Run(call, *call.inputs[at.x], *call.inputs[at.w], InputAt(call.inputs, at.x_zero),
                     InputAt(call.inputs, at.w_zero), receive);
  };
  return prepared;
}

absl::StatusOr<Kernel> MakeInteger(const KernelRequest& request) {
  ONWARD_ASSIGN_OR_RETURN(Prepared prepared, Prepare(request, {0, 1, 2, 3}));
  if (request.outputs[0].dtype != DType::kInt32) return NodeError(request.node, "y must be int32");
  Kernel kernel;
  kernel.workspace_bytes = prepared.workspace_bytes;
  kernel.run = [prepared](const KernelCall& call) {
    const ConvGeometry& g = prepared.geometry;
    int32_t* y = call.outputs[0]->data<int32_t>();
    if (call.outputs[0]->elements() == 0) return absl::OkStatus();
    prepared.run(call, [&](int64_t image, int64_t channel, const int32_t* sums,
                           absl::Span<const Segment> segments) {
      int32_t* plane = y + (image * g.out_channels + channel) * g.window.out_elements();
      for (const Segment& s : segments) std::copy_n(sums + s.at, s.n, plane + s.output);
    });
    return absl::OkStatus();
  };
  return kernel;
}

// y = saturate(round((sum + bias) * x_scale * w_scale / y_scale) + y_zero)
template <typename T>
void RunQLinear(const Prepared& prepared, const KernelCall& call) {
  const ConvGeometry& g = prepared.geometry;
  const std::vector<float> w_scales = FloatsOf(*call.inputs[4]);
  const float x_scale = FloatsOf(*call.inputs[1])[0], y_scale = FloatsOf(*call.inputs[6])[0];
  std::vector<float> scales(g.out_channels);
  for (size_t m = 0; m < scales.size(); ++m) {
    scales[m] = x_scale * w_scales[m % w_scales.size()] / y_scale;
  }
  const float zero = static_cast<float>(*call.inputs[7]->data<T>());
  const Tensor* bias = InputAt(call.inputs, 8);
  T* y = call.outputs[0]->data<T>();
  if (call.outputs[0]->elements() == 0) return;
  prepared.run(call, [&](int64_t image, int64_t channel, const int32_t* sums,
                         absl::Span<const Segment> segments) {
    T panel[kPanelColumns];
    RequantizePanel(sums, bias == nullptr ? 0 : bias->data<int32_t>()[channel], &scales[channel],
                    true, zero, panel);
    T* plane = y + (image * g.out_channels + channel) * g.window.out_elements();
    for (const Segment& s : segments) std::copy_n(panel + s.at, s.n, plane + s.output);
  });
}

absl::StatusOr<Kernel> MakeQLinear(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 8));
  ONWARD_ASSIGN_OR_RETURN(Prepared prepared, Prepare(request, {0, 3, 2, 5}));
  const int64_t channels = prepared.geometry.out_channels;
  for (int i : {1, 6, 7}) ONWARD_RETURN_IF_ERROR(CheckCount(request, i, 1));
  ONWARD_RETURN_IF_ERROR(CheckCount(request, 4, channels));
  const DType dtype = request.outputs[0].dtype;
  if (!IsByte(dtype) || request.inputs[7].dtype != dtype) {
    return NodeError(request.node, "y and y_zero_point must be int8 or uint8, both the same");
  }
  for (int i : {1, 4, 6}) {
    if (!IsFloating(request.inputs[i].dtype)) return NodeError(request.node, "scales are floats");
  }
  if (request.HasInput(8) &&
      (request.inputs[8].dtype != DType::kInt32 || request.in(8) != Shape{channels})) {
    return NodeError(request.node, absl::StrCat("B must be int32 with ", channels, " elements"));
  }
  Kernel kernel;
  kernel.workspace_bytes = prepared.workspace_bytes;
  kernel.run = [prepared, dtype](const KernelCall& call) {
    if (dtype == DType::kInt8) {
      RunQLinear<int8_t>(prepared, call);
    } else {
      RunQLinear<uint8_t>(prepared, call);
    }
    return absl::OkStatus();
  };
  return kernel;
}

absl::StatusOr<Kernel> WithShapes(const KernelRequest& request, int x, int w,
                                  const KernelFactory& factory) {
  const ShapeRule rule = [x, w](const KernelRequest& r, int) {
    return GeometryOfConv(r.node, r.in(x), r.in(w))->y();
  };
  return Adapt(factory, rule)(request);
}

}  // namespace

absl::StatusOr<Kernel> MakeConvInteger(const KernelRequest& request) {
  return WithShapes(request, 0, 1, MakeInteger);
}

absl::StatusOr<Kernel> MakeQLinearConv(const KernelRequest& request) {
  return WithShapes(request, 0, 3, MakeQLinear);
}

}  // namespace onward
