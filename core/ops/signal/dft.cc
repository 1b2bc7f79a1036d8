// SPDX-License-Identifier: Apache-2.0
// DFT along one axis. The data is seen as [outer, n, inner, parts], parts being 1 for real and
// 2 for complex numbers.
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
struct DftPlan {
  Shape shape;
  int64_t outer = 1, inner = 1;
  int64_t length = 0, parts = 1;    // of the input
  int64_t bins = 0, out_parts = 2;  // of the result
  int64_t n = 0;
  bool inverse = false, onesided = false;
  std::shared_ptr<FftLines<C>> lines;

  // What is read of a line; zeros follow.
  int64_t read() const { return std::min(length, inverse && onesided ? n / 2 + 1 : n); }
};

// Line (o, i) begins at (o * n * inner + i) * parts, its elements are inner * parts apart.
template <typename T, typename C>
void ReadReal(const DftPlan<C>& p, const T* x, FftLine<C>& work) {
  const int64_t step = p.inner * p.parts, count = p.read();
  for (int64_t j = 0; j < count; ++j) work.real[j] = C(x[j * step]);
  std::fill(work.real.begin() + count, work.real.end(), C(0));
}

template <typename T, typename C>
void ReadComplex(const DftPlan<C>& p, const T* x, FftLine<C>& work) {
  const int64_t step = p.inner * p.parts, count = p.read();
  for (int64_t j = 0; j < count; ++j) {
    work.x[j] = {C(x[j * step]), p.parts == 2 ? C(x[j * step + 1]) : C(0)};
  }
  std::fill(work.x.begin() + count, work.x.end(), std::complex<C>());
}

template <typename T, typename C>
void TransformLine(const DftPlan<C>& p, const T* x, T* y, FftLine<C>& work) {
  const int64_t step = p.inner * p.out_parts;
  if (p.inverse && p.onesided) {
    ReadComplex(p, x, work);
    work.fft.BackwardReal(work.x.data(), work.real.data());
    const C scale = C(1) / static_cast<C>(p.n);
    for (int64_t k = 0; k < p.n; ++k) y[k * step] = T(work.real[k] * scale);
    return;
  }
  if (p.parts == 1 && !p.inverse) {
    ReadReal(p, x, work);
    work.fft.ForwardReal(work.real.data(), work.y.data());
    for (int64_t k = p.n / 2 + 1; k < p.bins; ++k) work.y[k] = std::conj(work.y[p.n - k]);
  } else {
    ReadComplex(p, x, work);
    if (p.inverse) {
      work.fft.Backward(work.x.data(), work.y.data());
    } else {
      work.fft.Forward(work.x.data(), work.y.data());
    }
  }
  const C scale = p.inverse ? C(1) / static_cast<C>(p.n) : C(1);
  for (int64_t k = 0; k < p.bins; ++k) {
    y[k * step] = T(work.y[k].real() * scale);
    y[k * step + 1] = T(work.y[k].imag() * scale);
  }
}

template <typename T, typename C>
void Transform(const DftPlan<C>& p, const T* x, T* y) {
  p.lines->Run(p.outer * p.inner, [&](int64_t line, FftLine<C>& work) {
    const int64_t o = line / p.inner, i = line % p.inner;
    TransformLine(p, x + (o * p.length * p.inner + i) * p.parts,
                  y + (o * p.bins * p.inner + i) * p.out_parts, work);
  });
}

struct DftOptions {
  Shape input;
  int64_t axis;  // unless an input gives it
  bool inverse, onesided;
};

template <typename C>
absl::StatusOr<DftPlan<C>> PlanDft(const Node& node, const DftOptions& options,
                                   absl::Span<const Tensor* const> inputs) {
  const Shape& input = options.input;
  int64_t axis = options.axis;
  if (const Tensor* given = InputAt(inputs, 2)) {
    ONWARD_ASSIGN_OR_RETURN(axis, IntOf(node, *given, "axis"));
  }
  const absl::StatusOr<int> at = NormalizeAxis(axis, input.rank());
  if (!at.ok()) return AtNode(node, at.status());
  const int last = input.rank() - 1;
  if (*at == last || (input[last] != 1 && input[last] != 2)) {
    return NodeError(node, absl::StrCat("the last axis of ", input.ToString(),
                                        " must hold 1 or 2 parts and is not transformed"));
  }
  DftPlan<C> p;
  p.inverse = options.inverse;
  p.onesided = options.onesided;
  p.length = input[*at];
  p.parts = input[last];
  p.outer = input.elements(0, *at);
  p.inner = input.elements(*at + 1, last);
  p.n = p.inverse && p.onesided ? 2 * (p.length - 1) : p.length;
  if (const Tensor* given = InputAt(inputs, 1)) {
    ONWARD_ASSIGN_OR_RETURN(p.n, LengthOf(node, *given, "dft_length"));
  }
  if (p.n < 1 || p.n > kLongestTransform) {
    return NodeError(
        node, absl::StrCat("a transform of ", p.n, " elements; expected 1 to ", kLongestTransform));
  }
  p.bins = p.onesided && !p.inverse ? p.n / 2 + 1 : p.n;
  p.out_parts = p.onesided && p.inverse ? 1 : 2;
  for (int i = 0; i < last; ++i) p.shape.push_back(i == *at ? p.bins : input[i]);
  p.shape.push_back(p.out_parts);
  p.lines = std::make_shared<FftLines<C>>(p.n);
  return p;
}

absl::StatusOr<Kernel> MakeDft(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 1));
  if (request.in(0).rank() < 2) return NodeError(request.node, "the input needs two axes or more");
  const auto opset = request.opsets.find("");
  const bool old = opset != request.opsets.end() && opset->second < 20;
  const DftOptions options{request.in(0), request.node.Int("axis", old ? 1 : -2),
                           request.node.Int("inverse", 0) != 0,
                           request.node.Int("onesided", 0) != 0};
  absl::StatusOr<Kernel> kernel = UnservedType(request);
  if (request.outputs[0].dtype != request.inputs[0].dtype) return kernel;
  FloatingTypes::Dispatch(request.inputs[0].dtype, [&]<typename T>() {
    using C = ComputeType<T>;
    const auto make = [node = KeepNode(request.node),
                       options](absl::Span<const Tensor* const> inputs) {
      return PlanDft<C>(*node, options, inputs);
    };
    const auto run = [](const DftPlan<C>& plan, const KernelCall& call, Tensor& out) {
      Transform(plan, call.inputs[0]->data<T>(), out.data<T>());
      return absl::OkStatus();
    };
    kernel = PlannedKernel<DftPlan<C>>(request, {1, 2}, make, run);
  });
  return kernel;
}

}  // namespace

void RegisterDftKernels(KernelTable& table) {
  table.Add("DFT", {"eigen", 17, MakeDft, FloatingTypes::Names()});
}

}  // namespace onward
