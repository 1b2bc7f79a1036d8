// SPDX-License-Identifier: Apache-2.0
// STFT: the transforms of overlapping pieces of a signal, each under a window.
#include <algorithm>
#include <complex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/ops/elementwise/elementwise.h"
#include "core/ops/signal/fft.h"
#include "core/ops/signal/signal.h"

namespace onward {
namespace {

template <typename C>
struct StftPlan {
  Shape shape;
  int64_t length = 0, parts = 1;  // of a signal
  int64_t step = 1, n = 0, frames = 0, bins = 0;
  std::shared_ptr<FftLines<C>> lines;
};

template <typename T, typename C>
void TransformFrame(const StftPlan<C>& p, const T* signal, const T* window, T* y,
                    FftLine<C>& work) {
  const auto weight = [&](int64_t j) { return window == nullptr ? C(1) : C(window[j]); };
  if (p.parts == 1) {
    for (int64_t j = 0; j < p.n; ++j) work.real[j] = C(signal[j]) * weight(j);
    work.fft.ForwardReal(work.real.data(), work.y.data());
    for (int64_t k = p.n / 2 + 1; k < p.bins; ++k) work.y[k] = std::conj(work.y[p.n - k]);
  } else {
    for (int64_t j = 0; j < p.n; ++j) {
      work.x[j] = std::complex<C>(C(signal[2 * j]), C(signal[2 * j + 1])) * weight(j);
    }
    work.fft.Forward(work.x.data(), work.y.data());
  }
  for (int64_t k = 0; k < p.bins; ++k) {
    y[2 * k] = T(work.y[k].real());
    y[2 * k + 1] = T(work.y[k].imag());
  }
}

template <typename T, typename C>
void TransformFrames(const StftPlan<C>& p, const T* signal, const T* window, T* y) {
  p.lines->Run(p.shape[0] * p.frames, [&](int64_t line, FftLine<C>& work) {
    const int64_t batch = line / p.frames, frame = line % p.frames;
    TransformFrame(p, signal + (batch * p.length + frame * p.step) * p.parts, window,
                   y + line * p.bins * 2, work);
  });
}

struct StftOptions {
  Shape signal;
  int64_t window = -1;  // its length; -1: none
  bool onesided = true;
};

template <typename C>
absl::StatusOr<StftPlan<C>> PlanStft(const Node& node, const StftOptions& options,
                                     absl::Span<const Tensor* const> inputs) {
  const Shape& signal = options.signal;
  StftPlan<C> p;
  p.length = signal[1];
  p.parts = signal.rank() == 3 ? signal[2] : 1;
  p.n = options.window >= 0 ? options.window : p.length;
  if (const Tensor* given = InputAt(inputs, 3)) {
    ONWARD_ASSIGN_OR_RETURN(p.n, LengthOf(node, *given, "frame_length"));
  }
  ONWARD_ASSIGN_OR_RETURN(p.step, LengthOf(node, *inputs[1], "frame_step"));
  if (options.window >= 0 && options.window != p.n) {
    return NodeError(node,
                     absl::StrCat("the window has ", options.window, " elements, a frame ", p.n));
  }
  if (p.n < 1 || p.n > p.length || p.n > kLongestTransform) {
    return NodeError(node,
                     absl::StrCat("frames of ", p.n, " elements in a signal of ", p.length,
                                  "; expected 1 to that many, and at most ", kLongestTransform));
  }
  p.frames = (p.length - p.n) / p.step + 1;
  p.bins = options.onesided ? p.n / 2 + 1 : p.n;
  p.shape = {signal[0], p.frames, p.bins, 2};
  p.lines = std::make_shared<FftLines<C>>(p.n);
  return p;
}

absl::StatusOr<Kernel> MakeStft(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 2));
  ONWARD_RETURN_IF_ERROR(CheckSameType(request, 0, {2}));
  StftOptions options{request.in(0), -1, request.node.Int("onesided", 1) != 0};
  const int rank = options.signal.rank();
  if (rank < 2 || rank > 3 || (rank == 3 && options.signal[2] != 1 && options.signal[2] != 2)) {
    return NodeError(request.node, absl::StrCat("the signal must be [batch, length, 1 or 2], got ",
                                                options.signal.ToString()));
  }
  if (request.HasInput(2)) {
    if (request.in(2).rank() != 1) return NodeError(request.node, "the window must have one axis");
    options.window = request.in(2)[0];
  }
  absl::StatusOr<Kernel> kernel = UnservedType(request);
  if (request.outputs[0].dtype != request.inputs[0].dtype) return kernel;
  FloatingTypes::Dispatch(request.inputs[0].dtype, [&]<typename T>() {
    using C = ComputeType<T>;
    const auto make = [node = KeepNode(request.node),
                       options](absl::Span<const Tensor* const> inputs) {
      return PlanStft<C>(*node, options, inputs);
    };
    const auto run = [](const StftPlan<C>& plan, const KernelCall& call, Tensor& out) {
      const Tensor* window = InputAt(call.inputs, 2);
      TransformFrames(plan, call.inputs[0]->data<T>(),
                      window == nullptr ? nullptr : window->data<T>(), out.data<T>());
      return absl::OkStatus();
    };
    kernel = PlannedKernel<StftPlan<C>>(request, {1, 3}, make, run);
  });
  return kernel;
}

}  // namespace

void RegisterStftKernels(KernelTable& table) {
  table.Add("STFT", {"eigen", 17, MakeStft, FloatingTypes::Names()});
}

}  // namespace onward
