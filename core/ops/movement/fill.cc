// SPDX-License-Identifier: Apache-2.0
// Kernels whose elements come from a formula rather than from a tensor:
// Constant, ConstantOfShape, Range, EyeLike, and the mask of Trilu.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/graph/constant.h"
#include "core/ops/movement/movement.h"
#include "core/ops/movement/shape.h"
#include "core/ops/movement/through_bytes.h"
#include "core/tensor/dispatch.h"

namespace onward {
namespace {

absl::StatusOr<Tensor> ValueOf(const Node& node) {
  if (std::optional<Tensor> value = ConstantValue(node)) return *std::move(value);
  if (node.Has("sparse_value")) {
    return NodeUnimplemented(node, "sparse_value is not supported; use a dense value");
  }
  return NodeError(node, "needs one of value, value_float(s), value_int(s), value_string(s)");
}

absl::StatusOr<Kernel> MakeConstant(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 0));
  ONWARD_ASSIGN_OR_RETURN(const Tensor value, ValueOf(request.node));
  if (value.dtype() != request.outputs[0].dtype) {
    return NodeError(request.node, absl::StrCat("the value is ", DTypeName(value.dtype()),
                                                ", the output was declared ",
                                                DTypeName(request.outputs[0].dtype)));
  }
  const OutputSlot slot(request, 0);
  ONWARD_RETURN_IF_ERROR(slot.Accepts(value.shape()));
  Kernel kernel;
  kernel.infallible = slot.planned();
  kernel.run = [slot, value](const KernelCall& call) -> absl::Status {
    ONWARD_ASSIGN_OR_RETURN(Tensor * output, slot.Get(call, value.shape()));
    CopyAll(*output, value);
    return absl::OkStatus();
  };
  return kernel;
}

struct ShapePlan {
  Shape shape;
};

absl::StatusOr<Kernel> MakeConstantOfShape(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 1));
  const Tensor* attribute = request.node.TensorAttribute("value");
  const Tensor value = attribute != nullptr ? *attribute : Tensor::Scalar<float>(0.0f);
  if (value.elements() != 1) {
    return NodeError(request.node, absl::StrCat("value must have one element, got shape ",
                                                value.shape().ToString()));
  }
  if (value.dtype() != request.outputs[0].dtype) {
    return NodeError(request.node, absl::StrCat("value is ", DTypeName(value.dtype()),
                                                ", the output was declared ",
                                                DTypeName(request.outputs[0].dtype)));
  }
  ONWARD_RETURN_IF_ERROR(CheckMovable(request.node, value.dtype()));
  auto make = [node = KeepNode(request.node)](
                  absl::Span<const Tensor* const> inputs) -> absl::StatusOr<ShapePlan> {
    ONWARD_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, IntsOf(*node, *inputs[0], "input"));
    const absl::StatusOr<int64_t> elements = CheckedElements(dims);
    if (!elements.ok()) return AtNode(*node, elements.status());
    return ShapePlan{Shape(dims)};
  };
  auto run = [value](const ShapePlan&, const KernelCall&, Tensor& output) {
    DispatchWidth(output.dtype(), [&]<typename T>() {
      T* out = output.data<T>();
      const T& element = *value.data<T>();
      ParallelFor(output.elements(), MoveGrain<T>(),
                  [&](int64_t begin, int64_t end) { std::fill(out + begin, out + end, element); });
    });
    return absl::OkStatus();
  };
  return PlannedKernel<ShapePlan>(request, {0}, make, run);
}

