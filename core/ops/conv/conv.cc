// SPDX-License-Identifier: Apache-2.0
// Convolutions on plain layouts, for float and double, in 1 to 3 dimensions:
// patches of the input are laid out as columns of a matrix (a cache-sized piece
// at a time), and Eigen multiplies.
//
//   forward   Y  = W * columns(X)
//   data      dX = fold(W^T * dY)
//   weights   dW = sum over images of dY * columns(X)^T
#include "core/ops/conv/conv.h"

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/parallel.h"
#include "core/base/status.h"
#include "core/device/cpu.h"
#include "core/graph/graph.h"
#include "core/ops/conv/conv_direct.h"
#include "core/ops/conv/winograd.h"
#include "core/ops/cpu/adapt.h"
#include "core/ops/cpu/onednn.h"
#include "core/ops/cpu/register.h"
#include "core/tensor/dispatch.h"

namespace onward {
namespace {

constexpr char kTypes[] = "float, double, float16, bfloat16";
constexpr size_t kColumnBytes = 1 << 20;

template <typename T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <typename T>
using Rows = Eigen::Map<Matrix<T>, 0, Eigen::OuterStride<>>;
template <typename T>
using ConstRows = Eigen::Map<const Matrix<T>, 0, Eigen::OuterStride<>>;

// One spatial axis of three (missing ones have size 1).
struct Axis {
  int64_t in = 1, out = 1, kernel = 1, stride = 1, dilation = 1, pad = 0;
};

// The geometry of one group of one image, with the patches that output
// positions [begin, end) need as a matrix of rows() x (end - begin).
class Patches {
 public:
  explicit Patches(const ConvGeometry& g) : channels_(g.in_channels / g.groups) {
    const Window& w = g.window;
    for (int i = 0; i < w.rank(); ++i) {
      axes_[3 - w.rank() + i] = {w.in[i],      w.out[i],       w.kernel[i],
                                 w.strides[i], w.dilations[i], w.pads_begin[i]};
    }
    in_ = w.in_elements();
    kernel_ = w.kernel_elements();
  }

  int64_t rows() const { return channels_ * kernel_; }

  // columns = patches of x.
  template <typename T>
  void Unfold(const T* x, T* columns, int64_t begin, int64_t end) const {
    Walk(begin, end, [&](int64_t channel, int64_t row, const Run& run) {
      T* to = columns + row * (end - begin) + run.at;
      std::fill_n(to, run.first, T{0});
      if (run.last > run.first) {
        const T* from = x + channel * in_ + run.input;
        for (int64_t j = run.first; j < run.last; ++j, from += axes_[2].stride) to[j] = *from;
      }
      std::fill(to + run.last, to + run.count, T{0});
    });
  }

  // x += columns, each where it came from.
  template <typename T>
  void Fold(const T* columns, T* x, int64_t begin, int64_t end) const {
    Walk(begin, end, [&](int64_t channel, int64_t row, const Run& run) {
      if (run.last <= run.first) return;
      const T* from = columns + row * (end - begin) + run.at;
      T* to = x + channel * in_ + run.input;
      for (int64_t j = run.first; j < run.last; ++j, to += axes_[2].stride) *to += from[j];
    });
  }

 private:
  // Consecutive positions on the last axis: columns [at, at + count), of which
  // [first, last) lie inside the input, the first of them on element `input`.
  struct Run {
    int64_t at, count, first, last, input;
  };

  template <typename Body>
  void Walk(int64_t begin, int64_t end, const Body& body) const {
    const auto& [d, h, w] = axes_;
    const int64_t grain = 32768 / std::max<int64_t>(kernel_ * (end - begin), 1) + 1;
    ParallelFor(channels_, grain, [&](int64_t c_begin, int64_t c_end) {
      for (int64_t c = c_begin; c < c_end; ++c) {
        int64_t row = c * kernel_;
        for (int64_t kd = 0; kd < d.kernel; ++kd) {
          for (int64_t kh = 0; kh < h.kernel; ++kh) {
            for (int64_t kw = 0; kw < w.kernel; ++kw, ++row) {
              WalkRow({kd, kh, kw}, begin, end, [&](const Run& run) { body(c, row, run); });
            }
          }
        }
      }
    });
  }

