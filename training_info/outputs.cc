// SPDX-License-Identifier: Apache-2.0
// Which output of a model is trained, and what its numbers are.
#include <algorithm>

#include "core/graph/attribute_lists.h"
#include "training_info/author.h"

namespace onward {
namespace {

const Node* MakerOf(const Graph& graph, const std::string& value) {
  for (const Node& node : graph.nodes) {
    if (std::find(node.outputs.begin(), node.outputs.end(), value) != node.outputs.end())
      return &node;
  }
  return nullptr;
}

// Rows that sum to one, whatever made them.
bool GivesProbabilities(const Node& node) {
  return (node.Is("Normalizer", kMlDomain) && node.String("norm", "MAX") == "L1") ||
         (node.Is("LinearClassifier", kMlDomain) &&
          node.String("post_transform", "NONE") == "SOFTMAX");
}

}  // namespace

std::string DefaultOutput(const Graph& graph) {
  for (const NamedType& out : graph.outputs) {
    if (out.type.is_tensor() && (out.type.dtype == DType::kUndefined || IsFloating(out.type.dtype)))
      return out.name;
  }
  // Of a scikit-learn classifier: its scores, not its label.
  for (const NamedType& out : graph.outputs) {
    const Node* maker = MakerOf(graph, out.name);
    if (maker != nullptr && maker->Is("ZipMap", kMlDomain)) return out.name;
  }
  return graph.outputs.empty() ? "" : graph.outputs[0].name;
}

std::string LastOperator(const Graph& graph, const std::string& output) {
  std::string value = output;
  for (auto it = graph.nodes.rbegin(); it != graph.nodes.rend(); ++it) {
    if (std::find(it->outputs.begin(), it->outputs.end(), value) == it->outputs.end()) continue;
    // Raising an old Softmax puts it between two changes of shape.
    const bool same_numbers = it->Is("Identity") || it->Is("Reshape") || it->Is("Flatten") ||
                              it->Is("Squeeze") || it->Is("Unsqueeze") ||
                              it->Is("ZipMap", kMlDomain);
    if (GivesProbabilities(*it)) return "Softmax";
    if (!same_numbers || it->inputs.empty()) return it->op_type;
    value = it->inputs[0];
  }
  return "";
}

}  // namespace onward
