// SPDX-License-Identifier: Apache-2.0
#include "core/ops/movement/movement.h"

#include "absl/strings/str_cat.h"

namespace onward {
namespace {

constexpr int64_t kMaxOutputBytes = int64_t{1} << 40;

}  // namespace

bool IsMovable(DType dtype) {
  return DispatchWidth(dtype, []<typename T>() {});
}

absl::Status CheckMovable(const Node& node, DType dtype) {
  if (IsMovable(dtype)) return absl::OkStatus();
  return NodeUnimplemented(
      node, absl::StrCat("no kernel for packed elements of type ", DTypeName(dtype)));
}

void CopyAll(Tensor& dst, const Tensor& src) {
  if (src.dtype() == DType::kString) {
    CopyRun(dst.data<std::string>(), src.data<std::string>(), src.elements());
    return;
  }
  uint8_t* to = dst.data<uint8_t>();
  const uint8_t* from = src.data<uint8_t>();
  if (to == from) return;
  ParallelFor(static_cast<int64_t>(src.bytes()), MoveGrain<uint8_t>(),
              [&](int64_t begin, int64_t end) { CopyRun(to + begin, from + begin, end - begin); });
}

absl::Status CheckArity(const KernelRequest& request, int inputs, int outputs) {
  for (int i = 0; i < inputs; ++i) {
    if (!request.HasInput(i)) return NodeError(request.node, absl::StrCat("needs input ", i));
  }
  for (int i = 0; i < outputs; ++i) {
    if (!request.HasOutput(i)) return NodeError(request.node, absl::StrCat("needs output ", i));
  }
  return absl::OkStatus();
}

absl::Status CheckSameType(const KernelRequest& request, int like, absl::Span<const int> inputs) {
  const DType expected = request.inputs[like].dtype;
  for (int i : inputs) {
    if (!request.HasInput(i) || request.inputs[i].dtype == expected) continue;
    return NodeError(
        request.node,
        absl::StrCat("input ", i, " is ", std::string(DTypeName(request.inputs[i].dtype)),
                     ", expected ", std::string(DTypeName(expected)), " as input ", like));
  }
  return absl::OkStatus();
}

NodeRef KeepNode(const Node& node) { return std::make_shared<const Node>(node); }

absl::Status AtNode(const Node& node, const absl::Status& status) {
  return Annotate(status, node.Describe());
}

OutputSlot::OutputSlot(const KernelRequest& request, int index)
    : node_(KeepNode(request.node)), index_(index) {
  if (!request.HasOutput(index)) return;
  dtype_ = request.outputs[index].dtype;
  planned_ = request.outputs[index].shape;
}

absl::Status OutputSlot::Accepts(const Shape& shape) const {
  if (!planned_.has_value() || *planned_ == shape) return absl::OkStatus();
  return NodeError(
      *node_, absl::StrCat("output ", index_, " was declared with shape ", planned_->ToString(),
                           ", but the inputs ask for ", shape.ToString()));
}

absl::StatusOr<Tensor*> OutputSlot::Get(const KernelCall& call, const Shape& shape) const {
  Tensor* output = call.outputs[index_];
  if (planned_.has_value()) {
    ONWARD_RETURN_IF_ERROR(Accepts(shape));
    return output;
  }
  const absl::StatusOr<int64_t> elements = CheckedElements(shape.dims());
  if (!elements.ok()) return AtNode(*node_, elements.status());
  const int64_t bits = dtype_ == DType::kString ? 8 * sizeof(std::string) : DTypeBits(dtype_);
  if (*elements > kMaxOutputBytes / bits * 8) {
    return absl::ResourceExhaustedError(
        absl::StrCat(node_->Describe(), ": output ", index_, " with shape ", shape.ToString(),
                     " of ", std::string(DTypeName(dtype_)), " would take more than 2^40 bytes"));
  }
  *output = Tensor(dtype_, shape);
  return output;
}

const Tensor* InputAt(absl::Span<const Tensor* const> inputs, int i) {
  return i < static_cast<int>(inputs.size()) ? inputs[i] : nullptr;
}

absl::StatusOr<std::vector<int64_t>> IntsOf(const Node& node, const Tensor& t,
                                            std::string_view what) {
  absl::StatusOr<std::vector<int64_t>> values = ToInts(t);
  if (!values.ok()) {
    return NodeError(node,
                     absl::StrCat(std::string(what), ": ", std::string(values.status().message())));
  }
  return values;
}

absl::StatusOr<int64_t> IntOf(const Node& node, const Tensor& t, std::string_view what) {
  ONWARD_ASSIGN_OR_RETURN(const std::vector<int64_t> values, IntsOf(node, t, what));
  if (values.size() != 1) {
    return NodeError(node, absl::StrCat(std::string(what), " must have one element, got shape ",
                                        t.shape().ToString()));
  }
  return values[0];
}

std::vector<const Tensor*> Constants(const KernelRequest& request) {
  std::vector<const Tensor*> constants;
  for (const ValueSpec& input : request.inputs) constants.push_back(input.constant);
  return constants;
}

bool AllConstant(const KernelRequest& request, absl::Span<const int> inputs) {
  return std::all_of(inputs.begin(), inputs.end(), [&](int i) {
    return !request.HasInput(i) || request.inputs[i].constant != nullptr;
  });
}

void SetView(const KernelRequest& request, Kernel& kernel) {
  kernel.is_view = request.outputs[0].shape.has_value();
}

}  // namespace onward
