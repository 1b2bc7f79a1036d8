// SPDX-License-Identifier: Apache-2.0
// Comparisons, boolean and bitwise operators, and Where.
#include <string>

#include "core/ops/cpu/scalar_math.h"
#include "core/ops/elementwise/elementwise.h"
#include "core/ops/movement/movement.h"

namespace onward {
namespace {

struct EqualOp {
  template <typename T>
  bool operator()(const T& a, const T& b) const {
    return a == b;
  }
};
struct GreaterOp {
  template <typename T>
  bool operator()(T a, T b) const {
    return a > b;
  }
};
struct GreaterOrEqualOp {
  template <typename T>
  bool operator()(T a, T b) const {
    return a >= b;
  }
};
struct LessOp {
  template <typename T>
  bool operator()(T a, T b) const {
    return a < b;
  }
};
struct LessOrEqualOp {
  template <typename T>
  bool operator()(T a, T b) const {
    return a <= b;
  }
};

// Of booleans and of bits alike.
struct AndOp {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};
struct OrOp {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};
struct XorOp {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};

// A shift by a negative amount, or by the width or more, leaves what the fill
// alone gives: the sign to the right, 0 to the left.
template <typename T>
bool ShiftsOut(T amount) {
  return amount < T(0) || amount >= T(8 * sizeof(T));
}
struct ShiftLeftOp {
  template <typename T>
  T operator()(T x, T amount) const {
    if (ShiftsOut(amount)) return T(0);
    return static_cast<T>(static_cast<Modular<T>>(x) << amount);
  }
};
struct ShiftRightOp {
  template <typename T>
  T operator()(T x, T amount) const {
    if (ShiftsOut(amount)) return x < T(0) ? static_cast<T>(-1) : T(0);
    return static_cast<T>(x >> amount);
  }
};

absl::StatusOr<Kernel> MakeBitShift(const KernelRequest& request) {
  const std::string direction = request.node.String("direction", "");
  if (direction == "LEFT") return MakeBinary<ShiftLeftOp, IntegerTypes>(request, kLightGrain);
  if (direction == "RIGHT") return MakeBinary<ShiftRightOp, IntegerTypes>(request, kLightGrain);
  return NodeError(request.node, "direction must be LEFT or RIGHT");
}

template <typename T>
void WhereRun(absl::Span<const Operand> in, void* out, int64_t n) {
  const uint8_t* condition = in[0].as<uint8_t>();
  const T* x = in[1].as<T>();
  const T* y = in[2].as<T>();
  T* result = static_cast<T*>(out);
  const int64_t x_step = in[1].repeats ? 0 : 1;
  const int64_t y_step = in[2].repeats ? 0 : 1;
  if (in[0].repeats) {
    const T* chosen = *condition ? x : y;
    const int64_t step = *condition ? x_step : y_step;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) result[i] = chosen[i * step];
  } else if (x_step == 1 && y_step == 1) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) result[i] = condition[i] ? x[i] : y[i];
  } else if (x_step == 1) {
    const T other = *y;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) result[i] = condition[i] ? x[i] : other;
  } else if (y_step == 1) {
    const T value = *x;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) result[i] = condition[i] ? value : y[i];
  } else {
    const T value = *x, other = *y;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) result[i] = condition[i] ? value : other;
  }
}

absl::StatusOr<Kernel> MakeWhere(const KernelRequest& request) {
  for (int i : {0, 1, 2}) {
    if (!request.HasInput(i)) return NodeError(request.node, "three inputs are needed");
  }
  const DType dtype = request.outputs[0].dtype;
  if (request.inputs[0].dtype != DType::kBool || request.inputs[1].dtype != dtype ||
      request.inputs[2].dtype != dtype) {
    return UnservedType(request);
  }
  RunBody body;
  int64_t grain = kLightGrain;
  DispatchWidth(dtype, [&]<typename T>() {
    body = WhereRun<T>;
    grain = MoveGrain<T>();
  });
  if (body == nullptr) return UnservedType(request);
  return BroadcastKernel(request, {0, 1, 2}, std::move(body), grain);
}

using EqualTypes = NumericTypes::With<bool, std::string>;
using WhereTypes = NumericTypes::With<bool, std::string>;

}  // namespace

void RegisterLogicalKernels(KernelTable& table) {
  table.Add("Equal", Binary<EqualOp, EqualTypes>(7));
  table.Add("Greater", Binary<GreaterOp, NumericTypes>(7));
  table.Add("GreaterOrEqual", Binary<GreaterOrEqualOp, NumericTypes>(12));
  table.Add("Less", Binary<LessOp, NumericTypes>(7));
  table.Add("LessOrEqual", Binary<LessOrEqualOp, NumericTypes>(12));
  table.Add("And", Binary<AndOp, BoolType>(7));
  table.Add("Or", Binary<OrOp, BoolType>(7));
  table.Add("Xor", Binary<XorOp, BoolType>(7));
  table.Add("BitwiseAnd", Binary<AndOp, IntegerTypes>(18));
  table.Add("BitwiseOr", Binary<OrOp, IntegerTypes>(18));
  table.Add("BitwiseXor", Binary<XorOp, IntegerTypes>(18));
  table.Add("BitShift", Entry<IntegerTypes>(11, MakeBitShift, LikeBroadcastInputs()));
  table.Add("Where", Entry<WhereTypes>(9, MakeWhere, LikeBroadcastInputs()));
}

}  // namespace onward
