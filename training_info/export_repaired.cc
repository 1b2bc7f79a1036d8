// SPDX-License-Identifier: Apache-2.0
#include "training_info/export_repaired.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/onnx_io/releases.h"
#include "onnx/onnx_pb.h"

namespace onward {
namespace {

using Changes = std::vector<std::string>;

const std::string& Domain() {
  static const std::string* const domain = new std::string(kTrainingDomain);
  return *domain;
}

bool UsesTrainingDomain(const onnx::ModelProto& model) {
  const auto uses = [](const onnx::GraphProto& graph) {
    return std::any_of(graph.node().begin(), graph.node().end(),
                       [](const onnx::NodeProto& node) { return node.domain() == Domain(); });
  };
  return uses(model.graph()) ||
         std::any_of(model.training_info().begin(), model.training_info().end(),
                     [&](const onnx::TrainingInfoProto& info) {
                       return uses(info.algorithm()) || uses(info.initialization());
                     });
}

// ai.onnx.preview.training has version 1 and no other.
void MendImports(onnx::ModelProto* model, Changes* changes) {
  bool imported = false;
  for (auto& import : *model->mutable_opset_import()) {
    if (import.domain() != Domain()) continue;
    imported = true;
    if (import.version() == 1) continue;
    changes->push_back(
        absl::StrCat("imports version 1 of ", Domain(), " instead of ", import.version()));
    import.set_version(1);
  }
  if (imported || !UsesTrainingDomain(*model)) return;
  auto* import = model->add_opset_import();
  import->set_domain(Domain());
  import->set_version(1);
  changes->push_back(absl::StrCat("imports ", Domain(), ", which its nodes use"));
}

// What the node's bodies read counts as well, so all names in them do.
void AddReads(const onnx::NodeProto& node, absl::flat_hash_set<std::string>* reads) {
  reads->insert(node.input().begin(), node.input().end());
  const auto add_graph = [&](const onnx::GraphProto& graph) {
    for (const onnx::NodeProto& inner : graph.node()) AddReads(inner, reads);
    for (const auto& out : graph.output()) reads->insert(out.name());
  };
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.has_g()) add_graph(attribute.g());
    for (const onnx::GraphProto& graph : attribute.graphs()) add_graph(graph);
  }
}

// Each round takes the first node that waits for nothing; a graph with a cycle stays.
void SortGraph(onnx::GraphProto* graph, const std::string& place, Changes* changes) {
  const int count = graph->node_size();
  std::map<std::string, int> producer;
  for (int i = 0; i < count; ++i) {
    for (const std::string& out : graph->node(i).output()) {
      if (!out.empty()) producer.emplace(out, i);
    }
  }
  std::vector<int> waiting(count, 0);
  std::vector<std::vector<int>> readers(count);
  for (int i = 0; i < count; ++i) {
    absl::flat_hash_set<std::string> reads;
    AddReads(graph->node(i), &reads);
    for (const std::string& value : reads) {
      const auto it = producer.find(value);
      if (it == producer.end() || it->second == i) continue;
      readers[it->second].push_back(i);
      ++waiting[i];
    }
  }
  std::set<int> ready;
  for (int i = 0; i < count; ++i) {
    if (waiting[i] == 0) ready.insert(i);
  }
  std::vector<int> order;
  while (!ready.empty()) {
    const int i = *ready.begin();
    ready.erase(ready.begin());
    order.push_back(i);
    for (const int reader : readers[i]) {
      if (--waiting[reader] == 0) ready.insert(reader);
    }
  }
  if (static_cast<int>(order.size()) != count || std::is_sorted(order.begin(), order.end())) return;
  google::protobuf::RepeatedPtrField<onnx::NodeProto> sorted;
  for (const int i : order) sorted.Add()->Swap(graph->mutable_node(i));
  graph->mutable_node()->Swap(&sorted);
  changes->push_back(absl::StrCat("sorted the nodes of ", place));
}

