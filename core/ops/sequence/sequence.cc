// SPDX-License-Identifier: Apache-2.0
// Sequences: making, reading and changing them. What a sequence holds is its own.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/ops/cpu/register.h"
#include "core/ops/sequence/value_kernel.h"
#include "core/tensor/elements.h"

namespace onward {
namespace {

absl::StatusOr<const Sequence*> SequenceAtInput(const Node& node, const ValueCall& call, int i) {
  if (HasInput(call, i) && call.inputs[i]->sequence() != nullptr) return call.inputs[i]->sequence();
  return NodeError(node, absl::StrCat("input ", i, " must be a sequence, got ",
                                      HasInput(call, i) ? call.inputs[i]->ToString() : "nothing"));
}

// The position that input i names in a list of `size`; `otherwise` where it is omitted.
absl::StatusOr<int64_t> Position(const Node& node, const ValueCall& call, int i, int64_t size,
                                 int64_t otherwise) {
  if (!HasInput(call, i)) return otherwise;
  ONWARD_ASSIGN_OR_RETURN(const Tensor* t, TensorAtInput(node, call, i));
  ONWARD_ASSIGN_OR_RETURN(const std::vector<int64_t> values, ToInts(*t));
  if (values.size() != 1) return NodeError(node, "the position must be one number");
  const int64_t at = values[0] < 0 ? values[0] + size : values[0];
  if (at >= 0 && at < size) return at;
  return NodeError(node, absl::StrCat("position ", values[0], " is not in a sequence of ", size));
}

absl::Status SequenceConstruct(const Node& node, const ValueCall& call) {
  Sequence sequence;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (!HasInput(call, static_cast<int>(i)))
      return NodeError(node, absl::StrCat("input ", i, " is missing"));
    const ValueType type = call.inputs[i]->type();
    if (i > 0 && (type.kind != sequence.element.kind || type.leaf() != sequence.element.leaf())) {
      return NodeError(node, absl::StrCat("joins ", sequence.element.ToString(), " and ",
                                          type.ToString(), " in one sequence"));
    }
    sequence.element = CommonType(sequence.element, type);
    sequence.items.push_back(call.inputs[i]->Owned());
  }
  return Give(call, 0, std::move(sequence));
}

absl::Status SequenceEmpty(const Node& node, const ValueCall& call) {
  const int64_t dtype = node.Int("dtype", static_cast<int64_t>(DType::kFloat));
  if (dtype < 1 || dtype > 1000 || !IsKnownDType(static_cast<int32_t>(dtype))) {
    return NodeError(node, absl::StrCat("dtype ", dtype, " is no element type"));
  }
  return Give(call, 0, Sequence{ValueType::Unranked(static_cast<DType>(dtype)), {}});
}

absl::Status SequenceInsert(const Node& node, const ValueCall& call) {
  ONWARD_ASSIGN_OR_RETURN(const Sequence* from, SequenceAtInput(node, call, 0));
  if (!HasInput(call, 1)) return NodeError(node, "has nothing to insert");
  const int64_t size = static_cast<int64_t>(from->items.size());
  // One place more than there are items: behind the last.
  ONWARD_ASSIGN_OR_RETURN(int64_t at, Position(node, call, 2, size + 1, size));
  if (HasInput(call, 2)) {
    ONWARD_ASSIGN_OR_RETURN(const std::vector<int64_t> named, ToInts(*call.inputs[2]->tensor()));
    if (named[0] < 0) at = named[0] + size;
    if (at < 0)
      return NodeError(node,
                       absl::StrCat("position ", named[0], " is not in a sequence of ", size));
  }
  const ValueType type = call.inputs[1]->type();
  if (from->element.known() && type.leaf() != from->element.leaf()) {
    return NodeError(node, absl::StrCat("inserts ", type.ToString(), " into a sequence of ",
                                        from->element.ToString()));
  }
  Sequence sequence = *from;
  sequence.element = size == 0 ? type : CommonType(from->element, type);
  sequence.items.insert(sequence.items.begin() + at, call.inputs[1]->Owned());
  return Give(call, 0, std::move(sequence));
}

absl::Status SequenceErase(const Node& node, const ValueCall& call) {
  ONWARD_ASSIGN_OR_RETURN(const Sequence* from, SequenceAtInput(node, call, 0));
  const int64_t size = static_cast<int64_t>(from->items.size());
  if (size == 0) return NodeError(node, "erases from an empty sequence");
  ONWARD_ASSIGN_OR_RETURN(const int64_t at, Position(node, call, 1, size, size - 1));
  Sequence sequence = *from;
  sequence.items.erase(sequence.items.begin() + at);
  return Give(call, 0, std::move(sequence));
}

absl::Status SequenceAt(const Node& node, const ValueCall& call) {
  ONWARD_ASSIGN_OR_RETURN(const Sequence* from, SequenceAtInput(node, call, 0));
  if (!HasInput(call, 1)) return NodeError(node, "has no position");
  ONWARD_ASSIGN_OR_RETURN(const int64_t at,
                          Position(node, call, 1, static_cast<int64_t>(from->items.size()), 0));
  return Give(call, 0, from->items[at]);
}

absl::Status SequenceLength(const Node& node, const ValueCall& call) {
  ONWARD_ASSIGN_OR_RETURN(const Sequence* from, SequenceAtInput(node, call, 0));
  return Give(call, 0, Tensor::Scalar<int64_t>(static_cast<int64_t>(from->items.size())));
}

absl::StatusOr<int> AxisOf(const Node& node, int64_t axis, int rank) {
  const int64_t at = axis < 0 ? axis + rank : axis;
  if (at >= 0 && at < rank) return static_cast<int>(at);
  return NodeError(node, absl::StrCat("axis ", axis, " is not among ", rank));
}

// How many of the axis each piece takes.
absl::StatusOr<std::vector<int64_t>> PiecesOf(const Node& node, const ValueCall& call, int64_t n) {
  if (!HasInput(call, 1)) return std::vector<int64_t>(n, 1);
  ONWARD_ASSIGN_OR_RETURN(const Tensor* split, TensorAtInput(node, call, 1));
  ONWARD_ASSIGN_OR_RETURN(std::vector<int64_t> sizes, ToInts(*split));
  const bool valid =
      std::all_of(sizes.begin(), sizes.end(), [&](int64_t s) { return s >= 0 && s <= n; });
  if (split->shape().rank() == 0 && !sizes.empty() && sizes[0] > 0) {
    const int64_t each = sizes[0];
    sizes.assign(n / each, each);
    if (n % each != 0) sizes.push_back(n % each);
    return sizes;
  }
  int64_t sum = 0;
  for (size_t i = 0; valid && i < sizes.size() && sum <= n; ++i) sum += sizes[i];
  if (valid && split->shape().rank() == 1 && sum == n) return sizes;
  return NodeError(node,
                   absl::StrCat("cannot split an axis of ", n, " by ", Value(*split).ToString(),
                                "; the pieces must make up all of it"));
}

absl::Status SplitToSequence(const Node& node, const ValueCall& call) {
  ONWARD_ASSIGN_OR_RETURN(const Tensor* input, TensorAtInput(node, call, 0));
  const Shape& shape = input->shape();
  ONWARD_RETURN_IF_ERROR(CheckWholeBytes(input->dtype(), "what is split"));
  ONWARD_ASSIGN_OR_RETURN(const int axis, AxisOf(node, node.Int("axis", 0), shape.rank()));
  ONWARD_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, PiecesOf(node, call, shape[axis]));
  const bool drop = !HasInput(call, 1) && node.Int("keepdims", 1) == 0;
  const int64_t outer = shape.elements(0, axis), inner = shape.elements(axis + 1, shape.rank());
  Sequence sequence{ValueType::Unranked(input->dtype()), {}};
  int64_t begin = 0;
  for (int64_t size : sizes) {
    Shape piece = shape;
    piece[axis] = size;
    if (drop) {
      piece = Shape(shape.dims().subspan(0, axis));
      for (int i = axis + 1; i < shape.rank(); ++i) piece.push_back(shape[i]);
    }
    Tensor out(input->dtype(), piece);
    for (int64_t o = 0; o < outer; ++o) {
      CopyElements(*input, (o * shape[axis] + begin) * inner, size * inner, &out, o * size * inner);
    }
    begin += size;
    sequence.element = sequence.items.empty()
                           ? ValueType::Of(input->dtype(), piece)
                           : CommonType(sequence.element, ValueType::Of(input->dtype(), piece));
    sequence.items.push_back(std::move(out));
  }
  return Give(call, 0, std::move(sequence));
}

