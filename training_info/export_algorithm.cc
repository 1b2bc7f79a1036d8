// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "core/onnx_io/proto.h"
#include "training_info/export.h"

namespace onward {

void SetAlgorithm(int number, const TrainingEntry& entry, Model* model) {
  Weights* held = &model->weights();
  onnx::TrainingInfoProto* info = model->proto().mutable_training_info(number);
  onnx::GraphProto* proto = info->mutable_algorithm();
  proto->clear_node();
  for (const Node& node : entry.algorithm.nodes) NodeToProto(node, proto->add_node(), held);
  std::set<std::string> there;
  for (const auto& t : proto->initializer()) there.insert(t.name());
  for (const auto& [name, value] : entry.algorithm.initializers) {
    if (!there.contains(name)) TensorToProto(value, name, proto->add_initializer(), held);
  }
  std::set<std::string> listed;
  for (const auto& out : proto->output()) listed.insert(out.name());
  for (const NamedType& out : entry.algorithm.outputs) {
    if (listed.contains(out.name)) continue;
    onnx::ValueInfoProto* value = proto->add_output();
    value->set_name(out.name);
    TypeToProto(out.type, value->mutable_type());
  }
  info->clear_update_binding();
  for (const Binding& b : entry.update_bindings) {
    auto* binding = info->add_update_binding();
    binding->set_key(b.variable);
    binding->set_value(b.value);
  }
}

}  // namespace onward
