// SPDX-License-Identifier: Apache-2.0
// The state of a TrainingModel: how it begins, where it goes back to, how it is written.
#include <algorithm>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "training_info/averages.h"
#include "training_info/export.h"
#include "training_info/import.h"
#include "training_info/step.h"

namespace onward {
namespace {

uint64_t MetadataNumber(const Model& model, const char* key) {
  uint64_t value = 0;
  return absl::SimpleAtoi(model.Metadata(key), &value) ? value : 0;
}

Variables CopyOf(const Variables& variables) {
  Variables copy;
  for (const auto& [name, tensor] : variables) copy.emplace(name, tensor.Clone());
  return copy;
}

// Into the same memory: plans hold no pointers, but callers may.
void Assign(const Variables& saved, Variables* variables) {
  for (const auto& [name, tensor] : saved) {
    std::memcpy(variables->at(name).raw(), tensor.raw(), tensor.bytes());
  }
}

}  // namespace

void TrainingModel::ReadCounters(const Model& model) {
  random_ = {MetadataNumber(model, kMetaRandomSeed), MetadataNumber(model, kMetaRandomStep)};
  iteration_ = MetadataNumber(model, kMetaIteration);
}

absl::Status TrainingModel::OpenVariables() {
  std::set<std::string> names = spec_.StateVariables(), drawn;
  std::vector<Graph*> graphs = {&spec_.inference};
  for (TrainingEntry& entry : spec_.entries) {
    graphs.push_back(&entry.algorithm);
    for (const Binding& b : entry.initialization_bindings) drawn.insert(b.variable);
  }
  for (Graph& graph : lowered_) graphs.push_back(&graph);
  // What Initialize cannot compute it has to find.
  for (const std::string& name : names) {
    const Tensor* value = drawn.contains(name) ? nullptr : spec_.FindInitializer(name);
    if (value != nullptr) originals_.emplace(name, *value);
  }
  averages_ = AveragesOf(spec_);
  ONWARD_ASSIGN_OR_RETURN(variables_, TakeVariables(names, graphs, &model_));
  return absl::OkStatus();
}

absl::Status TrainingModel::Initialize() {
  Variables fresh = originals_;
  for (int k = 0; k < entries(); ++k) {
    const TrainingEntry& entry = spec_.entries[k];
    if (entry.initialization_bindings.empty()) continue;
    ONWARD_ASSIGN_OR_RETURN(Graph graph, Canonicalize(entry.initialization));
    CompileOptions options = environment_.compile_options();
    Session session(std::move(graph), options);
    RunOptions run;
    run.random = random_;
    auto values = session.Run({}, nullptr, run);
    if (!values.ok())
      return Annotate(values.status(), absl::StrCat("training_info[", k, "].initialization"));
    for (const Binding& b : entry.initialization_bindings) {
      const Tensor& value = values->at(b.value);
      const Tensor& variable = variables_.at(b.variable);
      if (value.dtype() != variable.dtype() || value.shape() != variable.shape()) {
        return absl::InvalidArgumentError(
            absl::StrCat("training_info[", k, "].initialization_binding: '", b.variable, "' is ",
                         DTypeName(variable.dtype()), variable.shape().ToString(), ", but '",
                         b.value, "' is ", DTypeName(value.dtype()), value.shape().ToString()));
      }
      fresh.insert_or_assign(b.variable, value);
    }
  }
  Overwrite(fresh);
  iteration_ = 0;
  return absl::OkStatus();
}

absl::Status TrainingModel::Reset(const Model& start) {
  ONWARD_ASSIGN_OR_RETURN(const TrainingSpec spec, ImportTraining(start));
  Variables values;
  for (const auto& [name, tensor] : std::as_const(*this).variables()) {
    const Tensor* value = spec.FindInitializer(name);
    if (value == nullptr || value->dtype() != tensor.dtype() || value->shape() != tensor.shape()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", start.path(), "' has no initializer '", name, "' of type ",
          ValueType::Of(tensor.dtype(), tensor.shape()).ToString(),
          "; a training goes back to the model it was opened with, or to a checkpoint of it"));
    }
    values.emplace(name, *value);
  }
  Overwrite(values);
  ReadCounters(start);
  return absl::OkStatus();
}

Variables TrainingModel::AveragedVariables() const { return WithAverages(averages_, variables()); }

absl::StatusOr<Model> TrainingModel::Export() const {
  BringHome();
  ONWARD_RETURN_IF_ERROR(TakeFetched());
  // One lease for all that share the present memory: it ends with the last of them.
  std::shared_ptr<Variables> lent = lent_.lock();
  if (lent == nullptr) lent = std::make_shared<Variables>(variables_);
  Variables shown;
  for (auto& [name, tensor] : *lent) {
    shown.emplace(name, Tensor(tensor.dtype(), tensor.shape(), tensor.raw(), lent));
  }
  ONWARD_ASSIGN_OR_RETURN(Model out, WithVariables(model_, shown));
  out.SetMetadata(kMetaRandomSeed, absl::StrCat(random_.seed));
  out.SetMetadata(kMetaRandomStep, absl::StrCat(random_.step));
  const bool rated = std::any_of(spec_.entries.begin(), spec_.entries.end(),
                                 [](const TrainingEntry& entry) { return entry.rate.every > 1; });
  if (rated) out.SetMetadata(kMetaIteration, absl::StrCat(iteration_));
  lent_ = lent;
  return out;
}

bool TrainingModel::BringHome() const {
  const absl::Status status = residents_.Fetch(&variables_);
  fetched_.Update(status);
  return status.ok();
}

void TrainingModel::Overwrite(const Variables& all) {
  Assign(all, &variables());
  residents_.Forget();
  fetched_ = absl::OkStatus();
}

Variables TrainingModel::CopyOfVariables() const { return CopyOf(variables()); }

void TrainingModel::RestoreVariables(const Variables& saved) {
  if (saved.empty()) {
    variables();
  } else {
    Overwrite(saved);
  }
}

void TrainingModel::OwnVariables() {
  if (lent_.expired()) return;
  variables_ = CopyOf(variables_);
  lent_.reset();
}

}  // namespace onward
