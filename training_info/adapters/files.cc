// SPDX-License-Identifier: Apache-2.0
#include "training_info/adapters/files.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status.h"
#include "core/graph/infer.h"
#include "core/graph/inline.h"
#include "core/graph/name_scope.h"
#include "core/graph/verify.h"
#include "training_info/adapters/delta.h"
#include "training_info/adapters/insert.h"
#include "training_info/export.h"
#include "training_info/import.h"
#include "training_info/surgery/surgery.h"

namespace onward {
namespace {

// The inference graph without functions, at least at opset kOldestWrittenOpset.
absl::StatusOr<Graph> TypedGraph(const Model& model, const Environment& environment) {
  ONWARD_ASSIGN_OR_RETURN(const Graph raw, InferenceGraph(model));
  ONWARD_ASSIGN_OR_RETURN(Graph graph, InlineFunctions(raw));
  ONWARD_RETURN_IF_ERROR(FindingsToStatus(CheckGraph(graph)));
  DropInitializersFromInputs(&graph);
  if (graph.opset() < kOldestWrittenOpset) {
    ONWARD_ASSIGN_OR_RETURN(graph, RaiseOpset(graph, kOldestWrittenOpset));
  }
  ONWARD_RETURN_IF_ERROR(InferTypes(&graph, environment.operators()));
  return graph;
}

std::string Typed(const Tensor& t) {
  return absl::StrCat(DTypeName(t.dtype()), t.shape().ToString());
}

// Puts the contents of a file of adapters on a graph.
class Applier {
 public:
  Applier(const Graph& file, Graph* graph) : file_(file), graph_(graph), names_(*graph) {}

  absl::Status Run() {
    for (const Target& target : FindTargets(*graph_, [](const std::string&) { return false; })) {
      targets_.emplace(std::pair(target.name, target.use), target);
    }
    for (const Adapter& present : FindAdapters(*graph_)) present_.insert(present.target);
    std::map<Site::Key, Adapter> inserted;
    for (Adapter adapter : FindAdapters(file_)) {
      ONWARD_ASSIGN_OR_RETURN(const Target* target, TargetOf(adapter));
      ONWARD_RETURN_IF_ERROR(TakeTensors(*target, &adapter));
      inserted.emplace(target->site.key, std::move(adapter));
    }
    ONWARD_RETURN_IF_ERROR(TakeWholeWeights());
    InsertAdapters(inserted, graph_);
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<const Target*> TargetOf(const Adapter& adapter) const {
    if (present_.contains(adapter.target)) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", adapter.target, "' has an adapter already"));
    }
    auto it = targets_.find({adapter.target, adapter.use});
    if (it != targets_.end()) return &it->second;
    std::set<std::string> names;
    for (const auto& [key, target] : targets_) names.insert(key.first);
    return absl::InvalidArgumentError(absl::StrCat(
        "there is an adapter for '", adapter.ToString(),
        "', but no such weight of a MatMul, Gemm, Conv or MatMulNBits in the model; there are: ",
        names.empty() ? "none" : absl::StrJoin(names, ", ")));
  }

  // A and B, in the type of the product.
  absl::Status TakeTensors(const Target& target, Adapter* adapter) {
    const Tensor a = file_.initializers.at(adapter->a), b = file_.initializers.at(adapter->b);
    const absl::Status fits = DeltaOf(target.site, a, b, 1).status();
    if (!fits.ok()) return Annotate(fits, absl::StrCat("the adapter of '", adapter->target, "'"));
    const auto take = [&](const Tensor& tensor, std::string* name) -> absl::Status {
      ONWARD_ASSIGN_OR_RETURN(const std::vector<double> numbers, ToDoubles(tensor));
      ONWARD_ASSIGN_OR_RETURN(Tensor typed,
                              Sum(Tensor::Zeros(target.site.dtype, tensor.shape()), numbers));
      *name = names_.Unique(*name);
      graph_->types[*name] = ValueType::Of(typed.dtype(), typed.shape());
      graph_->initializers.insert_or_assign(*name, std::move(typed));
      return absl::OkStatus();
    };
    ONWARD_RETURN_IF_ERROR(take(a, &adapter->a));
    ONWARD_RETURN_IF_ERROR(take(b, &adapter->b));
    WriteMetadata(*adapter, graph_);
    return absl::OkStatus();
  }