  template <typename Body>
  void WalkRow(const std::array<int64_t, 3>& tap, int64_t begin, int64_t end,
               const Body& body) const {
    const auto& [d, h, w] = axes_;
    const int64_t shift = tap[2] * w.dilation - w.pad;
    for (int64_t p = begin; p < end;) {
      const int64_t ow = p % w.out, line = p / w.out;
      const int64_t id = line / h.out * d.stride + tap[0] * d.dilation - d.pad;
      const int64_t ih = line % h.out * h.stride + tap[1] * h.dilation - h.pad;
      Run run{p - begin, std::min(w.out - ow, end - p), 0, 0, 0};
      if (id >= 0 && id < d.in && ih >= 0 && ih < h.in) {
        const int64_t iw = ow * w.stride + shift;
        run.first = std::min(iw >= 0 ? 0 : (-iw + w.stride - 1) / w.stride, run.count);
        run.last = iw >= w.in ? 0 : std::min((w.in - iw + w.stride - 1) / w.stride, run.count);
        run.last = std::max(run.last, run.first);
        run.input = (id * h.in + ih) * w.in + iw + run.first * w.stride;
      }
      body(run);
      p += run.count;
    }
  }

  std::array<Axis, 3> axes_;
  int64_t channels_, in_, kernel_;
};

// The three passes. Jobs (a group of an image, or a group) are dealt to `parts`
// fixed ranges, each with its own piece of the workspace.
template <typename T>
class PlainConv {
 public:
  explicit PlainConv(const ConvGeometry& g)
      : g_(g),
        patches_(g),
        x_size_(g.in_channels / g.groups * g.window.in_elements()),
        w_size_(g.out_channels / g.groups * patches_.rows()),
        out_(g.window.out_elements()),
        channels_(g.out_channels / g.groups),
        parts_(Threads()) {
    const int64_t row_bytes = std::max<int64_t>(patches_.rows(), 1) * sizeof(T);
    piece_ = std::clamp<int64_t>(kColumnBytes / row_bytes, 8, std::max<int64_t>(out_, 8));
  }

  size_t workspace_bytes() const { return parts_ * part_bytes(); }

  void Forward(const T* x, const T* w, const T* bias, T* y, void* workspace) const {
    ForJobs(g_.batch * g_.groups, workspace, [&](int64_t job, T* columns) {
      const int64_t group = job % g_.groups;
      T* y_job = y + job * channels_ * out_;
      ForPieces([&](int64_t begin, int64_t end) {
        const int64_t n = end - begin;
        patches_.Unfold(x + job * x_size_, columns, begin, end);
        Rows<T> result(y_job + begin, channels_, n, Eigen::OuterStride<>(out_));
        result.noalias() = Weights(w, group) * Columns(columns, n);
      });
      if (bias == nullptr) return;
      for (int64_t c = 0; c < channels_; ++c) {
        T* row = y_job + c * out_;
        const T b = bias[group * channels_ + c];
        for (int64_t i = 0; i < out_; ++i) row[i] += b;
      }
    });
  }

  // `bias` (per channel of dX) serves ConvTranspose.
  void Data(const T* dy, const T* w, const T* bias, T* dx, void* workspace) const {
    const int64_t in_channels = g_.in_channels / g_.groups, in = g_.window.in_elements();
    ForJobs(g_.batch * g_.groups, workspace, [&](int64_t job, T* columns) {
      const int64_t group = job % g_.groups;
      T* dx_job = dx + job * x_size_;
      for (int64_t c = 0; c < in_channels; ++c) {
        std::fill_n(dx_job + c * in, in, bias == nullptr ? T{0} : bias[group * in_channels + c]);
      }
      ForPieces([&](int64_t begin, int64_t end) {
        const int64_t n = end - begin;
        Columns(columns, n).noalias() = Weights(w, group).transpose() * Gradient(dy, job, begin, n);
        patches_.Fold(columns, dx_job, begin, end);
      });
    });
  }

