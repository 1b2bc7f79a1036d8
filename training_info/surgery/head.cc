// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/graph/builder.h"
#include "core/graph/verify.h"
#include "training_info/surgery/find_head.h"
#include "training_info/surgery/surgery.h"

namespace onward {
namespace {

int64_t Readers(const Graph& graph, const std::string& value) {
  int64_t readers = 0;
  for (const Node& node : graph.nodes) {
    readers += std::count(node.inputs.begin(), node.inputs.end(), value);
  }
  return readers;
}

// Puts a fresh tensor where the node reads the old one: under its name, or, where others read that
// too or it is computed, under a new one.
absl::StatusOr<std::string> Replace(const HeadParameter& old, int64_t classes, Graph* graph) {
  std::string& input =
      graph->nodes[static_cast<size_t>(old.node)].inputs[static_cast<size_t>(old.input)];
  if (!IsFloating(old.value.dtype())) {
    return absl::UnimplementedError(
        absl::StrCat("--head: '", input, "' is ", DTypeName(old.value.dtype())));
  }
  if (!graph->initializers.contains(input) || Readers(*graph, input) > 1) {
    input = GraphBuilder(graph, nullptr, "head").UniqueName(input + "__head");
  }
  Shape shape = old.value.shape();
  if (old.axis < 0) {  // one number for one class
    shape.push_back(classes);
  } else {
    shape[old.axis] = classes;
  }
  graph->types[input] = ValueType::Of(old.value.dtype(), shape);
  graph->initializers.insert_or_assign(input, Tensor::Zeros(old.value.dtype(), shape));
  return input;
}

// Lets a Reshape end with another number of classes.
void Retarget(int number, int64_t classes, Graph* graph) {
  const size_t before = graph->nodes.size();
  const std::string target = graph->nodes[static_cast<size_t>(number)].inputs[1];
  std::string sized;
  {
    GraphBuilder builder(graph, nullptr, "head");
    const Expr begin =
        Slice(builder.Value(target), builder.Ints({0}), builder.Ints({-1}), builder.Ints({0}));
    sized = Concat({begin, builder.Ints({classes})}, 0).name();
  }
  const auto place = graph->nodes.begin() + number;
  place->inputs[1] = sized;
  std::rotate(place, graph->nodes.begin() + static_cast<int64_t>(before), graph->nodes.end());
}

}  // namespace

void DropInitializersFromInputs(Graph* graph) {
  std::erase_if(graph->inputs,
                [&](const NamedType& in) { return graph->initializers.contains(in.name); });
}

absl::StatusOr<std::vector<std::string>> ReplaceHead(Graph* graph, const std::string& output,
                                                     int64_t classes) {
  ONWARD_ASSIGN_OR_RETURN(const Head head, FindHead(*graph, output));
  DropInitializersFromInputs(graph);
  std::vector<std::string> replaced;
  for (const HeadParameter& parameter : head.parameters) {
    ONWARD_ASSIGN_OR_RETURN(replaced.emplace_back(), Replace(parameter, classes, graph));
  }
  // The range of the new scores is not known.
  for (const Head::Quantized& q : head.quantized) {
    Node& node = graph->nodes[static_cast<size_t>(q.dequantize)];
    const std::string scores = graph->nodes[static_cast<size_t>(q.quantize)].inputs[0];
    node.op_type = "Identity";
    node.inputs = {scores};
    node.attributes.clear();
  }
  std::vector<int> reshapes = head.reshapes;
  std::sort(reshapes.rbegin(), reshapes.rend());  // so that numbers stay true
  for (const int reshape : reshapes) Retarget(reshape, classes, graph);
  std::vector<std::string> outputs;
  for (const NamedType& out : graph->outputs) outputs.push_back(out.name);
  Prune(graph, outputs);
  // Declared types downstream of the head no longer hold.
  for (auto it = graph->types.begin(); it != graph->types.end();) {
    const bool source = graph->IsInput(it->first) || graph->initializers.contains(it->first);
    if (source)
      ++it;
    else
      graph->types.erase(it++);
  }
  for (NamedType& out : graph->outputs) {
    if (out.name == output && out.type.has_rank) {
      for (Dim& d : out.type.dims) d = {};
    }
  }
  return replaced;
}

}  // namespace onward