// max(ceil((limit - start) / delta), 0), exact for integers.
template <typename C>
absl::StatusOr<int64_t> RangeLength(const Node& node, C start, C limit, C delta) {
  if (delta == C(0)) return NodeError(node, "delta must not be 0");
  if constexpr (std::is_integral_v<C>) {
    const __int128 distance = static_cast<__int128>(limit) - start;
    const __int128 step = delta;
    if (distance == 0 || (distance < 0) != (step < 0)) return 0;
    const __int128 n = (distance + step + (step > 0 ? -1 : 1)) / step;
    constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
    return n > kMax ? kMax : static_cast<int64_t>(n);
  } else {
    const double n = std::ceil(static_cast<double>(limit - start) / static_cast<double>(delta));
    if (!(n <= 0x1p62)) {
      return NodeError(node, absl::StrCat("no finite number of elements from ", start, " to ",
                                          limit, " by ", delta));
    }
    return n <= 0 ? 0 : static_cast<int64_t>(n);
  }
}

template <typename T, typename C>
void FillRange(C start, C delta, Tensor& output) {
  T* out = output.data<T>();
  ParallelFor(output.elements(), MoveGrain<T>(), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if constexpr (std::is_integral_v<C>) {
        // Wraps as unsigned; the last element is known to be representable.
        out[i] = static_cast<T>(static_cast<uint64_t>(start) +
                                static_cast<uint64_t>(i) * static_cast<uint64_t>(delta));
      } else {
        out[i] = T(start + static_cast<C>(i) * delta);
      }
    }
  });
}

template <typename T, typename C>
absl::StatusOr<Kernel> MakeRangeOf(const KernelRequest& request) {
  auto make = [node = KeepNode(request.node)](
                  absl::Span<const Tensor* const> inputs) -> absl::StatusOr<ShapePlan> {
    for (int i = 0; i < 3; ++i) {
      if (inputs[i]->elements() != 1) {
        return NodeError(*node, absl::StrCat("input ", i, " must be a scalar, got shape ",
                                             inputs[i]->shape().ToString()));
      }
    }
    ONWARD_ASSIGN_OR_RETURN(
        const int64_t n,
        RangeLength<C>(*node, *inputs[0]->data<T>(), *inputs[1]->data<T>(), *inputs[2]->data<T>()));
    return ShapePlan{Shape{n}};
  };
  auto run = [](const ShapePlan&, const KernelCall& call, Tensor& output) {
    FillRange<T, C>(*call.inputs[0]->data<T>(), *call.inputs[2]->data<T>(), output);
    return absl::OkStatus();
  };
  return PlannedKernel<ShapePlan>(request, {0, 1, 2}, make, run);
}

absl::StatusOr<Kernel> MakeRange(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 3));
  ONWARD_RETURN_IF_ERROR(CheckSameType(request, 0, {1, 2}));
  const int64_t stash = request.node.Int("stash_type", 1);
  const bool in_double = stash == static_cast<int64_t>(DType::kDouble);
  switch (request.inputs[0].dtype) {
    case DType::kFloat: return MakeRangeOf<float, float>(request);
    case DType::kDouble: return MakeRangeOf<double, double>(request);
    case DType::kInt16: return MakeRangeOf<int16_t, int16_t>(request);
    case DType::kInt32: return MakeRangeOf<int32_t, int32_t>(request);
    case DType::kInt64: return MakeRangeOf<int64_t, int64_t>(request);
    case DType::kFloat16:
      return in_double ? MakeRangeOf<Float16, double>(request)
                       : MakeRangeOf<Float16, float>(request);
    case DType::kBFloat16:
      return in_double ? MakeRangeOf<BFloat16, double>(request)
                       : MakeRangeOf<BFloat16, float>(request);
    default:
      return NodeUnimplemented(request.node,
                               absl::StrCat("no kernel for ", DTypeName(request.inputs[0].dtype)));
  }
}

