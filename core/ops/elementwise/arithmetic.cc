// SPDX-License-Identifier: Apache-2.0
// Arithmetic on two or more tensors: Add to Mod, the variadic Min, Max, Sum and
// Mean, PRelu and Clip. Pow is in pow.cc.
#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/ops/cpu/scalar_math.h"
#include "core/ops/elementwise/elementwise.h"
#include "core/ops/elementwise/pow.h"

namespace onward {
namespace {

struct AddOp {
  template <typename T>
  T operator()(T a, T b) const {
    return WrapAdd(a, b);
  }
};
struct SubOp {
  template <typename T>
  T operator()(T a, T b) const {
    return WrapSub(a, b);
  }
};
struct MulOp {
  template <typename T>
  T operator()(T a, T b) const {
    return WrapMul(a, b);
  }
};
struct DivOp {
  template <typename T>
  T operator()(T a, T b) const {
    return SafeDiv(a, b);
  }
};
struct MinOp {
  template <typename T>
  T operator()(T a, T b) const {
    return NanMin(a, b);
  }
};
struct MaxOp {
  template <typename T>
  T operator()(T a, T b) const {
    return NanMax(a, b);
  }
};

// fmod = 1: the remainder of the quotient rounded towards zero.
struct TruncatedModOp {
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      return SafeRemainder(a, b);
    } else {
      return std::fmod(a, b);
    }
  }
};

// fmod = 0: of the quotient rounded down, so it has the sign of b.
struct FlooredModOp {
  template <typename T>
  T operator()(T a, T b) const {
    const T r = TruncatedModOp()(a, b);
    if constexpr (std::is_integral_v<T>) {
      return r != T(0) && (r < T(0)) != (b < T(0)) ? WrapAdd(r, b) : r;
    } else {
      if (r == T(0)) return std::copysign(T(0), b);
      return (r < T(0)) != (b < T(0)) ? r + b : r;
    }
  }
};

absl::StatusOr<Kernel> MakeMod(const KernelRequest& request) {
  switch (request.node.Int("fmod", 0)) {
    case 0: return MakeBinary<FlooredModOp, NumericTypes>(request, kHeavyGrain);
    case 1: return MakeBinary<TruncatedModOp, NumericTypes>(request, kHeavyGrain);
    default: return NodeError(request.node, "fmod must be 0 or 1");
  }
}

struct PReluOp {
  template <typename T>
  T operator()(T x, T slope) const {
    return x < T(0) ? WrapMul(slope, x) : x;
  }
};

absl::StatusOr<Kernel> MakePRelu(const KernelRequest& request) {
  ONWARD_ASSIGN_OR_RETURN(Kernel kernel,
                          (MakeBinary<PReluOp, WideNumericTypes>(request, kLightGrain)));
  const absl::StatusOr<Shape> shape = BroadcastShapes(request.in(0), request.in(1));
  if (!shape.ok() || *shape != request.in(0)) {
    return NodeError(request.node,
                     absl::StrCat("slope of shape ", request.in(1).ToString(),
                                  " does not broadcast to ", request.in(0).ToString()));
  }
  return kernel;
}

// Long runs are taken in pieces that stay in the first cache through the chain.
constexpr int64_t kChainTile = 2048;

// As ChainBody below, in float until the end: 16-bit numbers are rounded once.
template <typename Op, typename T>
RunBody HalfChainBody(bool mean) {
  return [mean](absl::Span<const Operand> in, void* out, int64_t n) {
    const Op op;
    T* const result = static_cast<T*>(out);
    const auto count = static_cast<float>(in.size());
    float folded[kChainTile];
    for (int64_t i = 0; i < n; i += kChainTile) {
      const int64_t m = std::min(kChainTile, n - i);
      for (size_t k = 0; k < in.size(); ++k) {
        const T* const x = in[k].as<T>() + (in[k].repeats ? 0 : i);
        const int64_t step = in[k].repeats ? 0 : 1;
        for (int64_t j = 0; j < m; ++j) {
          const float value = x[j * step];
          folded[j] = k == 0 ? value : op(folded[j], value);
        }
      }
      for (int64_t j = 0; j < m; ++j) result[i + j] = T(mean ? folded[j] / count : folded[j]);
    }
  };
}

// Op over all inputs from left to right; Mean divides by their number at the end.
template <typename Op, typename T>
RunBody ChainBody(bool mean) {
  if constexpr (kIsHalf<T>) return HalfChainBody<Op, T>(mean);
  return [mean](absl::Span<const Operand> in, void* out, int64_t n) {
    const Op op;
    T* const result = static_cast<T*>(out);
    const auto at = [&](int k, int64_t i) { return in[k].as<T>() + (in[k].repeats ? 0 : i); };
    for (int64_t i = 0; i < n; i += kChainTile) {
      const int64_t m = std::min(kChainTile, n - i);
      BinaryRun(op, at(0, i), in[0].repeats, at(1, i), in[1].repeats, result + i, m);
      for (int k = 2; k < static_cast<int>(in.size()); ++k) {
        BinaryRun(op, static_cast<const T*>(result + i), false, at(k, i), in[k].repeats, result + i,
                  m);
      }
      if (mean) {
        const auto count = static_cast<ComputeType<T>>(in.size());
        UnaryRun([count](auto x) { return x / count; }, result + i, result + i, m);
      }
    }
  };
}

