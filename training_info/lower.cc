// SPDX-License-Identifier: Apache-2.0
#include "training_info/lower.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autograd/differentiate.h"
#include "core/base/status.h"
#include "core/graph/infer.h"
#include "core/graph/inline.h"
#include "core/graph/patterns/recognise.h"
#include "core/graph/verify.h"
#include "core/runtime/compile/fold_sizes.h"
#include "training_info/body_gradients.h"
#include "training_info/expand_calls.h"
#include "training_info/export.h"
#include "training_info/library.h"

namespace onward {
namespace {

using NameSet = absl::flat_hash_set<std::string>;

// What a Gradient node refers to beside its inputs.
std::vector<std::string> NamedBy(const Node& gradient) {
  std::vector<std::string> names = gradient.Strings("xs");
  for (std::string& z : gradient.Strings("zs")) names.push_back(std::move(z));
  names.push_back(gradient.String("y", ""));
  return names;
}

std::vector<std::string> ReadsOf(const Node& node) {
  std::vector<std::string> reads = AllInputs(node);
  if (IsGradient(node)) {
    for (std::string& n : NamedBy(node)) reads.push_back(std::move(n));
  }
  return reads;
}

// Marks the nodes that depend on `roots` (values), through any path.
std::vector<bool> DependOn(const std::vector<Node>& nodes, NameSet roots) {
  std::vector<bool> depends(nodes.size(), false);
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (depends[i]) continue;
      const std::vector<std::string> reads = ReadsOf(nodes[i]);
      if (std::none_of(reads.begin(), reads.end(),
                       [&](const std::string& r) { return roots.contains(r); }))
        continue;
      depends[i] = changed = true;
      roots.insert(nodes[i].outputs.begin(), nodes[i].outputs.end());
    }
  }
  return depends;
}

absl::Status CheckGradientNode(const Node& node, const Graph& graph, const NameSet& known) {
  const std::vector<std::string> xs = node.Strings("xs"), zs = node.Strings("zs");
  if (xs.empty())
    return absl::InvalidArgumentError(
        absl::StrCat(node.Describe(), ": attribute xs names no tensor"));
  if (node.inputs.size() != xs.size() + zs.size()) {
    return absl::InvalidArgumentError(absl::StrCat(node.Describe(), ": has ", node.inputs.size(),
                                                   " inputs, but xs and zs name ",
                                                   xs.size() + zs.size(), " tensors"));
  }
  if (node.outputs.size() > xs.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(node.Describe(), ": has more outputs than xs has names"));
  }
  for (const std::string& name : NamedBy(node)) {
    if (!known.contains(name)) {
      return absl::InvalidArgumentError(absl::StrCat(node.Describe(), ": names tensor '", name,
                                                     "', which the graph does not have"));
    }
  }
  for (const std::string& x : xs) {
    const ValueType* type = graph.TypeOf(x);
    if (type != nullptr && type->dtype != DType::kUndefined && !IsFloating(type->dtype)) {
      return absl::InvalidArgumentError(absl::StrCat(node.Describe(), ": '", x, "' is ",
                                                     type->ToString(),
                                                     "; only float tensors have gradients"));
    }
  }
  return absl::OkStatus();
}

// Appends a copy of the part of `graph` between the named tensors and y, reading
// `substitutes` in their place. Returns the copy's name of y.
absl::StatusOr<std::string> CloneBetween(const std::vector<std::string>& names,
                                         const std::vector<std::string>& substitutes,
                                         const std::string& y, const Node& gradient,
                                         const std::string& prefix, NameScope* scope,
                                         Graph* graph) {
  Function between;
  for (const std::string& name : names) between.body.inputs.push_back({name, {}});
  const NameSet held(names.begin(), names.end());
  NameSet affected = held;
  for (const Node& node : graph->nodes) {
    const std::vector<std::string> reads = AllInputs(node);
    const bool reads_affected = std::any_of(
        reads.begin(), reads.end(), [&](const std::string& r) { return affected.contains(r); });
    const bool produces_held = std::any_of(node.outputs.begin(), node.outputs.end(),
                                           [&](const std::string& o) { return held.contains(o); });
    if (!reads_affected || produces_held) continue;
    affected.insert(node.outputs.begin(), node.outputs.end());
    affected.erase("");
    between.body.nodes.push_back(node);
  }
  if (!affected.contains(y)) return y;
  between.body.outputs.push_back({y, {}});
  Node call = gradient;
  call.inputs = substitutes;
  call.outputs = {scope->Unique(absl::StrCat(prefix, y))};
  ONWARD_ASSIGN_OR_RETURN(std::vector<Node> nodes, ExpandCall(between, call, prefix, scope));
  for (Node& node : nodes) graph->nodes.push_back(std::move(node));
  return call.outputs[0];
}