  // `dw` or `db` may be null.
  void WeightGrad(const T* dy, const T* x, T* dw, T* db, void* workspace) const {
    ForJobs(g_.groups, workspace, [&](int64_t group, T* columns) {
      Eigen::Map<Matrix<T>> result(dw == nullptr ? nullptr : dw + group * w_size_, channels_,
                                   dw == nullptr ? 0 : patches_.rows());
      result.setZero();
      if (db != nullptr) std::fill_n(db + group * channels_, channels_, T{0});
      for (int64_t image = 0; image < g_.batch; ++image) {
        const int64_t job = image * g_.groups + group;
        ForPieces([&](int64_t begin, int64_t end) {
          if (dw == nullptr) return;
          const int64_t n = end - begin;
          patches_.Unfold(x + job * x_size_, columns, begin, end);
          result.noalias() += Gradient(dy, job, begin, n) * Columns(columns, n).transpose();
        });
        for (int64_t c = 0; db != nullptr && c < channels_; ++c) {
          db[group * channels_ + c] += Gradient(dy, job, 0, out_).row(c).sum();
        }
      }
    });
  }

 private:
  size_t part_bytes() const { return (piece_ * patches_.rows() * sizeof(T) + 63) / 64 * 64; }

  Eigen::Map<Matrix<T>> Columns(T* columns, int64_t n) const {
    return {columns, patches_.rows(), n};
  }
  Eigen::Map<const Matrix<T>> Weights(const T* w, int64_t group) const {
    return {w + group * w_size_, channels_, patches_.rows()};
  }
  ConstRows<T> Gradient(const T* dy, int64_t job, int64_t begin, int64_t n) const {
    return {dy + job * channels_ * out_ + begin, channels_, n, Eigen::OuterStride<>(out_)};
  }

  template <typename Body>
  void ForPieces(const Body& body) const {
    for (int64_t p = 0; p < out_; p += piece_) body(p, std::min(p + piece_, out_));
  }

  template <typename Body>
  void ForJobs(int64_t jobs, void* workspace, const Body& body) const {
    const auto run = [&](int64_t begin, int64_t end, int64_t part) {
      T* columns = At<T>(workspace, part * part_bytes());
      for (int64_t job = begin; job < end; ++job) body(job, columns);
    };
    // With few jobs the threads share each product instead.
    if (jobs < 2 * parts_) return run(0, jobs, 0);
    ParallelFor(parts_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) run(jobs * p / parts_, jobs * (p + 1) / parts_, p);
    });
  }

  ConvGeometry g_;
  Patches patches_;
  int64_t x_size_, w_size_, out_, channels_, parts_, piece_ = 0;
};

template <typename T>
const T* DataOf(const Tensor* tensor) {
  return tensor == nullptr ? nullptr : tensor->data<T>();
}

const Tensor* InputOrNull(const KernelCall& call, size_t i) {
  return i < call.inputs.size() ? call.inputs[i] : nullptr;
}

// A kernel whose body is body.template operator()<T>(PlainConv<T>, call).
template <typename Body>
absl::StatusOr<Kernel> MakePlain(const KernelRequest& r, const ConvGeometry& g, Body body) {
  for (const ValueSpec& v : r.inputs) {
    if (v.present() && v.dtype != r.inputs[0].dtype) {
      return NodeError(r.node, "all inputs must have the same element type");
    }
  }
  Kernel kernel;
  const bool known = DispatchFloat(r.inputs[0].dtype, [&]<typename T>() {
    const PlainConv<T> conv(g);
    kernel.workspace_bytes = conv.workspace_bytes();
    kernel.run = [conv, body](const KernelCall& call) {
      body.template operator()<T>(conv, call);
      return absl::OkStatus();
    };
  });
  if (!known) return NodeUnimplemented(r.node, "no kernel for this element type");
  return kernel;
}

