// SPDX-License-Identifier: Apache-2.0
// What kernels that move elements without computing on them share: one
// instantiation per element width, outputs whose shape may be known only at run
// time, and plans made once where the inputs that decide them are constant.
#ifndef ONWARD_CORE_OPS_MOVEMENT_MOVEMENT_H_
#define ONWARD_CORE_OPS_MOVEMENT_MOVEMENT_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/parallel.h"
#include "core/base/status.h"
#include "core/device/kernel.h"

namespace onward {

// Stands for any element of 16 bytes.
struct Wide16 {
  uint64_t low, high;
};

// Calls f.template operator()<T>() with the unsigned type of the element's
// width, or std::string; false for types narrower than a byte.
template <typename F>
bool DispatchWidth(DType dtype, F&& f) {
  if (dtype == DType::kString) {
    f.template operator()<std::string>();
    return true;
  }
  switch (DTypeBits(dtype)) {
    case 8: f.template operator()<uint8_t>(); return true;
    case 16: f.template operator()<uint16_t>(); return true;
    case 32: f.template operator()<uint32_t>(); return true;
    case 64: f.template operator()<uint64_t>(); return true;
    case 128: f.template operator()<Wide16>(); return true;
    default: return false;
  }
}

bool IsMovable(DType dtype);
// Unimplemented, naming the node, for types DispatchWidth does not know.
absl::Status CheckMovable(const Node& node, DType dtype);

template <typename T>
void CopyRun(T* dst, const T* src, int64_t n) {
  if (n <= 0) return;
  if constexpr (std::is_trivially_copyable_v<T>) {
    std::memcpy(dst, src, static_cast<size_t>(n) * sizeof(T));
  } else {
    std::copy(src, src + n, dst);
  }
}

// Elements worth a thread of their own. Strings stay on the calling thread:
// copying them may throw.
template <typename T>
constexpr int64_t MoveGrain() {
  if constexpr (std::is_trivially_copyable_v<T>) {
    return std::max<int64_t>(1, 65536 / static_cast<int64_t>(sizeof(T)));
  } else {
    return int64_t{1} << 60;
  }
}

// The same in rows of `row` elements.
template <typename T>
constexpr int64_t RowGrain(int64_t row) {
  return std::max<int64_t>(1, MoveGrain<T>() / std::max<int64_t>(1, row));
}

// Calls f(dst offset, src offset) for the indices [begin, end) of the first
// `rank` dims, in row-major order.
template <typename F>
void ForRows(const Shape::Dims& dims, const Shape::Dims& dst_strides,
             const Shape::Dims& src_strides, int rank, int64_t begin, int64_t end, const F& f) {
  if (rank == 0) {
    if (begin < end) f(int64_t{0}, int64_t{0});
    return;
  }
  Shape::Dims index(rank, 0);
  int64_t d = 0, s = 0;
  for (int64_t i = rank - 1, rest = begin; i >= 0; --i) {
    index[i] = rest % dims[i];
    rest /= dims[i];
    d += index[i] * dst_strides[i];
    s += index[i] * src_strides[i];
  }
  const int last = rank - 1;
  for (int64_t row = begin; row < end;) {
    const int64_t n = std::min(end - row, dims[last] - index[last]);
    for (int64_t i = 0; i < n; ++i) f(d + i * dst_strides[last], s + i * src_strides[last]);
    row += n;
    d += n * dst_strides[last];
    s += n * src_strides[last];
    index[last] += n;
    for (int i = last; i > 0 && index[i] == dims[i]; --i) {
      d += dst_strides[i - 1] - dims[i] * dst_strides[i];
      s += src_strides[i - 1] - dims[i] * src_strides[i];
      index[i] = 0;
      ++index[i - 1];
    }
  }
}

// Copies tensors of equal size, whatever the type; packed types too.
void CopyAll(Tensor& dst, const Tensor& src);

// Fails unless the first `inputs` inputs and the first `outputs` outputs are
// there. A kernel may rely on them afterwards.
absl::Status CheckArity(const KernelRequest& request, int inputs, int outputs = 1);
// Fails unless these inputs, where given, have the type of input `like`.
absl::Status CheckSameType(const KernelRequest& request, int like, absl::Span<const int> inputs);

// The node a prepared kernel speaks of in its errors.
using NodeRef = std::shared_ptr<const Node>;
NodeRef KeepNode(const Node& node);

// Same status code, message naming the node.
absl::Status AtNode(const Node& node, const absl::Status& status);

// An output that the plan placed, or one the kernel allocates.
class OutputSlot {
 public:
  OutputSlot(const KernelRequest& request, int index);
  bool wanted() const { return dtype_ != DType::kUndefined; }
  bool planned() const { return planned_.has_value(); }
  // Fails if the plan holds another shape than the one the inputs ask for.
  absl::Status Accepts(const Shape& shape) const;
  // The tensor to fill; `shape` need not have been checked for size.
  absl::StatusOr<Tensor*> Get(const KernelCall& call, const Shape& shape) const;