absl::StatusOr<Kernel> MakeEyeLike(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 1));
  const Shape shape = request.in(0);
  if (shape.rank() != 2) {
    return NodeError(request.node, absl::StrCat("input must have rank 2, got ", shape.ToString()));
  }
  const int64_t k = std::clamp(request.node.Int("k", 0), -shape[0], shape[1]);
  const OutputSlot slot(request, 0);
  ONWARD_RETURN_IF_ERROR(slot.Accepts(shape));
  Kernel kernel;
  kernel.input_layouts = {request.inputs[0].layout};
  kernel.infallible = slot.planned();
  const bool known = DispatchNumeric(request.outputs[0].dtype, [&]<typename T>() {
    kernel.run = [slot, shape, k](const KernelCall& call) -> absl::Status {
      ONWARD_ASSIGN_OR_RETURN(Tensor * output, slot.Get(call, shape));
      T* out = output->data<T>();
      std::memset(static_cast<void*>(out), 0, output->bytes());
      for (int64_t i = std::max<int64_t>(0, -k); i < shape[0] && i + k < shape[1]; ++i) {
        out[i * shape[1] + i + k] = FromDouble<T>(1.0);
      }
      return absl::OkStatus();
    };
  });
  if (!known) {
    return NodeUnimplemented(request.node,
                             absl::StrCat("no kernel for ", DTypeName(request.outputs[0].dtype)));
  }
  return kernel;
}

// Rows of [columns] elements; row r of a matrix keeps columns [r + k, columns)
// (upper) or [0, r + k] (lower). dst may be src.
template <typename T>
void KeepTriangle(T* dst, const T* src, const Shape& shape, int64_t k, bool upper) {
  const int rank = shape.rank();
  const int64_t rows = shape[rank - 2], columns = shape[rank - 1];
  ParallelFor(shape.elements(0, rank - 1), RowGrain<T>(columns), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t edge = std::clamp<int64_t>(row % rows + k + (upper ? 0 : 1), 0, columns);
      const int64_t from = upper ? edge : 0, to = upper ? columns : edge;
      T* out = dst + row * columns;
      if (dst != src) CopyRun(out + from, src + row * columns + from, to - from);
      std::fill(out, out + from, T{});
      std::fill(out + to, out + columns, T{});
    }
  });
}

absl::StatusOr<Kernel> MakeTrilu(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 1));
  const Shape shape = request.in(0);
  if (shape.rank() < 2) {
    return NodeError(request.node,
                     absl::StrCat("input must have rank 2 or more, got ", shape.ToString()));
  }
  ONWARD_RETURN_IF_ERROR(CheckMovable(request.node, request.inputs[0].dtype));
  const bool upper = request.node.Int("upper", 1) != 0;
  const OutputSlot slot(request, 0);
  ONWARD_RETURN_IF_ERROR(slot.Accepts(shape));
  Kernel kernel;
  kernel.in_place = {{0, 0}};
  kernel.run = [slot, shape, upper,
                node = KeepNode(request.node)](const KernelCall& call) -> absl::Status {
    int64_t k = 0;
    if (const Tensor* t = InputAt(call.inputs, 1); t != nullptr) {
      ONWARD_ASSIGN_OR_RETURN(k, IntOf(*node, *t, "k"));
    }
    const int rank = shape.rank();
    k = std::clamp(k, -shape[rank - 2] - 1, shape[rank - 1]);
    ONWARD_ASSIGN_OR_RETURN(Tensor * output, slot.Get(call, shape));
    DispatchWidth(output->dtype(), [&]<typename T>() {
      KeepTriangle(output->data<T>(), call.inputs[0]->data<T>(), shape, k, upper);
    });
    return absl::OkStatus();
  };
  return kernel;
}

}  // namespace

void RegisterFillKernels(KernelTable& table) {
  table.Add("Constant", {"reference", 1, MakeConstant, "all"});
  table.Add("ConstantOfShape", {"reference", 9, ThroughBytes(MakeConstantOfShape), "all"});
  table.Add("Range",
            {"reference", 11, MakeRange, "float, double, float16, bfloat16, int16, int32, int64"});
  table.Add("EyeLike", {"reference", 9, MakeEyeLike, "numeric, bool"});
  table.Add("Trilu", {"reference", 14, MakeTrilu, "all but packed"});
}

}  // namespace onward