absl::StatusOr<Kernel> MakePlainConv(const KernelRequest& r) {
  ONWARD_ASSIGN_OR_RETURN(const ConvGeometry g, CheckedConv(r, 0, 1));
  return MakePlain(r, g, []<typename T>(const PlainConv<T>& conv, const KernelCall& call) {
    conv.Forward(call.inputs[0]->data<T>(), call.inputs[1]->data<T>(),
                 DataOf<T>(InputOrNull(call, 2)), call.outputs[0]->data<T>(), call.workspace);
  });
}

absl::StatusOr<Kernel> MakePlainConvTranspose(const KernelRequest& r) {
  ONWARD_ASSIGN_OR_RETURN(const ConvGeometry g, CheckedConvTranspose(r));
  return MakePlain(r, g, []<typename T>(const PlainConv<T>& conv, const KernelCall& call) {
    conv.Data(call.inputs[0]->data<T>(), call.inputs[1]->data<T>(), DataOf<T>(InputOrNull(call, 2)),
              call.outputs[0]->data<T>(), call.workspace);
  });
}

absl::StatusOr<Kernel> MakePlainInputGrad(const KernelRequest& r) {
  ONWARD_ASSIGN_OR_RETURN(const ConvGeometry g, CheckedConvGrad(r, 2, 1));
  return MakePlain(r, g, []<typename T>(const PlainConv<T>& conv, const KernelCall& call) {
    conv.Data(call.inputs[0]->data<T>(), call.inputs[1]->data<T>(), nullptr,
              call.outputs[0]->data<T>(), call.workspace);
  });
}

absl::StatusOr<Kernel> MakePlainWeightGrad(const KernelRequest& r) {
  ONWARD_ASSIGN_OR_RETURN(const ConvGeometry g, CheckedConvGrad(r, 1, 2));
  return MakePlain(r, g, []<typename T>(const PlainConv<T>& conv, const KernelCall& call) {
    const auto output = [&](size_t i) {
      const bool wanted = i < call.outputs.size() && call.outputs[i] != nullptr;
      return wanted ? call.outputs[i]->data<T>() : nullptr;
    };
    conv.WeightGrad(call.inputs[0]->data<T>(), call.inputs[1]->data<T>(), output(0), output(1),
                    call.workspace);
  });
}

absl::Status CheckBias(const KernelRequest& r, int64_t channels) {
  if (!r.HasInput(2) || r.in(2) == Shape{channels}) return absl::OkStatus();
  return NodeError(
      r.node, absl::StrCat("bias of shape ", r.in(2).ToString(), ", expected [", channels, "]"));
}