 private:
  NodeRef node_;
  int index_;
  DType dtype_ = DType::kUndefined;
  std::optional<Shape> planned_;
};

// Input i of a call or of a list of constants; null if omitted.
const Tensor* InputAt(absl::Span<const Tensor* const> inputs, int i);
// The values of an integer tensor, errors naming the node and `what`.
absl::StatusOr<std::vector<int64_t>> IntsOf(const Node& node, const Tensor& t,
                                            std::string_view what);
// The same, of a tensor with one element.
absl::StatusOr<int64_t> IntOf(const Node& node, const Tensor& t, std::string_view what);
// The constants among the inputs, null elsewhere.
std::vector<const Tensor*> Constants(const KernelRequest& request);
// Whether each of these inputs is constant or omitted.
bool AllConstant(const KernelRequest& request, absl::Span<const int> inputs);

// The shape of `make(inputs)`, a plan as PlannedKernel has it.
template <typename Make>
absl::StatusOr<Shape> PlannedShape(const KernelRequest& request, absl::Span<const int> deciding,
                                   const Make& make) {
  if (!AllConstant(request, deciding)) return NodeError(request.node, "has a shape known later");
  ONWARD_ASSIGN_OR_RETURN(auto plan, make(Constants(request)));
  return plan.shape;
}

// A kernel with one output whose shape and work follow from the values of the
// inputs `deciding`. `make(inputs)` gives StatusOr<Plan>, Plan has a member
// `shape`; `run(plan, call, output)` does the work. Planned at compile time if
// the deciding inputs are constant, at each run otherwise.
template <typename Plan, typename Make, typename Run>
absl::StatusOr<Kernel> PlannedKernel(const KernelRequest& request, std::vector<int> deciding,
                                     Make make, Run run) {
  const OutputSlot slot(request, 0);
  std::shared_ptr<const Plan> fixed;
  if (AllConstant(request, deciding)) {
    ONWARD_ASSIGN_OR_RETURN(Plan plan, make(Constants(request)));
    ONWARD_RETURN_IF_ERROR(slot.Accepts(plan.shape));
    fixed = std::make_shared<const Plan>(std::move(plan));
  }
  Kernel kernel;
  kernel.infallible = fixed != nullptr && slot.planned();
  kernel.run = [slot, fixed, make, run](const KernelCall& call) -> absl::Status {
    std::shared_ptr<const Plan> plan = fixed;
    if (plan == nullptr) {
      ONWARD_ASSIGN_OR_RETURN(Plan fresh, make(call.inputs));
      plan = std::make_shared<const Plan>(std::move(fresh));
    }
    ONWARD_ASSIGN_OR_RETURN(Tensor * output, slot.Get(call, plan->shape));
    return run(*plan, call, *output);
  };
  return kernel;
}

// Marks output 0 as input 0's bytes; only where the plan knows its shape.
void SetView(const KernelRequest& request, Kernel& kernel);

}  // namespace onward

#endif  // ONWARD_CORE_OPS_MOVEMENT_MOVEMENT_H_
