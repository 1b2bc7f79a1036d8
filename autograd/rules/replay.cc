// SPDX-License-Identifier: Apache-2.0
// Random numbers in bodies of Loop and Scan. The gradient must not draw others: the forward node
// also gives what each iteration drew, and the body that is differentiated takes it as an input.
#include <algorithm>
#include <utility>

#include "autograd/rules/loop.h"
#include "core/graph/infer.h"
#include "core/graph/random.h"

namespace onward {
namespace {

// The types of the body's values, as far as they can be told.
Graph TypedBody(GraphBuilder& b, const Repeated& loop) {
  Graph graph = loop.body;
  graph.opsets = b.graph().opsets;
  graph.types.clear();
  for (size_t i = 0; i < graph.inputs.size(); ++i) graph.inputs[i].type = loop.types[i];
  for (const std::string& name : CapturedValues(graph)) {
    const InputFact fact = b.FactOf(name);
    if (fact.constant != nullptr) {
      graph.initializers.emplace(name, *fact.constant);
    } else {
      graph.inputs.push_back({name, fact.type == nullptr ? ValueType{} : *fact.type});
    }
  }
  // What cannot be inferred is not replayed.
  InferKnownTypes(&graph, *b.operators()).IgnoreError();
  return graph;
}

// What a Dropout gives, from the mask that it drew:
//   y = mask ? x * (training ? 1 / (1 - ratio) : 1) : 0
std::vector<Node> DropoutByMask(GraphBuilder& b, const Node& node, const std::string& mask) {
  std::vector<Node> nodes;
  const std::string& x = node.inputs[0];
  const auto add = [&](const char* op, std::vector<std::string> inputs,
                       Attributes attributes = {}) {
    nodes.push_back(Operation(op, std::move(inputs), std::move(attributes)));
    nodes.back().outputs = {b.UniqueName("dropped")};
    return nodes.back().outputs[0];
  };
  const auto number = [&](float value) {
    return add("CastLike", {add("Constant", {}, {{"value", Tensor::Scalar<float>(value)}}), x});
  };
  const std::string one = number(1);
  const std::string ratio = node.HasInput(1) ? add("CastLike", {node.inputs[1], x}) : number(0.5);
  const std::string scale = add("Div", {one, add("Sub", {one, ratio})});
  const std::string used = add("Where", {node.inputs[2], scale, one});
  nodes.push_back(Operation("Where", {mask, add("Mul", {x, used}), number(0)}));
  nodes.back().outputs = {node.outputs[0]};
  return nodes;
}

}  // namespace

bool HasOneShape(const ValueType& type) {
  return type.is_tensor() && type.has_rank &&
         std::all_of(type.dims.begin(), type.dims.end(),
                     [](const Dim& dim) { return dim.known() || !dim.symbol.empty(); });
}

void ReplayDraws(GraphBuilder& b, Repeated* loop) {
  const auto draws = [](const Node& node) {
    return IsRandom(node) && (!node.Is("Dropout") || node.HasInput(2));
  };
  loop->replayed_types = loop->types;
  if (std::none_of(loop->body.nodes.begin(), loop->body.nodes.end(), draws)) {
    loop->replayed = loop->body;
    return;
  }
  const Graph typed = TypedBody(b, *loop);
  std::vector<Node> nodes;
  std::vector<NamedType> drawn;
  for (Node& node : loop->body.nodes) {
    const bool drops = node.Is("Dropout");
    const ValueType* type = draws(node) ? typed.TypeOf(node.outputs[0]) : nullptr;
    if (type == nullptr || !HasOneShape(*type)) {
      nodes.push_back(node);
      continue;
    }
    ValueType kept = *type;
    if (drops) {
      node.outputs.resize(2);
      if (node.outputs[1].empty()) node.outputs[1] = b.UniqueName("mask");
      kept.dtype = DType::kBool;
      for (Node& part : DropoutByMask(b, node, node.outputs[1])) nodes.push_back(std::move(part));
    }
    drawn.push_back({node.outputs[drops ? 1 : 0], std::move(kept)});
  }
  loop->replayed = loop->body;
  loop->replayed.nodes = std::move(nodes);
  for (NamedType& draw : drawn) {
    loop->draws.push_back(draw.name);
    loop->replayed_types.push_back(draw.type);
    loop->replayed.inputs.push_back(std::move(draw));
  }
}

}  // namespace onward