absl::Status ConcatFromSequence(const Node& node, const ValueCall& call) {
  ONWARD_ASSIGN_OR_RETURN(const Sequence* from, SequenceAtInput(node, call, 0));
  const bool new_axis = node.Int("new_axis", 0) != 0;
  std::vector<const Tensor*> parts;
  for (const Value& item : from->items) {
    if (item.tensor() == nullptr) return NodeError(node, "joins tensors only");
    parts.push_back(item.tensor());
  }
  if (parts.empty()) return NodeError(node, "joins an empty sequence");
  const Shape& first = parts[0]->shape();
  ONWARD_RETURN_IF_ERROR(CheckWholeBytes(parts[0]->dtype(), "what is joined"));
  ONWARD_ASSIGN_OR_RETURN(const int axis,
                          AxisOf(node, node.Int("axis", 0), first.rank() + (new_axis ? 1 : 0)));
  int64_t joined = 0;
  for (const Tensor* part : parts) {
    bool fits = part->dtype() == parts[0]->dtype() && part->shape().rank() == first.rank();
    for (int i = 0; fits && i < first.rank(); ++i) {
      fits = part->shape()[i] == first[i] || (i == axis && !new_axis);
    }
    if (!fits) {
      return NodeError(node, absl::StrCat("joins ", Value(*parts[0]).ToString(), " and ",
                                          Value(*part).ToString(), " along axis ", axis));
    }
    joined += new_axis ? 1 : part->shape()[axis];
  }
  Shape shape(first.dims().subspan(0, axis));
  shape.push_back(joined);
  for (int i = axis + (new_axis ? 0 : 1); i < first.rank(); ++i) shape.push_back(first[i]);
  Tensor out(parts[0]->dtype(), shape);
  const int64_t outer = shape.elements(0, axis), inner = shape.elements(axis + 1, shape.rank());
  int64_t begin = 0;
  for (const Tensor* part : parts) {
    const int64_t size = new_axis ? 1 : part->shape()[axis];
    for (int64_t o = 0; o < outer; ++o) {
      CopyElements(*part, o * size * inner, size * inner, &out, (o * joined + begin) * inner);
    }
    begin += size;
  }
  return Give(call, 0, std::move(out));
}

}  // namespace

void RegisterSequenceKernels(KernelTable& table) {
  AddOnValues(table, "SequenceConstruct", SequenceConstruct);
  AddOnValues(table, "SequenceEmpty", SequenceEmpty);
  AddOnValues(table, "SequenceInsert", SequenceInsert);
  AddOnValues(table, "SequenceErase", SequenceErase);
  AddOnValues(table, "SequenceAt", SequenceAt);
  AddOnValues(table, "SequenceLength", SequenceLength);
  AddOnValues(table, "SplitToSequence", SplitToSequence);
  AddOnValues(table, "ConcatFromSequence", ConcatFromSequence);
  RegisterOptionalKernels(table);
}

}  // namespace onward
