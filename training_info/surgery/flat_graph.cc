// SPDX-License-Identifier: Apache-2.0
#include "training_info/surgery/flat_graph.h"

#include <algorithm>

namespace onward {
namespace {

Node Join(const char* op, const std::string& from, const std::string& to) {
  Node node;
  node.op_type = op;
  node.inputs = {from};
  node.outputs = {to};
  return node;
}

// Whether the body hands its input `in` on, unchanged, as the output `out`.
bool HandsOn(const Graph& body, const std::string& in, const std::string& out) {
  if (in == out) return true;
  return std::any_of(body.nodes.begin(), body.nodes.end(), [&](const Node& node) {
    return node.Is("Identity") && node.HasInput(0) && node.HasOutput(0) && node.inputs[0] == in &&
           node.outputs[0] == out;
  });
}

void Append(const Graph& graph, std::vector<Node>* flat);

void AppendBody(const Node& node, const Graph& body, std::vector<Node>* flat) {
  // Loop passes its inputs from the third on; Scan all, the states first.
  const bool loop = node.Is("Loop"), scan = node.Is("Scan");
  const size_t skipped = loop ? 2 : 0, extra = loop ? 1 : 0;  // the body's condition comes out
  const int64_t scanned = node.Int("num_scan_inputs", 0);
  const size_t states =
      loop ? node.inputs.size() - std::min<size_t>(2, node.inputs.size())
           : node.inputs.size() -
                 std::min<size_t>(node.inputs.size(),
                                  static_cast<size_t>(std::max<int64_t>(0, scanned)));
  for (size_t i = skipped; (loop || scan) && i < node.inputs.size() && i < body.inputs.size();
       ++i) {
    const size_t out = i - skipped + extra;
    const bool changes = i - skipped < states && out < body.outputs.size() &&
                         !HandsOn(body, body.inputs[i].name, body.outputs[out].name);
    flat->push_back(Join(changes ? "Carry" : "Identity", node.inputs[i], body.inputs[i].name));
  }
  Append(body, flat);
  for (size_t i = 0; i < node.outputs.size() && i + extra < body.outputs.size(); ++i) {
    if (!node.outputs[i].empty())
      flat->push_back(Join("Identity", body.outputs[i + extra].name, node.outputs[i]));
  }
}

void Append(const Graph& graph, std::vector<Node>* flat) {
  for (const Node& node : graph.nodes) {
    bool has_body = false;
    for (const auto& [name, attribute] : node.attributes) {
      const auto* body = std::get_if<std::shared_ptr<const Graph>>(&attribute.value);
      if (body == nullptr || *body == nullptr) continue;
      has_body = true;
      AppendBody(node, **body, flat);
    }
    if (!has_body) flat->push_back(node);
  }
}

}  // namespace

std::vector<Node> FlatNodes(const Graph& graph) {
  std::vector<Node> flat;
  Append(graph, &flat);
  return flat;
}

}  // namespace onward
