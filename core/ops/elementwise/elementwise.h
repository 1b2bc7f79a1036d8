// SPDX-License-Identifier: Apache-2.0
// How a functor on elements becomes a kernel. An operator is one functor and one
// line of registration:
//
//   struct NegOp {
//     template <typename T> T operator()(T x) const { return WrapSub(T(0), x); }
//   };
//   table.Add("Neg", Unary<NegOp, SignedTypes>(13));
//
// Functors see float in place of the 16-bit types, may return bool (then the
// output is bool), and may have a constructor from the node for attributes. One
// that has Run(const T* x, T* y, int64_t n) does whole arrays of that type itself.
#ifndef ONWARD_CORE_OPS_ELEMENTWISE_ELEMENTWISE_H_
#define ONWARD_CORE_OPS_ELEMENTWISE_ELEMENTWISE_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/device/kernel.h"
#include "core/ops/cpu/adapt.h"
#include "core/ops/cpu/type_list.h"
#include "core/tensor/dispatch.h"

namespace onward {

// Elements that are worth a thread: of cheap functions and of costly ones.
inline constexpr int64_t kLightGrain = 16384;
inline constexpr int64_t kHeavyGrain = 4096;

// A kernel for `body` on these inputs of the node, broadcast against each other.
// Keeps a dense opaque layout where operands agree on it, and offers to work in
// place on each operand that the output resembles.
absl::StatusOr<Kernel> BroadcastKernel(const KernelRequest& request, std::vector<int> inputs,
                                       RunBody body, int64_t grain);

// Output 0 is input 0 as it is, or with another shape of as many elements.
absl::StatusOr<Kernel> IdentityKernel(const KernelRequest& request);
absl::StatusOr<Kernel> IdentityKernel(const KernelRequest& request, const Shape& shape);

// A chain of element-wise operators in one pass over tiles that stay in cache.
absl::StatusOr<Kernel> ChainKernel(absl::Span<const ChainStep> steps,
                                   absl::Span<const ValueSpec> inputs, const Shape& shape,
                                   const Layout& layout);

int64_t ElementBytes(DType dtype);
absl::Status UnservedType(const KernelRequest& request);

// Families within RegisterElementwiseKernels.
void RegisterUnaryMathKernels(KernelTable& table);
void RegisterArithmeticKernels(KernelTable& table);
void RegisterLogicalKernels(KernelTable& table);
void RegisterCastKernels(KernelTable& table);

template <typename T>
inline constexpr bool kIsHalf = !std::is_same_v<ComputeType<T>, T>;

template <typename Op>
Op MakeOp(const Node& node) {
  if constexpr (std::is_constructible_v<Op, const Node&>) {
    return Op(node);
  } else {
    return Op();
  }
}

// 16-bit elements pass through float in pieces of this size.
inline constexpr int64_t kHalfTile = 512;

template <typename From, typename To>
void ConvertRun(const From* from, To* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = To(from[i]);
}

template <typename T, typename Op, typename Out>
void UnaryRun(const Op& op, const T* x, Out* y, int64_t n) {
  if constexpr (kIsHalf<T>) {
    constexpr bool kSameType = std::is_same_v<T, Out>;
    float tile[kHalfTile];
    for (int64_t i = 0; i < n; i += kHalfTile) {
      const int64_t m = std::min(kHalfTile, n - i);
      ConvertRun(x + i, tile, m);
      if constexpr (kSameType) {
        UnaryRun(op, tile, tile, m);
        ConvertRun(tile, y + i, m);
      } else {
        UnaryRun(op, tile, y + i, m);
      }
    }
  } else if constexpr (requires { op.Run(x, y, n); }) {
    op.Run(x, y, n);
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = op(x[i]);
  }
}

template <typename T, typename Op, typename Out>
void BinaryRun(const Op& op, const T* a, bool a_repeats, const T* b, bool b_repeats, Out* y,
               int64_t n) {
  if constexpr (kIsHalf<T>) {
    float tile_a[kHalfTile], tile_b[kHalfTile];
    for (int64_t i = 0; i < n; i += kHalfTile) {
      const int64_t m = std::min(kHalfTile, n - i);
      ConvertRun(a_repeats ? a : a + i, tile_a, a_repeats ? 1 : m);
      ConvertRun(b_repeats ? b : b + i, tile_b, b_repeats ? 1 : m);
      if constexpr (std::is_same_v<T, Out>) {
        float tile_y[kHalfTile];
        BinaryRun(op, tile_a, a_repeats, tile_b, b_repeats, tile_y, m);
        ConvertRun(tile_y, y + i, m);
      } else {
        BinaryRun(op, tile_a, a_repeats, tile_b, b_repeats, y + i, m);
      }
    }
  } else {
    using Held = std::conditional_t<std::is_arithmetic_v<T>, const T, const T&>;
    if (a_repeats && b_repeats) {
      std::fill(y, y + n, op(*a, *b));
    } else if (b_repeats) {
      Held value = *b;
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) y[i] = op(a[i], value);
    } else if (a_repeats) {
      Held value = *a;
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) y[i] = op(value, b[i]);
    } else {
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) y[i] = op(a[i], b[i]);
    }
  }
}