// `of_updates`: the value is of the same names as the variable. An output of initialization may
// well be called like the variable that it starts.
void MendBindings(google::protobuf::RepeatedPtrField<onnx::StringStringEntryProto>* bindings,
                  bool of_updates, const std::string& place,
                  std::set<std::pair<std::string, std::string>>* seen, Changes* changes) {
  Changes dropped;
  onnx::TrainingInfoProto kept;
  for (const auto& binding : *bindings) {
    if (of_updates && binding.key() == binding.value()) {
      dropped.push_back(
          absl::StrCat("dropped the binding of '", binding.key(), "' to itself from ", place));
    } else if (!seen->insert({binding.key(), binding.value()}).second) {
      dropped.push_back(absl::StrCat("dropped the second binding of '", binding.key(), "' to '",
                                     binding.value(), "' from ", place));
    } else {
      *kept.add_update_binding() = binding;
    }
  }
  if (dropped.empty()) return;
  bindings->Swap(kept.mutable_update_binding());
  changes->insert(changes->end(), dropped.begin(), dropped.end());
}

// Functions and initializers that stand twice, byte for byte.
void DropRepeated(onnx::ModelProto* model, Changes* changes) {
  std::set<std::string> functions;
  onnx::ModelProto kept;
  for (auto& function : *model->mutable_functions()) {
    if (functions.insert(function.SerializeAsString()).second) {
      kept.add_functions()->Swap(&function);
    } else {
      changes->push_back(
          absl::StrCat("dropped the second function ", function.domain(), ".", function.name()));
    }
  }
  model->mutable_functions()->Swap(kept.mutable_functions());
  std::map<std::string, std::string> held;
  for (const auto& tensor : model->graph().initializer())
    held.emplace(tensor.name(), tensor.SerializeAsString());
  for (int k = 0; k < model->training_info_size(); ++k) {
    if (!model->training_info(k).has_algorithm()) continue;
    onnx::GraphProto* algorithm = model->mutable_training_info(k)->mutable_algorithm();
    onnx::GraphProto rest;
    for (auto& tensor : *algorithm->mutable_initializer()) {
      const auto it = held.find(tensor.name());
      if (it == held.end() || it->second != tensor.SerializeAsString()) {
        rest.add_initializer()->Swap(&tensor);
        continue;
      }
      changes->push_back(absl::StrCat("dropped initializer '", tensor.name(),
                                      "' from training_info[", k,
                                      "].algorithm: the model has the same"));
    }
    algorithm->mutable_initializer()->Swap(rest.mutable_initializer());
  }
}

}  // namespace

RepairedModel Repaired(const Model& model) {
  RepairedModel result{model, {}};
  onnx::ModelProto& proto = result.model.proto();
  MendImports(&proto, &result.changes);
  DropRepeated(&proto, &result.changes);
  SortGraph(proto.mutable_graph(), "the graph", &result.changes);
  std::set<std::pair<std::string, std::string>> updates;
  for (int k = 0; k < proto.training_info_size(); ++k) {
    const std::string place = absl::StrCat("training_info[", k, "].");
    onnx::TrainingInfoProto* info = proto.mutable_training_info(k);
    if (info->has_initialization())
      SortGraph(info->mutable_initialization(), place + "initialization", &result.changes);
    if (info->has_algorithm())
      SortGraph(info->mutable_algorithm(), place + "algorithm", &result.changes);
    MendBindings(info->mutable_update_binding(), true, place + "update_binding", &updates,
                 &result.changes);
    std::set<std::pair<std::string, std::string>> starts;
    MendBindings(info->mutable_initialization_binding(), false, place + "initialization_binding",
                 &starts, &result.changes);
  }
  if (const int needed = NeededIrVersion(result.model); result.model.ir_version() < needed) {
    result.changes.push_back(absl::StrCat("raised the IR version to ", needed));
    result.model.set_ir_version(needed);
  }
  return result;
}

}  // namespace onward
