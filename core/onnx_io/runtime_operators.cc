// SPDX-License-Identifier: Apache-2.0
#include "core/onnx_io/runtime_operators.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "onnx/defs/schema.h"

namespace onward {
namespace {

constexpr char kDomain[] = "com.microsoft";
constexpr char kRuntimeDisguise[] = "ai.onward.runtime";

bool IsRuntimeOperator(const std::string& op) {
  static const auto* const names =
      new absl::flat_hash_set<std::string>{"Affine",
                                           "Crop",
                                           "ImageScaler",
                                           "LayerNormalization",
                                           "ParametricSoftplus",
                                           "Scale",
                                           "ScaledTanh",
                                           "SimplifiedLayerNormalization"};
  return names->contains(op);
}

// Visits the nodes, those in bodies included.
void ChangeNodes(absl::FunctionRef<void(Node&)> change, std::vector<Node>* nodes) {
  for (Node& node : *nodes) {
    change(node);
    bool has_body = false;
    ForEachBody(node, [&](const std::string&, const Graph&) { has_body = true; });
    if (!has_body) continue;
    const auto inside = [&](const Graph& body) -> absl::StatusOr<Graph> {
      Graph changed = body;
      ChangeNodes(change, &changed.nodes);
      return changed;
    };
    ChangeBodies(inside, &node).IgnoreError();  // there is none
  }
}

void Adopt(int opset, std::vector<Node>* nodes) {
  ChangeNodes(
      [&](Node& node) {
        if (node.domain.empty() && IsRuntimeOperator(node.op_type) &&
            onnx::OpSchemaRegistry::Schema(node.op_type, opset, "") == nullptr) {
          node.domain = kDomain;
        }
      },
      nodes);
}

}  // namespace

void AdoptRuntimeOperators(Graph* graph) {
  Adopt(graph->opset(), &graph->nodes);
  for (auto& [key, function] : graph->functions) {
    Function changed = *function;
    Adopt(changed.body.opset(), &changed.body.nodes);
    function = std::make_shared<const Function>(std::move(changed));
  }
}

void DisguiseRuntimeOperators(Graph* graph) {
  bool found = false;
  ChangeNodes(
      [&](Node& node) {
        if (!IsWrittenAsStandard(node)) return;
        node.domain = kRuntimeDisguise;
        found = true;
      },
      &graph->nodes);
  if (found) graph->opsets[kRuntimeDisguise] = 1;
}

void UndisguiseRuntimeOperators(Graph* graph) {
  ChangeNodes(
      [](Node& node) {
        if (node.domain == kRuntimeDisguise) node.domain = kDomain;
      },
      &graph->nodes);
}

bool IsWrittenAsStandard(const Node& node) {
  return node.domain == kDomain && IsRuntimeOperator(node.op_type);
}

}  // namespace onward
