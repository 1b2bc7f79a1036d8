// SPDX-License-Identifier: Apache-2.0
#include "training_info/combine.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/graph/inline.h"
#include "core/graph/name_scope.h"
#include "core/graph/verify.h"

namespace onward {
namespace {

bool IsGraphCall(const Node& node) { return node.Is("GraphCall", kTrainingDomain); }

// The inference graph as a function of its inputs. Initializers that are inputs
// too may be left out of a call: they stay the global variables they are.
Function AsFunction(const Graph& inference, const Node& call, NameScope* names) {
  Function function;
  function.body = inference;
  function.body.inputs.clear();
  for (size_t i = 0; i < inference.inputs.size(); ++i) {
    const NamedType& input = inference.inputs[i];
    const bool global = inference.initializers.contains(input.name);
    if (i < call.inputs.size() && call.inputs[i].empty() && global) {
      function.body.inputs.push_back(
          {names->Unique(absl::StrCat("omitted__", input.name)), input.type});
    } else if (i < call.inputs.size() || !global) {
      function.body.inputs.push_back(input);
    }
  }
  return function;
}

// Two tensors of one name are two claims of which one would be lost.
absl::Status AddInitializers(const Graph& from, const char* other, Graph* to) {
  for (const auto& [name, tensor] : from.initializers) {
    if (to->initializers.emplace(name, tensor).second) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("initializer '", name, "' exists in ", other, " too"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Graph> CombineByCalls(const Graph& inference, const Graph& algorithm) {
  Graph out = algorithm;
  out.functions = inference.functions;
  ONWARD_RETURN_IF_ERROR(AddInitializers(inference, "the algorithm", &out));
  out.nodes.clear();
  // The two graphs have names of their own; the first call keeps the inference
  // graph's where they are free.
  NameScope names(algorithm);
  for (const auto& [name, tensor] : inference.initializers) names.Reserve(name);
  int calls = 0;
  for (const Node& node : algorithm.nodes) {
    if (!IsGraphCall(node)) {
      out.nodes.push_back(node);
      continue;
    }
    if (const std::string name = node.String("graph_name", inference.name);
        name != inference.name) {
      return absl::InvalidArgumentError(absl::StrCat(node.Describe(), ": calls graph '", name,
                                                     "', but the model's graph is '",
                                                     inference.name, "'"));
    }
    // ExpandCall gives every body value a name of its own, initializers stay
    // global because they are not body values.
    const Function function = AsFunction(inference, node, &names);
    const std::string prefix = calls == 0 ? "" : absl::StrCat("call", calls, "__");
    ONWARD_ASSIGN_OR_RETURN(std::vector<Node> body, ExpandCall(function, node, prefix, &names));
    ++calls;
    for (Node& n : body) out.nodes.push_back(std::move(n));
  }
  return out;
}

void AppendNew(const std::vector<NamedType>& from, std::vector<NamedType>* to) {
  absl::flat_hash_set<std::string> known;
  for (const NamedType& v : *to) known.insert(v.name);
  for (const NamedType& v : from) {
    if (known.insert(v.name).second) to->push_back(v);
  }
}

}  // namespace

bool UsesGraphCall(const Graph& algorithm) {
  return std::any_of(algorithm.nodes.begin(), algorithm.nodes.end(), IsGraphCall);
}

absl::StatusOr<Graph> Combine(const TrainingSpec& spec, int entry) {
  const Graph& algorithm = spec.entries[entry].algorithm;
  if (UsesGraphCall(algorithm)) return CombineByCalls(spec.inference, algorithm);
  Graph out = spec.inference;
  out.inputs.insert(out.inputs.end(), algorithm.inputs.begin(), algorithm.inputs.end());
  AppendNew(algorithm.outputs, &out.outputs);
  out.nodes.insert(out.nodes.end(), algorithm.nodes.begin(), algorithm.nodes.end());
  absl::Status status = AddInitializers(algorithm, "the inference graph", &out);
  if (!status.ok()) return Annotate(status, absl::StrCat("training_info[", entry, "]"));
  for (const auto& [name, type] : algorithm.types) out.types.emplace(name, type);
  return out;
}

}  // namespace onward
