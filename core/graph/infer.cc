// SPDX-License-Identifier: Apache-2.0
#include "core/graph/infer.h"

#include <algorithm>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/status.h"
#include "core/graph/constant.h"
#include "core/graph/infer_bodies.h"
#include "core/graph/shape_data.h"

namespace onward {
namespace {

bool Contradict(const ValueType& a, const ValueType& b) {
  if (!a.known() || !b.known()) return false;
  // onnx infers some containers by halves (an optional as what it holds).
  if (!a.is_tensor() || !b.is_tensor()) return false;
  return a.dtype != b.dtype || !ShapesFit(a, b);
}

// Types every node in turn. `judge(node, facts, types, known)` sees what was inferred, or why
// it could not be, and says whether to go on; then the outputs stay as declared.
// `through_bodies`: what If, Loop and Scan give is inferred too.
template <typename Judge>
absl::Status InferNodes(Graph* graph, const OperatorSet& operators, bool through_bodies,
                        const Judge& judge) {
  absl::flat_hash_map<std::string, Tensor> constants;
  ShapeData sizes;
  for (const NamedType& in : graph->inputs) graph->types[in.name] = in.type;
  for (const auto& [name, tensor] : graph->initializers) {
    graph->types[name] = ValueType::Of(tensor.dtype(), tensor.shape());
    constants.emplace(name, tensor);
  }
  const auto known = [&](const std::string& value) {
    auto it = constants.find(value);
    return InputFact{graph->TypeOf(value), it == constants.end() ? nullptr : &it->second};
  };
  std::vector<InputFact> facts;
  for (const Node& node : graph->nodes) {
    if (std::optional<Tensor> value = ConstantValue(node))
      constants.emplace(node.outputs[0], *value);
    facts.assign(node.inputs.size(), {});
    for (size_t i = 0; i < facts.size(); ++i) {
      if (!node.inputs[i].empty()) facts[i] = known(node.inputs[i]);
    }
    const absl::StatusOr<std::vector<ValueType>> types =
        through_bodies && RunsBodies(node) ? InferOutputs(node, known, operators, graph->opsets)
                                           : operators.Infer(node, facts, graph->opsets);
    ONWARD_RETURN_IF_ERROR(judge(node, facts, types, known));
    if (!types.ok()) continue;
    std::vector<ValueType> completed = *types;
    sizes.Visit(node, facts, &completed);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const std::string& out = node.outputs[i];
      if (out.empty()) continue;
      const ValueType* declared = graph->TypeOf(out);
      graph->types[out] = declared == nullptr ? completed[i] : MergeTypes(completed[i], *declared);
      if (std::optional<Tensor> value = sizes.ConstantOf(out)) constants.emplace(out, *value);
    }
  }
  for (NamedType& out : graph->outputs) {
    if (const ValueType* t = graph->TypeOf(out.name)) out.type = MergeTypes(*t, out.type);
  }
  return absl::OkStatus();
}

// The message without the node, which the place names, and the remedy, which the finding
// has.
std::string WithoutPlace(const Node& node, const absl::Status& status) {
  return std::string(absl::StripSuffix(absl::StripPrefix(status.message(), node.Describe() + ": "),
                                       absl::StrCat("; fix: ", kMendNode)));
}

}  // namespace

bool ShapesFit(const ValueType& a, const ValueType& b) {
  if (!a.has_rank || !b.has_rank) return true;
  if (a.rank() != b.rank()) return false;
  for (int i = 0; i < a.rank(); ++i) {
    if (a.dims[i].known() && b.dims[i].known() && a.dims[i].value != b.dims[i].value) return false;
  }
  return true;
}

ValueType MergeTypes(const ValueType& inferred, const ValueType& declared) {
  if (!inferred.known()) return declared;
  if (inferred.kind != declared.kind) return inferred;
  ValueType merged = inferred;
  if (declared.element != nullptr) {
    merged.element =
        inferred.element == nullptr
            ? declared.element
            : std::make_shared<const ValueType>(MergeTypes(*inferred.element, *declared.element));
  }
  if (!declared.has_rank) return merged;
  if (!inferred.has_rank) {
    merged.has_rank = true;
    merged.dims = declared.dims;
    return merged;
  }
  if (inferred.rank() != declared.rank()) return inferred;
  for (int i = 0; i < merged.rank(); ++i) {
    if (!merged.dims[i].known() && (declared.dims[i].known() || merged.dims[i].symbol.empty())) {
      merged.dims[i] = declared.dims[i];
    }
  }
  return merged;
}

absl::Status InferTypes(Graph* graph, const OperatorSet& operators) {
  return InferNodes(graph, operators, /*through_bodies=*/true,
                    [](const Node&, const std::vector<InputFact>&, const auto& types, const auto&) {
                      return types.status();
                    });
}