Node IdentityNode(const std::string& from, const std::string& to) {
  Node node;
  node.op_type = "Identity";
  node.inputs = {from};
  node.outputs = {to};
  return node;
}

// Expands `gradient` inside `graph`, whose nodes are those that do not depend
// on it.
absl::Status ExpandOne(const Node& gradient, int number, const NameSet& taken,
                       const Environment& environment, Graph* graph) {
  std::vector<std::string> xs = gradient.Strings("xs");
  const std::vector<std::string> zs = gradient.Strings("zs");
  std::string y = gradient.String("y", "");
  std::vector<std::string> names = xs;
  names.insert(names.end(), zs.begin(), zs.end());
  if (names != gradient.inputs || !zs.empty()) {
    const std::string prefix = absl::StrCat("gradient", number, "__");
    NameScope scope(*graph);
    scope.ReserveAll(taken);
    std::vector<std::string> substitutes = gradient.inputs;
    for (size_t i = 0; i < xs.size(); ++i) {
      // A value of its own, so that differentiation stops there and nowhere else.
      substitutes[i] = scope.Unique(absl::StrCat(prefix, "at_", i));
      graph->nodes.push_back(IdentityNode(gradient.inputs[i], substitutes[i]));
      xs[i] = substitutes[i];
    }
    ONWARD_ASSIGN_OR_RETURN(y,
                            CloneBetween(names, substitutes, y, gradient, prefix, &scope, graph));
  }
  DifferentiateOptions options;
  options.operators = &environment.operators();
  options.rules = &environment.rules();
  options.reserved.assign(taken.begin(), taken.end());
  auto result = Differentiate(*graph, y, xs, options);
  if (!result.ok()) return Annotate(result.status(), gradient.Describe());
  *graph = std::move(result->graph);
  for (size_t i = 0; i < gradient.outputs.size(); ++i) {
    if (gradient.outputs[i].empty()) continue;
    graph->nodes.push_back(IdentityNode(result->values[i], gradient.outputs[i]));
    if (const ValueType* known = graph->TypeOf(result->values[i])) {
      ValueType type = *known;  // an insertion may move what `known` points at
      graph->types[gradient.outputs[i]] = std::move(type);
    }
  }
  return absl::OkStatus();
}

// Only where the graph can be typed; what Gradient nodes name has to stay.
void Recognise(const std::set<std::string>& variables, const Environment& environment,
               Graph* graph) {
  if (!InferTypes(graph, environment.operators()).ok()) return;
  NameSet keep(variables.begin(), variables.end());
  ForEachGradient(graph->nodes, [&](const Node& node) {
    for (std::string& name : NamedBy(node)) keep.insert(std::move(name));
  });
  FoldSizes(keep, environment.cpu(), environment.operators(), graph);
  RecogniseOperators(graph, keep);
}

// Leaves what these outputs need, and all inputs.
absl::Status KeepOutputs(const std::vector<std::string>& names, Graph* graph) {
  std::vector<NamedType> kept;
  for (const std::string& name : names) {
    auto it = std::find_if(graph->outputs.begin(), graph->outputs.end(),
                           [&](const NamedType& out) { return out.name == name; });
    if (it == graph->outputs.end()) {
      std::vector<std::string> all;
      for (const NamedType& out : graph->outputs) all.push_back(out.name);
      return absl::InvalidArgumentError(
          absl::StrCat("'", name, "' is not an output; valid: ", absl::StrJoin(all, ", ")));
    }
    kept.push_back(*it);
  }
  graph->outputs = std::move(kept);
  Prune(graph, names);
  return absl::OkStatus();
}

}  // namespace

