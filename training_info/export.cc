// SPDX-License-Identifier: Apache-2.0
#include "training_info/export.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status.h"
#include "core/onnx_io/proto.h"
#include "training_info/export_proto.h"

namespace onward {

absl::Status SetValues(const Tensor& value, onnx::TensorProto* proto, Weights* held) {
  const Shape shape(absl::MakeConstSpan(proto->dims().data(), proto->dims_size()));
  if (static_cast<DType>(proto->data_type()) != value.dtype() || shape != value.shape()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "initializer '", proto->name(), "' is ", DTypeName(static_cast<DType>(proto->data_type())),
        shape.ToString(), ", but its new value is ", DTypeName(value.dtype()),
        value.shape().ToString()));
  }
  ReplaceValues(value, proto, held);
  return absl::OkStatus();
}

absl::Status SetInitializers(const Variables& variables, onnx::GraphProto* graph, Weights* held,
                             std::set<std::string>* done) {
  for (onnx::TensorProto& t : *graph->mutable_initializer()) {
    auto it = variables.find(t.name());
    if (it == variables.end()) continue;
    ONWARD_RETURN_IF_ERROR(SetValues(it->second, &t, held));
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
  Weights* held = &out.weights();
  ONWARD_RETURN_IF_ERROR(SetInitializers(variables, out.proto().mutable_graph(), held, &done));
  for (auto& info : *out.proto().mutable_training_info()) {
    ONWARD_RETURN_IF_ERROR(SetInitializers(variables, info.mutable_algorithm(), held, &done));
  }
  ONWARD_RETURN_IF_ERROR(RequirePlaces(variables, done, "the model"));
  return out;
}

Model InferenceOnly(const Model& model) {
  Model out = model;
  out.set_training_damaged(false);
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
    const bool handed_on = key == kMetaClasses || key == kMetaPreparation;
    if (absl::StartsWith(key, "onward.") && !handed_on) metadata->DeleteSubrange(i, 1);
  }
  return out;
}

void AddTrainingEntry(const TrainingEntry& entry, Model* model) {
  onnx::ModelProto& proto = model->proto();
  onnx::TrainingInfoProto* info = proto.add_training_info();
  Weights* held = &model->weights();
  GraphToProto(entry.initialization, info->mutable_initialization(), held);
  GraphToProto(entry.algorithm, info->mutable_algorithm(), held);
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
    if (!carried.contains(key)) FunctionToProto(key, *function, proto.add_functions(), held);
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

absl::StatusOr<Variables> TakeVariables(const std::set<std::string>& names,
                                        const std::vector<Graph*>& graphs, Model* model) {
  // Before the message changes: where the model holds them.
  std::map<std::string, int64_t> numbers;
  const auto note = [&](const onnx::GraphProto& graph) {
    for (const onnx::TensorProto& t : graph.initializer()) {
      const std::optional<int64_t> number = HeldNumber(t);
      if (number.has_value() && names.contains(t.name())) numbers.emplace(t.name(), *number);
    }
  };
  note(std::as_const(*model).proto().graph());
  for (const auto& info : std::as_const(*model).proto().training_info()) note(info.algorithm());
  Weights& weights = model->weights();
  Variables variables;
  for (const std::string& name : names) {
    Tensor value;
    std::vector<Tensor*> places;
    for (Graph* graph : graphs) {
      auto it = graph->initializers.find(name);
      if (it == graph->initializers.end()) continue;
      places.push_back(&it->second);
      Tensor there = std::exchange(it->second, {});
      if (!value.defined()) value = std::move(there);
    }
    if (places.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("a binding names '", name, "', which is not an initializer"));
    }
    auto number = numbers.find(name);
    if (number == numbers.end() || value.dtype() == DType::kBool) {
      value = value.Clone();
    } else {
      const DType dtype = value.dtype();
      const Shape shape = value.shape();
      value = {};
      ONWARD_ASSIGN_OR_RETURN(value, weights.Take(number->second, dtype, shape));
    }
    for (Tensor* place : places) *place = value;
    variables.emplace(name, std::move(value));
  }
  ONWARD_ASSIGN_OR_RETURN(*model, WithVariables(*model, variables));
  return variables;
}

}  // namespace onward
