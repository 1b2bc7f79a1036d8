// SPDX-License-Identifier: Apache-2.0
#include "training_info/export.h"

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status.h"
#include "core/onnx_io/proto.h"
#include "training_info/export_proto.h"

namespace onward {

absl::Status SetValues(const Tensor& value, onnx::TensorProto* proto) {
  const Shape shape(absl::MakeConstSpan(proto->dims().data(), proto->dims_size()));
  if (static_cast<DType>(proto->data_type()) != value.dtype() || shape != value.shape()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "initializer '", proto->name(), "' is ", DTypeName(static_cast<DType>(proto->data_type())),
        shape.ToString(), ", but its new value is ", DTypeName(value.dtype()),
        value.shape().ToString()));
  }
  ReplaceValues(value, proto);
  return absl::OkStatus();
}

absl::Status SetInitializers(const Variables& variables, onnx::GraphProto* graph,
                             std::set<std::string>* done) {
  for (onnx::TensorProto& t : *graph->mutable_initializer()) {
    auto it = variables.find(t.name());
    if (it == variables.end()) continue;
    ONWARD_RETURN_IF_ERROR(SetValues(it->second, &t));
    done->insert(t.name());
  }
  return absl::OkStatus();
}

absl::Status RequirePlaces(const Variables& variables, const std::set<std::string>& done,
                           const char* where) {
  std::vector<std::string> missing;
  for (const auto& [name, value] : variables) {
    if (!done.contains(name)) missing.push_back(name);
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(where, " has no initializer for: ", absl::StrJoin(missing, ", ")));
}

absl::StatusOr<Model> WithVariables(const Model& model, const Variables& variables) {
  Model out = model;
  std::set<std::string> done;
  ONWARD_RETURN_IF_ERROR(SetInitializers(variables, out.proto().mutable_graph(), &done));
  for (auto& info : *out.proto().mutable_training_info()) {
    ONWARD_RETURN_IF_ERROR(SetInitializers(variables, info.mutable_algorithm(), &done));
  }
  ONWARD_RETURN_IF_ERROR(RequirePlaces(variables, done, "the model"));
  return out;
}

Model InferenceOnly(const Model& model) {
  Model out = model;
  onnx::ModelProto& proto = out.proto();
  proto.clear_training_info();
  std::set<std::string> domains;
  for (const auto& node : proto.graph().node()) domains.insert(node.domain());
  for (const auto& f : proto.functions()) {
    for (const auto& node : f.node()) domains.insert(node.domain());
  }
  auto* functions = proto.mutable_functions();
  for (int i = functions->size() - 1; i >= 0; --i) {
    if (functions->Get(i).domain() == kOnwardDomain &&
        !domains.contains(std::string(kOnwardDomain))) {
      functions->DeleteSubrange(i, 1);
    }
  }
  auto* opsets = proto.mutable_opset_import();
  for (int i = opsets->size() - 1; i >= 0; --i) {
    const std::string& domain = opsets->Get(i).domain();
    if ((domain == kOnwardDomain || domain == kTrainingDomain) && !domains.contains(domain)) {
      opsets->DeleteSubrange(i, 1);
    }
  }
  auto* metadata = proto.mutable_metadata_props();
  for (int i = metadata->size() - 1; i >= 0; --i) {
    const std::string& key = metadata->Get(i).key();
    if (absl::StartsWith(key, "onward.") && key != kMetaClasses) metadata->DeleteSubrange(i, 1);
  }
  return out;
}

void AddTrainingEntry(const TrainingEntry& entry, Model* model) {
  onnx::ModelProto& proto = model->proto();
  onnx::TrainingInfoProto* info = proto.add_training_info();
  GraphToProto(entry.initialization, info->mutable_initialization());
  GraphToProto(entry.algorithm, info->mutable_algorithm());
  auto bind = [](const std::vector<Binding>& bindings, auto* target) {
    for (const Binding& b : bindings) {
      auto* e = target->Add();
      e->set_key(b.variable);
      e->set_value(b.value);
    }
  };
  bind(entry.initialization_bindings, info->mutable_initialization_binding());
  bind(entry.update_bindings, info->mutable_update_binding());
  std::set<FunctionKey> carried;
  for (const auto& f : proto.functions()) carried.insert({f.domain(), f.name(), f.overload()});
  for (const auto& [key, function] : entry.algorithm.functions) {
    if (!carried.contains(key)) FunctionToProto(key, *function, proto.add_functions());
  }
  std::map<std::string, int> opsets = model->opsets();
  for (const auto& [domain, version] : entry.algorithm.opsets) {
    if (opsets.contains(domain)) continue;
    auto* o = proto.add_opset_import();
    o->set_domain(domain);
    o->set_version(version);
  }
}

Model RebuildLike(const Model& like, const Graph& graph, int ir_version) {
  Model model = ModelFromGraph(graph, ir_version, like.proto().producer_name());
  model.set_path(like.path());
  *model.proto().mutable_metadata_props() = like.proto().metadata_props();
  model.proto().set_doc_string(like.proto().doc_string());
  return model;
}

absl::StatusOr<Variables> CurrentValues(const TrainingSpec& spec) {
  Variables variables;
  for (const std::string& name : spec.StateVariables()) {
    const Tensor* value = spec.FindInitializer(name);
    if (value == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("a binding names '", name, "', which is not an initializer"));
    }
    variables.emplace(name, value->Clone());
  }
  return variables;
}

}  // namespace onward