namespace {

// `taken`: names of graphs around this one.
absl::StatusOr<Graph> ExpandWithin(const Graph& graph, const NameSet& taken,
                                   const Environment& environment) {
  Graph work = graph;
  ONWARD_RETURN_IF_ERROR(ExpandBodyGradients(
      environment.operators(), taken,
      [&](const Graph& closed, const NameSet& outer) {
        return ExpandWithin(closed, outer, environment);
      },
      &work));
  for (int number = 0;; ++number) {
    // The first Gradient node that depends on no other one.
    int chosen = -1, remaining = 0;
    for (size_t i = 0; i < work.nodes.size(); ++i) {
      if (!IsGradient(work.nodes[i])) continue;
      ++remaining;
      if (chosen >= 0) continue;
      NameSet others;
      for (size_t j = 0; j < work.nodes.size(); ++j) {
        if (j != i && IsGradient(work.nodes[j]))
          others.insert(work.nodes[j].outputs.begin(), work.nodes[j].outputs.end());
      }
      if (!DependOn(work.nodes, others)[i]) chosen = static_cast<int>(i);
    }
    if (remaining == 0) break;
    if (chosen < 0)
      return absl::InvalidArgumentError("Gradient nodes depend on each other in a circle");
    const Node gradient = work.nodes[chosen];
    NameSet known;
    for (const NamedType& v : work.inputs) known.insert(v.name);
    for (const auto& [name, tensor] : work.initializers) known.insert(name);
    for (const Node& n : work.nodes) known.insert(n.outputs.begin(), n.outputs.end());
    ONWARD_RETURN_IF_ERROR(CheckGradientNode(gradient, work, known));
    const std::vector<bool> later =
        DependOn(work.nodes, NameSet(gradient.outputs.begin(), gradient.outputs.end()));
    if (later[chosen]) {
      return absl::InvalidArgumentError(
          absl::StrCat(gradient.Describe(), ": depends on its own outputs"));
    }
    std::vector<Node> before, after;
    for (size_t i = 0; i < work.nodes.size(); ++i) {
      if (static_cast<int>(i) == chosen) continue;
      (later[i] ? after : before).push_back(std::move(work.nodes[i]));
    }
    // Other Gradient nodes may stand before this one in the list without being
    // read by it; they wait for their turn at the end.
    std::vector<Node> pending;
    auto is_pending = [&](const Node& n) { return IsGradient(n); };
    NameSet pending_outputs;
    for (const Node& n : before) {
      if (is_pending(n)) pending_outputs.insert(n.outputs.begin(), n.outputs.end());
    }
    const std::vector<bool> waits = DependOn(before, pending_outputs);
    work.nodes.clear();
    for (size_t i = 0; i < before.size(); ++i) {
      (waits[i] || is_pending(before[i]) ? pending : work.nodes).push_back(std::move(before[i]));
    }
    known.insert(taken.begin(), taken.end());
    ONWARD_RETURN_IF_ERROR(ExpandOne(gradient, number, known, environment, &work));
    for (Node& n : pending) work.nodes.push_back(std::move(n));
    for (Node& n : after) work.nodes.push_back(std::move(n));
  }
  ONWARD_RETURN_IF_ERROR(SortNodes(&work));
  return work;
}

}  // namespace

absl::StatusOr<Graph> ExpandGradients(const Graph& graph, const Environment& environment) {
  return ExpandWithin(graph, {}, environment);
}

absl::StatusOr<Graph> InlineOwnFunctions(const Graph& graph, const Environment& environment,
                                         bool optimizers) {
  Graph out = graph;
  ONWARD_RETURN_IF_ERROR(InferTypes(&out, environment.operators()));
  ONWARD_RETURN_IF_ERROR(ExpandCalls(
      environment,
      [&](const Node& node) {
        return node.domain == kOnwardDomain || (optimizers && node.domain == kTrainingDomain);
      },
      [](const Node& node, const absl::Status& problem) {
        return problem.ok()
                   ? absl::NotFoundError(absl::StrCat(node.Describe(), ": no such function"))
                   : problem;
      },
      &out));
  out.opsets.erase(std::string(kOnwardDomain));
  if (optimizers) out.opsets.erase(std::string(kTrainingDomain));
  ONWARD_RETURN_IF_ERROR(InferTypes(&out, environment.operators()));
  return out;
}