absl::Status InferKnownTypes(Graph* graph, const OperatorSet& operators) {
  return InferNodes(
      graph, operators, /*through_bodies=*/false,
      [&](const Node& node, const std::vector<InputFact>& facts, const auto& types, const auto&) {
        const bool sound =
            types.ok() || operators.BrokenDemands(node, facts, graph->opsets).empty();
        return sound ? absl::OkStatus() : types.status();
      });
}

namespace {

// A body with all that it reads of the graphs around it, as a graph of its own.
Graph WithCaptured(const Graph& body, const std::vector<ValueType>& inputs, const Graph& around,
                   FactOf known) {
  Graph whole = body;
  whole.opsets = around.opsets;
  for (size_t i = 0; i < whole.inputs.size(); ++i) {
    whole.inputs[i].type = i < inputs.size() ? inputs[i] : ValueType();
  }
  for (const std::string& name : CapturedValues(body)) {
    const InputFact fact = known(name);
    if (fact.constant != nullptr) {
      whole.initializers.emplace(name, *fact.constant);
    } else {
      whole.inputs.push_back({name, fact.type == nullptr ? ValueType() : *fact.type});
    }
  }
  // What exporters declare inside holds for one iteration.
  whole.types.clear();
  for (NamedType& out : whole.outputs) out.type = {};
  return whole;
}

// What the bodies of a node break, whichever iteration runs.
void CheckBodies(const Node& node, const Graph& graph, const OperatorSet& operators, FactOf known,
                 const Place& place, std::vector<Finding>* findings) {
  const std::vector<ValueType> inputs = BodyInputTypes(node, known, operators, graph.opsets);
  std::vector<Graph> bodies;
  ForEachBody(node, [&](const std::string& name, const Graph& body) {
    bodies.push_back(WithCaptured(body, inputs, graph, known));
    for (Finding& finding : CheckTypes(bodies.back(), operators)) {
      finding.place = absl::StrCat(place(), " ", name, ": ", finding.place);
      if (findings->size() < kMaxFindings) findings->push_back(std::move(finding));
    }
  });
  if (!node.Is("If") || bodies.size() != 2) return;
  for (Graph& branch : bodies) InferTypes(&branch, operators).IgnoreError();
  const std::vector<NamedType>&a = bodies[0].outputs, &b = bodies[1].outputs;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const bool tensors =
        a[i].type.known() && a[i].type.is_tensor() && b[i].type.known() && b[i].type.is_tensor();
    if (!tensors || a[i].type.dtype == b[i].type.dtype) continue;
    AddFinding("bad-types", place,
               absl::StrCat("output ", i, " is ", DTypeName(a[i].type.dtype), " in one branch and ",
                            DTypeName(b[i].type.dtype), " in the other"),
               kMendNode, findings);
  }
}

}  // namespace

std::vector<Finding> CheckTypes(Graph graph, const OperatorSet& operators) {
  std::vector<Finding> findings;
  absl::flat_hash_map<std::string, ValueType> declared(graph.types.begin(), graph.types.end());
  for (const NamedType& out : graph.outputs) declared.insert_or_assign(out.name, out.type);
  const auto compare = [&](const Place& place, const std::string& value,
                           const ValueType& inferred) {
    auto it = declared.find(value);
    if (it == declared.end() || !Contradict(inferred, it->second)) return;
    AddFinding("declared-type", place,
               absl::StrCat("'", value, "' is declared ", it->second.ToString(), ", but it is ",
                            inferred.ToString()),
               "correct the declaration, or the node", &findings);
  };
  InferNodes(&graph, operators, /*through_bodies=*/false,
             [&](const Node& node, const std::vector<InputFact>& facts, const auto& types,
                 const auto& known) {
               const Place place = [&] { return absl::StrCat("graph, ", node.Describe()); };
               if (RunsBodies(node)) {
                 CheckBodies(node, graph, operators, known, place, &findings);
               }
               std::vector<std::string> broken;
               if (!types.ok()) broken = operators.BrokenDemands(node, facts, graph.opsets);
               if (!types.ok() && broken.empty()) {
                 broken.push_back(WithoutPlace(node, types.status()));
               }
               for (std::string& what : broken) {
                 AddFinding("bad-types", place, std::move(what), kMendNode, &findings);
               }
               for (size_t i = 0; types.ok() && i < node.outputs.size(); ++i) {
                 compare(place, node.outputs[i], (*types)[i]);
               }
               return absl::OkStatus();
             })
      .IgnoreError();
  return findings;
}

}  // namespace onward
