// SPDX-License-Identifier: Apache-2.0
#include "autograd/rules/kept.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace onward {
namespace {

using Kind = ValueType::Kind;

ValueType Scalar(DType dtype) { return ValueType::Of(dtype, {}); }
ValueType SequenceOf(DType dtype) {
  return ValueType::Holding(Kind::kSequence, ValueType::Unranked(dtype));
}

Node Giving(std::string name, Node node) {
  node.outputs = {std::move(name)};
  return node;
}

// start, then the elements of `source`, `count` of them from `first` on ("": from its first on).
Node Appended(const std::string& start, const std::string& source, const std::string& first,
              const std::string& count, DType dtype, std::string result, GraphBuilder& b) {
  const std::string number = b.UniqueName("element"), going_on = b.UniqueName("going_on"),
                    list = b.UniqueName("list"), more = b.UniqueName("more"),
                    element = b.UniqueName("element"), longer = b.UniqueName("list");
  Graph body;
  body.name = "append";
  body.inputs = {
      {number, Scalar(DType::kInt64)}, {going_on, Scalar(DType::kBool)}, {list, SequenceOf(dtype)}};
  std::string at = number;
  if (!first.empty()) {
    at = b.UniqueName("at");
    body.nodes.push_back(Giving(at, Operation("Add", {first, number})));
  }
  body.nodes.push_back(Giving(element, Operation("SequenceAt", {source, at})));
  body.nodes.push_back(Giving(longer, Operation("SequenceInsert", {list, element})));
  body.nodes.push_back(Giving(more, Operation("Identity", {going_on})));
  body.outputs = {{more, Scalar(DType::kBool)}, {longer, SequenceOf(dtype)}};
  return Giving(std::move(result),
                Operation("Loop", {count, "", start},
                          {{"body", std::make_shared<const Graph>(std::move(body))}}));
}

Attribute BranchOf(std::vector<Node> nodes, ValueType type) {
  Graph branch;
  branch.name = "branch";
  branch.outputs = {{nodes.back().outputs[0], std::move(type)}};
  branch.nodes = std::move(nodes);
  return std::make_shared<const Graph>(std::move(branch));
}

Node EmptySequence(DType dtype, std::string name) {
  return Giving(std::move(name),
                Operation("SequenceEmpty", {}, {{"dtype", static_cast<int64_t>(dtype)}}));
}

// One more state of the loop, a sequence that is empty at first. Its name in the body; the body
// is to give `next`. `all` is what the node gives at the end.
std::string AddList(DType dtype, const std::string& next, const std::string& all, GraphBuilder& b,
                    Repeated* loop, std::vector<Node>* before) {
  const std::string in = b.UniqueName("list");
  NameOutputs(b, loop);
  before->push_back(EmptySequence(dtype, b.UniqueName("empty")));
  const int position = loop->states + loop->added_states++;
  loop->body.inputs.push_back({in, SequenceOf(dtype)});
  loop->body.outputs.insert(loop->body.outputs.begin() + loop->first_out + position,
                            {next, SequenceOf(dtype)});
  loop->node.inputs.resize(std::max<size_t>(loop->node.inputs.size(), loop->first_in));
  loop->node.inputs.push_back(before->back().outputs[0]);
  loop->node.outputs.insert(loop->node.outputs.begin() + position, all);
  return in;
}

// Appends the value's elements to the list, and tells how many they are.
void KeepElements(const Kept& kept, const std::string& value, const std::string& list,
                  const std::string& next, const std::string& count, GraphBuilder& b,
                  std::vector<Node>* nodes) {
  const DType dtype = kept.type.leaf();
  if (kept.type.kind == Kind::kSequence) {
    nodes->push_back(Giving(count, Operation("SequenceLength", {value})));
    nodes->push_back(Appended(list, value, "", count, dtype, next, b));
    return;
  }
  const std::string has = b.UniqueName("has"), element = b.UniqueName("element"),
                    longer = b.UniqueName("list"), same = b.UniqueName("list");
  nodes->push_back(Giving(has, Operation("OptionalHasElement", {value})));
  nodes->push_back(
      Giving(count, Operation("Cast", {has}, {{"to", static_cast<int64_t>(DType::kInt64)}})));
  Attributes branches;
  branches["then_branch"] = BranchOf({Giving(element, Operation("OptionalGetElement", {value})),
                                      Giving(longer, Operation("SequenceInsert", {list, element}))},
                                     SequenceOf(dtype));
  branches["else_branch"] =
      BranchOf({Giving(same, Operation("Identity", {list}))}, SequenceOf(dtype));
  nodes->push_back(Giving(next, Operation("If", {has}, std::move(branches))));
}

// Sequences do not say what rank their elements have: a Reshape that changes nothing does.
std::vector<Node> RecallListed(const Kept& kept, const std::string& i, const std::string& name,
                               GraphBuilder& b) {
  const ValueType& type = kept.type;
  if (!type.has_rank) return {Giving(name, Operation("SequenceAt", {kept.all, i}))};
  const std::string element = b.UniqueName("element"), sizes = b.UniqueName("sizes");
  std::vector<int64_t> same;
  for (const Dim& dim : type.dims) same.push_back(dim.known() ? dim.value : 0);
  return {Giving(element, Operation("SequenceAt", {kept.all, i})),
          Giving(sizes, Operation("Constant", {}, {{"value_ints", std::move(same)}})),
          Giving(name, Operation("Reshape", {element, sizes}))};
}

bool CanBeJoined(const ValueType& type) {
  return (type.kind == Kind::kSequence || type.kind == Kind::kOptional) &&
         type.element != nullptr && type.element->is_tensor();
}

}  // namespace