absl::Status ExpandForeignCalls(const Environment& environment, Graph* graph) {
  const auto foreign = [&](const Node& node) {
    return !node.domain.empty() && node.domain != kOnwardDomain && node.domain != kTrainingDomain &&
           environment.functions().Find(node) != nullptr &&
           environment.cpu().kernels().Find(node.op_type, node.domain) == nullptr &&
           environment.rules().Find(node.op_type, node.domain) == nullptr;
  };
  if (absl::c_none_of(graph->nodes, foreign)) return absl::OkStatus();
  if (!InferTypes(graph, environment.operators()).ok()) return absl::OkStatus();
  return ExpandCalls(
      environment, foreign, [](const Node&, const absl::Status&) { return absl::OkStatus(); },
      graph);
}

absl::StatusOr<Graph> Lower(const Graph& combined, const Environment& environment,
                            const std::set<std::string>& variables) {
  ONWARD_ASSIGN_OR_RETURN(Graph graph,
                          InlineFunctions(combined, [&](const Node& call, const Function&) {
                            return IsLibraryCall(environment.functions(), call, combined.opsets);
                          }));
  ONWARD_RETURN_IF_ERROR(FindingsToStatus(CheckGraph(graph)));
  ONWARD_ASSIGN_OR_RETURN(graph, RaiseOpset(graph, kCanonicalOpset));
  ONWARD_RETURN_IF_ERROR(ExpandForeignCalls(environment, &graph));
  Recognise(variables, environment, &graph);
  return ExpandGradients(graph, environment);
}

absl::StatusOr<Graph> RunnableGraph(const Model& model, const Environment& environment,
                                    const RunnableOptions& options) {
  ONWARD_ASSIGN_OR_RETURN(Graph graph, InferenceGraph(model));
  if (options.drop_zipmap) DropZipMaps(&graph);
  if (!options.outputs.empty()) {
    if (absl::Status s = KeepOutputs(options.outputs, &graph); !s.ok()) {
      return Annotate(s, absl::StrCat("'", model.path(), "'"));
    }
  }
  auto lowered = Lower(graph, environment);
  if (!lowered.ok()) return Annotate(lowered.status(), absl::StrCat("'", model.path(), "'"));
  return lowered;
}

namespace {

// Whether onnxruntime's quantization is called. It may have 16 bits, which the standard has
// from opset 21 on.
bool HasWideQuantization(const Graph& graph) {
  return absl::c_any_of(graph.nodes, [](const Node& node) {
    bool found =
        node.Is("QuantizeLinear", "com.microsoft") || node.Is("DequantizeLinear", "com.microsoft");
    ForEachBody(node, [&](const std::string&, const Graph& body) {
      found = found || HasWideQuantization(body);
    });
    return found;
  });
}

}  // namespace

absl::StatusOr<Graph> WritableGraph(const Graph& graph, const Environment& environment) {
  ONWARD_ASSIGN_OR_RETURN(Graph inlined, InlineFunctions(graph));
  ONWARD_RETURN_IF_ERROR(FindingsToStatus(CheckGraph(inlined)));
  // A file of ai.onnx.ml alone need not import ai.onnx.
  if (inlined.opset() == 0) inlined.opsets[""] = kOldestWrittenOpset;
  constexpr int kWideQuantizationOpset = 21;
  const int oldest = HasWideQuantization(inlined) ? kWideQuantizationOpset : kOldestWrittenOpset;
  ONWARD_ASSIGN_OR_RETURN(Graph raised, RaiseOpset(inlined, oldest));
  ONWARD_RETURN_IF_ERROR(ExpandForeignCalls(environment, &raised));
  return raised;
}

}  // namespace onward
