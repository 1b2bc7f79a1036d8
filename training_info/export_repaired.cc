// SPDX-License-Identifier: Apache-2.0
#include "training_info/export_repaired.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "core/onnx_io/releases.h"
#include "onnx/onnx_pb.h"
#include "training_info/export_lists.h"

namespace onward {
namespace {

using Changes = std::vector<std::string>;

const std::string& Domain() {
  static const std::string* const domain = new std::string(kTrainingDomain);
  return *domain;
}

using NodeProtos = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

bool UsesTrainingDomain(const NodeProtos& nodes) {
  return std::any_of(nodes.begin(), nodes.end(), [](const onnx::NodeProto& node) {
    if (node.domain() == Domain()) return true;
    return std::any_of(
        node.attribute().begin(), node.attribute().end(), [](const onnx::AttributeProto& a) {
          return UsesTrainingDomain(a.g().node()) ||
                 std::any_of(
                     a.graphs().begin(), a.graphs().end(),
                     [](const onnx::GraphProto& body) { return UsesTrainingDomain(body.node()); });
        });
  });
}
bool GraphsUseTrainingDomain(const onnx::ModelProto& model) {
  return UsesTrainingDomain(model.graph().node()) ||
         std::any_of(model.training_info().begin(), model.training_info().end(),
                     [](const onnx::TrainingInfoProto& info) {
                       return UsesTrainingDomain(info.algorithm().node()) ||
                              UsesTrainingDomain(info.initialization().node());
                     });
}

using Imports = google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>;

// ai.onnx.preview.training has version 1 and no other.
void MendTrainingImport(bool used, const std::string& whose, Imports* imports, Changes* changes) {
  bool imported = false;
  for (auto& import : *imports) {
    if (import.domain() != Domain()) continue;
    imported = true;
    if (import.version() == 1) continue;
    changes->push_back(
        absl::StrCat(whose, "imports version 1 of ", Domain(), " instead of ", import.version()));
    import.set_version(1);
  }
  if (imported || !used) return;
  auto* import = imports->Add();
  import->set_domain(Domain());
  import->set_version(1);
  changes->push_back(absl::StrCat(whose, "imports ", Domain(), ", which its nodes use"));
}

std::string FunctionName(const onnx::FunctionProto& function) {
  return absl::StrCat("function ", function.domain(), ".", function.name());
}

// Functions say nothing of versions of their domains, so 1 is as good as any; operators of a
// function have to be those of the model's version.
void AddImports(Model* model, Changes* changes) {
  const std::map<std::string, int> imported = model->opsets();
  for (const MissingImport& missing : MissingImports(*model)) {
    onnx::ModelProto& proto = model->proto();
    const bool of_model = missing.function < 0;
    const auto known = imported.find(missing.domain);
    Imports* imports = of_model ? proto.mutable_opset_import()
                                : proto.mutable_functions(missing.function)->mutable_opset_import();
    auto* import = imports->Add();
    import->set_domain(missing.domain);
    import->set_version(known == imported.end() ? 1 : known->second);
    changes->push_back(absl::StrCat(
        of_model ? "" : FunctionName(proto.functions(missing.function)) + " ", "imports ",
        missing.domain.empty() ? "ai.onnx" : missing.domain, ", which its nodes use"));
  }
}

void MendImports(onnx::ModelProto* model, Changes* changes) {
  MendTrainingImport(GraphsUseTrainingDomain(*model), "", model->mutable_opset_import(), changes);
  for (onnx::FunctionProto& function : *model->mutable_functions()) {
    MendTrainingImport(UsesTrainingDomain(function.node()), FunctionName(function) + " ",
                       function.mutable_opset_import(), changes);
  }
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

// Each round takes the first node that waits for nothing; nodes in a cycle stay. Whether anything
// was moved, in bodies too.
bool SortProtos(NodeProtos* nodes) {
  bool moved = false;
  for (onnx::NodeProto& node : *nodes) {
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) moved |= SortProtos(attribute.mutable_g()->mutable_node());
      for (auto& body : *attribute.mutable_graphs()) moved |= SortProtos(body.mutable_node());
    }
  }
  const int count = nodes->size();
  std::map<std::string, int> producer;
  for (int i = 0; i < count; ++i) {
    for (const std::string& out : nodes->Get(i).output()) {
      if (!out.empty()) producer.emplace(out, i);
    }
  }
  std::vector<int> waiting(count, 0);
  std::vector<std::vector<int>> readers(count);
  for (int i = 0; i < count; ++i) {
    absl::flat_hash_set<std::string> reads;
    AddReads(nodes->Get(i), &reads);
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
  if (static_cast<int>(order.size()) != count || std::is_sorted(order.begin(), order.end()))
    return moved;
  NodeProtos sorted;
  for (const int i : order) sorted.Add()->Swap(nodes->Mutable(i));
  nodes->Swap(&sorted);
  return true;
}
void SortProtos(NodeProtos* nodes, const std::string& place, Changes* changes) {
  if (SortProtos(nodes)) changes->push_back(absl::StrCat("sorted the nodes of ", place));
}

// `same`: whether a value of this name is the variable itself. An output of initialization may
// well be called like the variable that it starts, and one of the algorithm by mistake.
void MendBindings(google::protobuf::RepeatedPtrField<onnx::StringStringEntryProto>* bindings,
                  absl::FunctionRef<bool(const std::string&)> same, const std::string& place,
                  std::set<std::pair<std::string, std::string>>* seen, Changes* changes) {
  Changes dropped;
  onnx::TrainingInfoProto kept;
  for (const auto& binding : *bindings) {
    if (binding.key() == binding.value() && same(binding.key())) {
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

}  // namespace

RepairedModel Repaired(const Model& model) {
  RepairedModel result{model, {}};
  Changes* changes = &result.changes;
  onnx::ModelProto& proto = result.model.proto();
  MendImports(&proto, changes);
  AddImports(&result.model, changes);
  DropWhatStandsTwice(&proto, changes);
  for (onnx::FunctionProto& function : *proto.mutable_functions())
    SortProtos(function.mutable_node(), FunctionName(function), changes);
  SortProtos(proto.mutable_graph()->mutable_node(), "the graph", changes);
  std::set<std::pair<std::string, std::string>> updates;
  for (int k = 0; k < proto.training_info_size(); ++k) {
    const std::string place = absl::StrCat("training_info[", k, "].");
    onnx::TrainingInfoProto* info = proto.mutable_training_info(k);
    if (info->has_initialization()) {
      SortProtos(info->mutable_initialization()->mutable_node(), place + "initialization", changes);
    }
    if (info->has_algorithm())
      SortProtos(info->mutable_algorithm()->mutable_node(), place + "algorithm", changes);
    const auto is_variable = [&](const std::string& name) {
      return !Computes(info->algorithm(), name);
    };
    MendBindings(info->mutable_update_binding(), is_variable, place + "update_binding", &updates,
                 changes);
    std::set<std::pair<std::string, std::string>> starts;
    MendBindings(
        info->mutable_initialization_binding(), [](const std::string&) { return false; },
        place + "initialization_binding", &starts, changes);
  }
  ListBoundValues(&proto, changes);
  if (const int needed = NeededIrVersion(result.model); result.model.ir_version() < needed) {
    changes->push_back(absl::StrCat("raised the IR version to ", needed));
    result.model.set_ir_version(needed);
  }
  return result;
}

}  // namespace onward