bool HasOneShape(const ValueType& type) {
  return type.is_tensor() && type.has_rank &&
         std::all_of(type.dims.begin(), type.dims.end(),
                     [](const Dim& dim) { return dim.known() || !dim.symbol.empty(); });
}

std::vector<NamedType> Kept::Outputs() const {
  if (as == As::kStacked) {
    ValueType stacked = type;
    if (stacked.has_rank) stacked.dims.insert(stacked.dims.begin(), Dim{});
    return {{all, stacked}};
  }
  std::vector<NamedType> outputs = {{all, SequenceOf(type.leaf())}};
  if (as == As::kListed) return outputs;
  ValueType numbers = Scalar(DType::kInt64);
  numbers.dims = {Dim{}};
  outputs.push_back({first, numbers});
  outputs.push_back({count, numbers});
  return outputs;
}

absl::StatusOr<Kept> Keep(const std::string& value, const ValueType& type, GraphBuilder& b,
                          Repeated* loop, std::vector<Node>* before) {
  Kept kept;
  kept.type = type;
  if (HasOneShape(type)) {
    kept.all = KeepOf("Identity", value, type, b, loop);
    return kept;
  }
  const DType dtype = type.leaf();
  if (dtype == DType::kUndefined || !(type.is_tensor() || CanBeJoined(type))) {
    return absl::UnimplementedError(
        absl::StrCat("its gradient needs '", value, "' of every iteration, which is ",
                     type.known() ? type.ToString() : "of an unknown type",
                     "; carry tensors or sequences of tensors whose element types are declared"));
  }
  const std::string next = b.UniqueName("list");
  kept.all = b.UniqueName("list_all");
  const std::string list = AddList(dtype, next, kept.all, b, loop, before);
  if (type.is_tensor()) {
    kept.as = Kept::As::kListed;
    loop->body.nodes.push_back(Giving(next, Operation("SequenceInsert", {list, value})));
    return kept;
  }
  kept.as = Kept::As::kJoined;
  const std::string first = b.UniqueName("first"), count = b.UniqueName("count");
  std::vector<Node>& nodes = loop->body.nodes;
  nodes.push_back(Giving(first, Operation("SequenceLength", {list})));
  KeepElements(kept, value, list, next, count, b, &nodes);
  kept.first = KeepOf("Identity", first, Scalar(DType::kInt64), b, loop);
  kept.count = KeepOf("Identity", count, Scalar(DType::kInt64), b, loop);
  return kept;
}

std::vector<Node> Recall(const Kept& kept, const std::string& i, const std::string& name,
                         GraphBuilder& b) {
  if (kept.as == Kept::As::kStacked) return {Giving(name, Operation("Gather", {kept.all, i}))};
  if (kept.as == Kept::As::kListed) return RecallListed(kept, i, name, b);
  const DType dtype = kept.type.leaf();
  const std::string first = b.UniqueName("first"), count = b.UniqueName("count");
  std::vector<Node> nodes = {Giving(first, Operation("Gather", {kept.first, i})),
                             Giving(count, Operation("Gather", {kept.count, i}))};
  if (kept.type.kind == Kind::kSequence) {
    const std::string empty = b.UniqueName("empty");
    nodes.push_back(EmptySequence(dtype, empty));
    nodes.push_back(Appended(empty, kept.all, first, count, dtype, name, b));
    return nodes;
  }
  const std::string has = b.UniqueName("has"), element = b.UniqueName("element"),
                    some = b.UniqueName("optional"), none = b.UniqueName("optional");
  const ValueType held = ValueType::Holding(Kind::kOptional, ValueType::Unranked(dtype));
  nodes.push_back(
      Giving(has, Operation("Cast", {count}, {{"to", static_cast<int64_t>(DType::kBool)}})));
  Attribute of_element;
  of_element.value = ValueType::Unranked(dtype);
  Attributes branches;
  branches["then_branch"] = BranchOf({Giving(element, Operation("SequenceAt", {kept.all, first})),
                                      Giving(some, Operation("Optional", {element}))},
                                     held);
  branches["else_branch"] =
      BranchOf({Giving(none, Operation("Optional", {}, {{"type", of_element}}))}, held);
  nodes.push_back(Giving(name, Operation("If", {has}, std::move(branches))));
  return nodes;
}

}  // namespace onward
