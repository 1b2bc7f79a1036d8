// SPDX-License-Identifier: Apache-2.0
#include "autograd/prepare.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "autograd/as_loop.h"
#include "autograd/rules/replay.h"
#include "core/base/status.h"
#include "core/graph/infer.h"
#include "core/graph/infer_bodies.h"
#include "core/graph/inline.h"
#include "core/graph/random.h"
#include "core/graph/shape_data.h"

namespace onward {
namespace {

// No ONNX exporter writes such a dim_param.
constexpr absl::string_view kDimPrefix = "?dim";

bool CallsRandom(const Graph& root, const std::vector<Node>& nodes) {
  for (const Node& node : nodes) {
    if (DrawsRandom(root, node)) return true;
  }
  return false;
}

absl::StatusOr<Graph> InlineRandomFunctions(const Graph& graph, const RuleTable& rules) {
  auto keep = [&](const Node& call, const Function& function) {
    return rules.Find(call.op_type, call.domain) != nullptr ||
           !CallsRandom(graph, function.body.nodes);
  };
  ONWARD_ASSIGN_OR_RETURN(Graph inlined, InlineFunctions(graph, keep));
  inlined.functions = graph.functions;
  return inlined;
}

// A Scan cannot carry the sum of its gradients.
bool CapturesSequence(const Graph& graph, const Node& node) {
  const std::vector<std::string> captured = CapturedByBodies(node);
  return std::any_of(captured.begin(), captured.end(), [&](const std::string& value) {
    const ValueType* type = graph.TypeOf(value);
    return type != nullptr && type->known() && !type->is_tensor() && IsFloating(type->leaf());
  });
}

bool BecomesLoop(const Node& node, GraphBuilder& b) {
  if (node.Is("SequenceMap")) return DrawsRandom(b.graph(), node);
  if (!node.Is("Scan")) return false;
  return CapturesSequence(b.graph(), node) ||
         (DrawsRandom(b.graph(), node) && !ReplaysAsScan(node, b));
}

// Whether some nodes of the graph are others now.
bool MakeLoops(const OperatorSet& operators, NameScope* names, Graph* graph) {
  if (std::none_of(graph->nodes.begin(), graph->nodes.end(),
                   [](const Node& node) { return node.Is("Scan") || node.Is("SequenceMap"); })) {
    return false;
  }
  NameScope own(*graph);
  GraphBuilder b(graph, &operators, "in", names == nullptr ? &own : names);
  bool changed = false;
  std::vector<Node> nodes;
  for (const Node& node : graph->nodes) {
    absl::StatusOr<std::vector<Node>> opened = std::vector<Node>{node};
    if (BecomesLoop(node, b)) opened = AsLoop(node, b);
    changed |= opened.ok() && opened->size() > 1;
    // One that cannot be a Loop is refused by its rule, if a gradient has to pass it.
    if (!opened.ok()) opened = std::vector<Node>{node};
    for (Node& part : *opened) nodes.push_back(std::move(part));
  }
  graph->nodes = std::move(nodes);
  return changed;
}

class DimNamer {
 public:
  DimNamer(Graph* graph, const OperatorSet& operators, int* next)
      : graph_(graph), operators_(operators), next_(next) {}

  // Infers once more, giving each unknown dimension a name where it first
  // appears; inference carries the names on.
  void Run() {
    for (const NamedType& in : graph_->inputs) NameDims(&graph_->types[in.name], next_);
    for (const auto& [name, tensor] : graph_->initializers) constants_.emplace(name, tensor);
    for (const Node& node : graph_->nodes) Visit(node);
  }

 private:
  void Visit(const Node& node) {
    if (std::optional<Tensor> t = ConstantValue(node)) constants_.emplace(node.outputs[0], *t);
    const auto known = [&](const std::string& value) {
      auto it = constants_.find(value);
      return InputFact{graph_->TypeOf(value), it == constants_.end() ? nullptr : &it->second};
    };
    absl::StatusOr<std::vector<ValueType>> types =
        InferOutputs(node, known, operators_, graph_->opsets);
    if (types.ok()) {
      std::vector<InputFact> facts(node.inputs.size());
      for (size_t i = 0; i < facts.size(); ++i) {
        if (!node.inputs[i].empty()) facts[i] = known(node.inputs[i]);
      }
      sizes_.Visit(node, facts, &*types);
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i].empty()) continue;
      ValueType& type = graph_->types[node.outputs[i]];
      if (types.ok()) type = MergeTypes((*types)[i], type);
      NameDims(&type, next_);
    }
  }

  Graph* graph_;
  const OperatorSet& operators_;
  absl::flat_hash_map<std::string, Tensor> constants_;
  ShapeData sizes_;
  int* next_;
};

bool HasUnnamedDims(const Graph& graph) {
  for (const auto& [name, type] : graph.types) {
    if (!type.has_rank) continue;
    for (const Dim& dim : type.dims) {
      if (!dim.known() && dim.symbol.empty()) return true;
    }
  }
  return false;
}

}  // namespace

absl::StatusOr<Graph> PrepareForward(const Graph& graph, const OperatorSet& operators,
                                     const RuleTable& rules, int* next_dim, NameScope* names) {
  ONWARD_ASSIGN_OR_RETURN(Graph forward, InlineRandomFunctions(graph, rules));
  const auto type = [&]() -> absl::Status {
    ONWARD_RETURN_IF_ERROR(InferTypes(&forward, operators));
    if (HasUnnamedDims(forward)) DimNamer(&forward, operators, next_dim).Run();
    return absl::OkStatus();
  };
  ONWARD_RETURN_IF_ERROR(type());
  if (MakeLoops(operators, names, &forward)) ONWARD_RETURN_IF_ERROR(type());
  return forward;
}

void NameDims(ValueType* type, int* next) {
  if (!type->has_rank) return;
  for (Dim& dim : type->dims) {
    if (!dim.known() && dim.symbol.empty()) dim.symbol = absl::StrCat(kDimPrefix, (*next)++);
  }
}

void ForgetDimNames(Graph* graph) {
  for (auto& [name, type] : graph->types) ForgetDimNames(&type);
}

void ForgetDimNames(ValueType* type) {
  for (Dim& dim : type->dims) {
    if (absl::StartsWith(dim.symbol, kDimPrefix)) dim.symbol.clear();
  }
  if (type->element == nullptr) return;
  ValueType element = *type->element;
  ForgetDimNames(&element);
  type->element = std::make_shared<const ValueType>(std::move(element));
}

bool DrawsRandom(const Graph& root, const Node& node) {
  if (IsRandom(node)) return !node.Is("Dropout") || node.HasInput(2);
  bool inside = false;
  ForEachBody(node, [&](const std::string&, const Graph& body) {
    inside = inside || CallsRandom(root, body.nodes);
  });
  if (inside) return true;
  auto it = root.functions.find({node.domain, node.op_type, node.overload});
  return it != root.functions.end() && CallsRandom(root, it->second->body.nodes);
}

}  // namespace onward