absl::Status CheckInputs(const KernelRequest& r, int count) {
  for (int i = 0; i < count; ++i) {
    if (!r.HasInput(i)) return NodeError(r.node, absl::StrCat("input ", i, " is missing"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ConvGeometry> CheckedConv(const KernelRequest& r, int x, int w) {
  ONWARD_RETURN_IF_ERROR(CheckInputs(r, 2));
  ONWARD_ASSIGN_OR_RETURN(ConvGeometry g, GeometryOfConv(r.node, r.in(x), r.in(w)));
  ONWARD_RETURN_IF_ERROR(CheckBias(r, g.out_channels));
  return g;
}

absl::StatusOr<ConvGeometry> CheckedConvTranspose(const KernelRequest& r) {
  ONWARD_RETURN_IF_ERROR(CheckInputs(r, 2));
  ONWARD_ASSIGN_OR_RETURN(ConvGeometry g, GeometryOfConvTranspose(r.node, r.in(0), r.in(1)));
  ONWARD_RETURN_IF_ERROR(CheckBias(r, g.in_channels));
  return g;
}

absl::StatusOr<ConvGeometry> CheckedConvGrad(const KernelRequest& r, int x, int w) {
  ONWARD_RETURN_IF_ERROR(CheckInputs(r, 3));
  ONWARD_ASSIGN_OR_RETURN(ConvGeometry g, GeometryOfConv(r.node, r.in(x), r.in(w)));
  if (r.in(0) != g.y()) {
    return NodeError(r.node, absl::StrCat("dY has shape ", r.in(0).ToString(),
                                          ", the convolution gives ", g.y().ToString()));
  }
  return g;
}

namespace {

KernelTable::Entry WinogradEntry(KernelFactory factory) {
  return {"winograd", 1, std::move(factory), "float"};
}

absl::StatusOr<Kernel> MakeWinogradFusedConv(const KernelRequest& r) {
  ONWARD_RETURN_IF_ERROR(CheckWinogradRequest(r));
  ONWARD_ASSIGN_OR_RETURN(const ConvGeometry g, CheckedConv(r, 0, 1));
  if (!WinogradPays(g, ConvPass::kForward)) {
    return NodeUnimplemented(r.node, "not a convolution that Winograd's algorithm speeds up");
  }
  WinogradEpilogue epilogue;
  if (r.HasInput(kResidual)) epilogue.residual_input = kResidual;
  if (const auto bounds = ReadActivation(r.node)) {
    epilogue.low = bounds->low;
    epilogue.high = bounds->high;
  }
  return AnyWinogradConv(r, epilogue);
}

}  // namespace

void RegisterConvKernels(const CpuOptions& options, KernelTable& table) {
  const auto conv = [](const KernelRequest& r, int) -> absl::StatusOr<Shape> {
    ONWARD_ASSIGN_OR_RETURN(const ConvGeometry g, GeometryOfConv(r.node, r.in(0), r.in(1)));
    return g.y();
  };
  const auto transpose = [](const KernelRequest& r, int) -> absl::StatusOr<Shape> {
    ONWARD_ASSIGN_OR_RETURN(const ConvGeometry g,
                            GeometryOfConvTranspose(r.node, r.in(0), r.in(1)));
    return g.x();
  };
  const auto weight_grad = [](const KernelRequest& r, int output) {
    return output == 0 ? r.in(2) : Shape{r.in(2)[0]};
  };
  if (!options.exact_convolutions) {
    table.Add("Conv", WinogradEntry(MakeWinogradConv));
    table.Add("FusedConv", WinogradEntry(MakeWinogradFusedConv), kOnwardDomain);
    table.Add("ConvInputGrad", WinogradEntry(MakeWinogradConvInputGrad), kOnwardDomain);
    table.Add("ConvWeightGrad", WinogradEntry(MakeWinogradConvWeightGrad), kOnwardDomain);
  }
  table.Add("Conv", {"direct", 1, MakeDirectConv, "float"});
  table.Add("FusedConv", {"direct", 1, MakeDirectConv, "float"}, kOnwardDomain);
  table.Add("ConvInputGrad", {"direct", 1, MakeDirectConvInputGrad, "float"}, kOnwardDomain);
  table.Add("ConvWeightGrad", {"direct", 1, MakeDirectConvWeightGrad, "float"}, kOnwardDomain);
  table.Add("Conv", {"onednn", 1, MakeDnnlConv, "float"});
  table.Add("FusedConv", {"onednn", 1, MakeDnnlConv, "float"}, kOnwardDomain);
  table.Add("Conv", Adapted("eigen", 1, MakePlainConv, conv, kTypes));
  table.Add("ConvTranspose", {"onednn", 1, MakeDnnlConvTranspose, "float"});
  table.Add("ConvTranspose", Adapted("eigen", 1, MakePlainConvTranspose, transpose, kTypes));
  table.Add("ConvInputGrad", {"onednn", 1, MakeDnnlConvInputGrad, "float"}, kOnwardDomain);
  table.Add("ConvInputGrad", Adapted("eigen", 1, MakePlainInputGrad, LikeInput(2), kTypes, {{2}}),
            kOnwardDomain);
  table.Add("ConvWeightGrad", {"few channels", 1, MakeSmallConvWeightGrad, "float"}, kOnwardDomain);
  table.Add("ConvWeightGrad", {"onednn", 1, MakeDnnlConvWeightGrad, "float"}, kOnwardDomain);
  table.Add("ConvWeightGrad", {"eigen", 1, Adapt(MakePlainWeightGrad, weight_grad, {{2}}), kTypes},
            kOnwardDomain);
}

}  // namespace onward