template <typename Op, typename Types, bool kMean = false>
absl::StatusOr<Kernel> MakeVariadic(const KernelRequest& request) {
  std::vector<int> inputs;
  for (int i = 0; i < static_cast<int>(request.inputs.size()); ++i) {
    if (!request.HasInput(i)) return NodeError(request.node, "an input is missing");
    if (request.inputs[i].dtype != request.outputs[0].dtype) return UnservedType(request);
    inputs.push_back(i);
  }
  if (inputs.empty()) return NodeError(request.node, "at least one input is needed");
  if (inputs.size() == 1) return IdentityKernel(request);
  RunBody body;
  Types::Dispatch(request.inputs[0].dtype, [&]<typename T>() { body = ChainBody<Op, T>(kMean); });
  if (body == nullptr) return UnservedType(request);
  ONWARD_ASSIGN_OR_RETURN(Kernel kernel,
                          BroadcastKernel(request, inputs, std::move(body), kLightGrain));
  // The first result overwrites an operand, which must not be read again.
  std::erase_if(kernel.in_place, [&](const std::pair<int, int>& pair) {
    const std::string& name = request.node.inputs[pair.second];
    return inputs.size() > 2 && (pair.second > 1 || absl::c_count(request.node.inputs, name) > 1);
  });
  return kernel;
}

template <typename Op, typename Types, bool kMean = false>
KernelTable::Entry Variadic(int since) {
  return Entry<Types>(since, MakeVariadic<Op, Types, kMean>, LikeBroadcastInputs());
}

// Min(max, Max(x, min)) with either bound optional.
template <typename T>
RunBody ClipBody(bool has_min, bool has_max) {
  using C = ComputeType<T>;
  return [has_min, has_max](absl::Span<const Operand> in, void* out, int64_t n) {
    T* const y = static_cast<T*>(out);
    const C low = has_min ? C(*in[1].as<T>()) : C();
    const C high = has_max ? C(*in[has_min ? 2 : 1].as<T>()) : C();
    if (has_min && has_max) {
      UnaryRun([=](C x) { return MinOp()(high, MaxOp()(x, low)); }, in[0].as<T>(), y, n);
    } else if (has_min) {
      UnaryRun([=](C x) { return MaxOp()(x, low); }, in[0].as<T>(), y, n);
    } else {
      UnaryRun([=](C x) { return MinOp()(x, high); }, in[0].as<T>(), y, n);
    }
  };
}

absl::StatusOr<Kernel> MakeClip(const KernelRequest& request) {
  if (!request.HasInput(0)) return NodeError(request.node, "input 0 is missing");
  std::vector<int> inputs = {0};
  for (int i : {1, 2}) {
    if (!request.HasInput(i)) continue;
    if (request.inputs[i].dtype != request.inputs[0].dtype) return UnservedType(request);
    if (request.in(i).elements() != 1) {
      return NodeError(request.node, absl::StrCat("the bounds must be scalars, got shape ",
                                                  request.in(i).ToString()));
    }
    inputs.push_back(i);
  }
  if (inputs.size() == 1) return IdentityKernel(request);
  RunBody body;
  NumericTypes::Dispatch(request.inputs[0].dtype, [&]<typename T>() {
    body = ClipBody<T>(request.HasInput(1), request.HasInput(2));
  });
  if (body == nullptr || request.outputs[0].dtype != request.inputs[0].dtype) {
    return UnservedType(request);
  }
  return BroadcastKernel(request, std::move(inputs), std::move(body), kLightGrain);
}

// dY where X is within the bounds of a Clip, that is where X = Y; else 0.
absl::StatusOr<Kernel> MakeClipGrad(const KernelRequest& request) {
  RunBody body;
  FloatingTypes::Dispatch(request.inputs[0].dtype, [&]<typename T>() {
    body = [](absl::Span<const Operand> in, void* out, int64_t n) {
      const T *dy = in[0].as<T>(), *x = in[1].as<T>(), *y = in[2].as<T>();
      T* const dx = static_cast<T*>(out);
      for (int64_t i = 0; i < n; ++i) dx[i] = x[i] == y[i] ? dy[i] : T(0);
    };
  });
  for (int i = 0; i < 3; ++i) {
    if (!request.HasInput(i) || request.inputs[i].dtype != request.outputs[0].dtype) {
      return UnservedType(request);
    }
    if (request.in(i) != request.in(0)) return NodeError(request.node, "shapes differ");
  }
  if (body == nullptr) return UnservedType(request);
  return BroadcastKernel(request, {0, 1, 2}, std::move(body), kLightGrain);
}

}  // namespace

void RegisterArithmeticKernels(KernelTable& table) {
  table.Add("Add", Binary<AddOp, NumericTypes>(7));
  table.Add("Sub", Binary<SubOp, NumericTypes>(7));
  table.Add("Mul", Binary<MulOp, NumericTypes>(7));
  table.Add("Div", Binary<DivOp, NumericTypes>(7));
  table.Add("Mod", Entry<NumericTypes>(10, MakeMod, LikeBroadcastInputs()));
  table.Add("Pow", Entry<PowBaseTypes>(12, MakePow, LikeBroadcastInputs()));
  table.Add("Min", Variadic<MinOp, NumericTypes>(8));
  table.Add("Max", Variadic<MaxOp, NumericTypes>(8));
  table.Add("Sum", Variadic<AddOp, FloatingTypes>(8));
  table.Add("Mean", Variadic<AddOp, FloatingTypes, true>(8));
  table.Add("PRelu", Entry<WideNumericTypes>(9, MakePRelu, LikeInput(0)));
  table.Add("Clip", Entry<NumericTypes>(11, MakeClip, LikeInput(0)));
  table.Add("ClipGrad", Entry<FloatingTypes>(1, MakeClipGrad), kOnwardDomain);
}

}  // namespace onward
