// SPDX-License-Identifier: Apache-2.0
#include "core/graph/infer.h"

#include <optional>

#include "core/base/status.h"
#include "core/graph/constant.h"

namespace onward {

ValueType MergeTypes(const ValueType& inferred, const ValueType& declared) {
  if (inferred.dtype == DType::kUndefined) return declared;
  if (inferred.kind != declared.kind || !declared.has_rank) return inferred;
  ValueType merged = inferred;
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
  absl::flat_hash_map<std::string, Tensor> constants;
  for (const NamedType& in : graph->inputs) graph->types[in.name] = in.type;
  for (const auto& [name, tensor] : graph->initializers) {
    graph->types[name] = ValueType::Of(tensor.dtype(), tensor.shape());
    constants.emplace(name, tensor);
  }
  std::vector<InputFact> facts;
  for (const Node& node : graph->nodes) {
    if (std::optional<Tensor> value = ConstantValue(node))
      constants.emplace(node.outputs[0], *value);
    facts.assign(node.inputs.size(), {});
    for (size_t i = 0; i < facts.size(); ++i) {
      if (node.inputs[i].empty()) continue;
      facts[i].type = graph->TypeOf(node.inputs[i]);
      auto it = constants.find(node.inputs[i]);
      if (it != constants.end()) facts[i].constant = &it->second;
    }
    ONWARD_ASSIGN_OR_RETURN(std::vector<ValueType> types,
                            operators.Infer(node, facts, graph->opsets));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const std::string& out = node.outputs[i];
      if (out.empty()) continue;
      const ValueType* declared = graph->TypeOf(out);
      graph->types[out] = declared == nullptr ? types[i] : MergeTypes(types[i], *declared);
    }
  }
  for (NamedType& out : graph->outputs) {
    if (const ValueType* t = graph->TypeOf(out.name)) out.type = MergeTypes(*t, out.type);
  }
  return absl::OkStatus();
}

}  // namespace onward