  absl::Status TakeWholeWeights() {
    for (const auto& [name, tensor] : file_.initializers) {
      if (file_.ValueMetadata(name, kLoraPartKey) != kLoraWhole) continue;
      LiftConstants(graph_, {name});
      auto place = graph_->initializers.find(name);
      const std::string there = place == graph_->initializers.end() ? "" : Typed(place->second);
      if (there != Typed(tensor)) {
        return absl::InvalidArgumentError(absl::StrCat(
            "'", name, "', which was trained whole beside the adapters, is ", Typed(tensor),
            "; in the model it is ", there.empty() ? "not there" : there,
            ". Put them on the model that `onward export TRAINED --adapters FILE -o BASE` writes"));
      }
      place->second = tensor;
    }
    return absl::OkStatus();
  }

  const Graph& file_;
  Graph* const graph_;
  NameScope names_;
  std::map<std::pair<std::string, int>, Target> targets_;
  std::set<std::string> present_;
};

}  // namespace

absl::StatusOr<std::vector<Adapter>> AdaptersOf(const Model& model) {
  ONWARD_ASSIGN_OR_RETURN(const Graph graph, InferenceGraph(model));
  return FindAdapters(graph);
}

absl::StatusOr<MergedModel> WithAdaptersMerged(const Model& model, MergeMode mode,
                                               const Environment& environment) {
  ONWARD_ASSIGN_OR_RETURN(const std::vector<Adapter> adapters, AdaptersOf(model));
  if (adapters.empty()) return MergedModel{model, {}};
  ONWARD_ASSIGN_OR_RETURN(Graph graph, TypedGraph(model, environment));
  ONWARD_ASSIGN_OR_RETURN(Merged merged, MergeAdapters(mode, environment, &graph));
  return MergedModel{RebuildLike(model, graph, model.ir_version()), std::move(merged)};
}

absl::StatusOr<Model> AdaptersApart(const Model& trained) {
  ONWARD_ASSIGN_OR_RETURN(const TrainingSpec spec, ImportTraining(trained));
  const Graph& from = spec.inference;
  Graph graph;
  graph.name = "adapters";
  graph.opsets[""] = kOldestWrittenOpset;
  for (const Adapter& adapter : FindAdapters(from)) {
    for (const std::string& name : {adapter.a, adapter.b})
      graph.initializers.emplace(name, from.initializers.at(name));
    WriteMetadata(adapter, &graph);
  }
  if (graph.initializers.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", trained.path(),
                     "' has no adapters; `onward make-trainable --lora PATTERN` adds them"));
  }
  for (const std::string& name : spec.StateVariables()) {
    auto it = from.initializers.find(name);
    if (it == from.initializers.end() || graph.initializers.contains(name)) continue;
    graph.initializers.emplace(name, it->second);
    graph.metadata[name][kLoraPartKey] = kLoraWhole;
  }
  Model model = ModelFromGraph(graph, kWrittenIr, "onward");
  model.SetMetadata(kMetaAdapters, kMetaLora);
  return model;
}

absl::StatusOr<AppliedModel> WithAdapters(const Model& model, const Model& adapters,
                                          const Environment& environment) {
  ONWARD_ASSIGN_OR_RETURN(const Graph file, InferenceGraph(adapters));
  if (FindAdapters(file).empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", adapters.path(), "' holds no adapters; `onward export --adapters FILE` writes them"));
  }
  AppliedModel applied;
  ONWARD_ASSIGN_OR_RETURN(Graph graph, TypedGraph(model, environment));
  if (const std::map<std::string, int> opsets = model.opsets();
      opsets.contains("") && opsets.at("") < kOldestWrittenOpset) {
    applied.notes.push_back(
        absl::StrCat("raised the model from opset ", opsets.at(""), " to ", kOldestWrittenOpset));
  }
  const absl::Status status = Applier(file, &graph).Run();
  if (!status.ok()) return Annotate(status, absl::StrCat("'", adapters.path(), "'"));
  ONWARD_RETURN_IF_ERROR(InferTypes(&graph, environment.operators()));
  applied.model = RebuildLike(model, graph, std::max(model.ir_version(), kWrittenIr));
  return applied;
}

}  // namespace onward