// The type Op gives for arguments of type T.
template <typename Op, typename T, typename... More>
using OpResult =
    std::conditional_t<std::is_same_v<std::invoke_result_t<Op, ComputeType<T>, More...>, bool>,
                       bool, T>;

template <typename Op, typename Types>
absl::StatusOr<Kernel> MakeUnary(const KernelRequest& request, int64_t grain) {
  if (!request.HasInput(0)) return NodeError(request.node, "input 0 is missing");
  RunBody body;
  Types::Dispatch(request.inputs[0].dtype, [&]<typename T>() {
    using Out = OpResult<Op, T>;
    if (request.outputs[0].dtype != DTypeOf<Out>::value) return;
    body = [op = MakeOp<Op>(request.node)](absl::Span<const Operand> in, void* y, int64_t n) {
      UnaryRun(op, in[0].as<T>(), static_cast<Out*>(y), n);
    };
  });
  if (body == nullptr) return UnservedType(request);
  return BroadcastKernel(request, {0}, std::move(body), grain);
}

template <typename Op, typename Types>
absl::StatusOr<Kernel> MakeBinary(const KernelRequest& request, int64_t grain) {
  if (!request.HasInput(0) || !request.HasInput(1)) {
    return NodeError(request.node, "two inputs are needed");
  }
  RunBody body;
  Types::Dispatch(request.inputs[0].dtype, [&]<typename T>() {
    using Out = OpResult<Op, T, ComputeType<T>>;
    if (request.inputs[1].dtype != DTypeOf<T>::value) return;
    if (request.outputs[0].dtype != DTypeOf<Out>::value) return;
    body = [op = MakeOp<Op>(request.node)](absl::Span<const Operand> in, void* y, int64_t n) {
      BinaryRun(op, in[0].as<T>(), in[0].repeats, in[1].as<T>(), in[1].repeats,
                static_cast<Out*>(y), n);
    };
  });
  if (body == nullptr) return UnservedType(request);
  return BroadcastKernel(request, {0, 1}, std::move(body), grain);
}

// Table entries.
template <typename Types>
KernelTable::Entry Entry(int since, KernelFactory factory, ShapeRule shape = nullptr) {
  return {"reference", since, std::move(factory), Types::Names(), false, std::move(shape)};
}

template <typename Op, typename Types>
KernelTable::Entry Unary(int since, int64_t grain = kLightGrain) {
  const auto make = [grain](const KernelRequest& r) { return MakeUnary<Op, Types>(r, grain); };
  return Entry<Types>(since, make, LikeInput(0));
}

template <typename Op, typename Types>
KernelTable::Entry Binary(int since, int64_t grain = kLightGrain) {
  const auto make = [grain](const KernelRequest& r) { return MakeBinary<Op, Types>(r, grain); };
  return Entry<Types>(since, make, LikeBroadcastInputs());
}

}  // namespace onward

#endif  // ONWARD_CORE_OPS_ELEMENTWISE_ELEMENTWISE_H_
