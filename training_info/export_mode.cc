// SPDX-License-Identifier: Apache-2.0
// Files in training mode as files in inference mode.
#include <map>

#include "core/base/status.h"
#include "training_info/export.h"
#include "training_info/export_proto.h"

namespace onward {
namespace {

using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

void PatchNodes(const Graph& graph, Nodes* protos);

void PatchNode(const Node& node, onnx::NodeProto* proto) {
  proto->mutable_input()->Assign(node.inputs.begin(), node.inputs.end());
  proto->mutable_output()->Assign(node.outputs.begin(), node.outputs.end());
  for (onnx::AttributeProto& a : *proto->mutable_attribute()) {
    if (a.name() == "training_mode" && a.ref_attr_name().empty())
      a.set_i(node.Int("training_mode", 0));
    if (const Graph* body = node.Subgraph(a.name()))
      PatchNodes(*body, a.mutable_g()->mutable_node());
  }
}

// Brings the nodes of a message to what SetInferenceMode made of them, and adds those it added.
void PatchNodes(const Graph& graph, Nodes* protos) {
  std::map<std::string, std::vector<const Node*>> added_behind;  // by the node before them
  std::map<std::string, const Node*> nodes;
  std::set<std::string> present;
  for (const auto& p : *protos) {
    if (p.output_size() > 0) present.insert(p.output(0));
  }
  std::string previous;
  for (const Node& node : graph.nodes) {
    if (node.outputs.empty()) continue;
    if (present.contains(node.outputs[0])) {
      previous = node.outputs[0];
      nodes.emplace(previous, &node);
    } else {
      added_behind[previous].push_back(&node);
    }
  }
  Nodes patched;
  for (onnx::NodeProto& p : *protos) {
    const std::string name = p.output_size() > 0 ? p.output(0) : "";
    if (auto it = nodes.find(name); it != nodes.end()) PatchNode(*it->second, &p);
    patched.Add()->Swap(&p);
    for (const Node* node : added_behind[name]) NodeToProto(*node, patched.Add());
  }
  protos->Swap(&patched);
}

}  // namespace

absl::StatusOr<ModeChange> ToInferenceMode(Model* model) {
  ONWARD_ASSIGN_OR_RETURN(Graph graph, InferenceGraph(*model));
  ModeChange total = SetInferenceMode(&graph);
  if (total.any()) PatchNodes(graph, model->proto().mutable_graph()->mutable_node());
  const Model shared = *model;
  const ExternalData external(shared.folder(), &shared.weights());
  for (int i = 0; i < shared.proto().functions_size(); ++i) {
    ONWARD_ASSIGN_OR_RETURN(Function function,
                            FunctionFromProto(shared.proto().functions(i), &external));
    const ModeChange change = SetInferenceMode(&function.body);
    if (!change.any()) continue;
    PatchNodes(function.body, model->proto().mutable_functions(i)->mutable_node());
    total.normalizations += change.normalizations;
    total.dropouts += change.dropouts;
  }
  return total;
}

absl::StatusOr<PlainModel> ExportPlain(const Model& trained) {
  PlainModel plain{InferenceOnly(trained), {}};
  ONWARD_ASSIGN_OR_RETURN(plain.change, ToInferenceMode(&plain.model));
  return plain;
}

}  // namespace onward
