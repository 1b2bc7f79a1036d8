// SPDX-License-Identifier: Apache-2.0
#include "training_info/step.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status.h"
#include "training_info/combine.h"
#include "training_info/lower.h"
#include "training_info/surgery/surgery.h"
#include "training_info/validate.h"

namespace onward {

absl::StatusOr<std::unique_ptr<TrainingModel>> TrainingModel::Create(
    Model model, const Environment& environment) {
  auto trainer = std::unique_ptr<TrainingModel>(new TrainingModel(std::move(model), environment));
  const std::string where = absl::StrCat("'", trainer->model_.path(), "'");
  ONWARD_ASSIGN_OR_RETURN(trainer->spec_, ValidTraining(trainer->model_, environment));
  for (int k = 0; k < trainer->entries(); ++k) {
    ONWARD_ASSIGN_OR_RETURN(Graph combined, Combine(trainer->spec_, k));
    auto lowered = Lower(combined, environment, trainer->spec_.StateVariables());
    if (!lowered.ok())
      return Annotate(lowered.status(), absl::StrCat(where, ", training_info[", k, "]"));
    trainer->lowered_.push_back(*std::move(lowered));
  }
  ONWARD_RETURN_IF_ERROR(trainer->OpenVariables());
  trainer->ReadCounters(trainer->model_);
  return trainer;
}

CompileOptions TrainingModel::StepOptions(int entry, const std::vector<std::string>& outputs,
                                          Effect effect) const {
  CompileOptions options = environment_.compile_options();
  const std::set<std::string> state = spec_.StateVariables();
  options.variables.insert(state.begin(), state.end());
  if (effect == Effect::kAssigns) {
    for (const Binding& b : spec_.entries[entry].update_bindings)
      options.updates.emplace_back(b.variable, b.value);
  }
  const Graph& graph = lowered_[entry];
  if (!outputs.empty()) {
    options.outputs.emplace();
    for (const std::string& name : outputs) {
      if (graph.IsOutput(name)) options.outputs->push_back(name);
    }
  }
  const std::string loss = model_.Metadata(kMetaLoss);
  if (effect == Effect::kAssigns && !loss.empty() && graph.IsOutput(loss) &&
      model_.Metadata(kMetaLossScale).empty()) {
    options.finite.push_back(loss);
  }
  options.looked_at = model_.weights().PageReleaser();
  return options;
}

TrainingModel::Program& TrainingModel::StepProgram(int entry,
                                                   const std::vector<std::string>& outputs,
                                                   Effect effect) {
  auto& program = programs_[{entry, effect, outputs}];
  if (program == nullptr) {
    program = std::make_unique<Program>(
        Program{Session(lowered_[entry], StepOptions(entry, outputs, effect)),
                InputsOf(entry, outputs, effect)});
  }
  return *program;
}

absl::StatusOr<Executor*> TrainingModel::PrepareStep(int entry, const TensorMap& feeds,
                                                     const std::vector<std::string>& outputs) {
  std::map<std::string, FeedType> types;
  for (const auto& [name, tensor] : feeds) types[name] = {tensor.dtype(), tensor.shape()};
  return PrepareStep(entry, types, outputs);
}

absl::StatusOr<Executor*> TrainingModel::PrepareStep(int entry,
                                                     const std::map<std::string, FeedType>& feeds,
                                                     const std::vector<std::string>& outputs) {
  return StepProgram(entry, outputs, Effect::kAssigns).session.Prepare(feeds);
}

absl::Status TrainingModel::CheckOutput(const std::string& name) const {
  std::set<std::string> outputs;
  for (const Graph& graph : lowered_) {
    for (const NamedType& out : graph.outputs) outputs.insert(out.name);
  }
  if (outputs.contains(name)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "'", name, "' is not an output of the step; valid: ", absl::StrJoin(outputs, ", ")));
}

std::vector<NamedType> TrainingModel::StepInputs(int entry,
                                                 const std::vector<std::string>& outputs) const {
  return InputsOf(entry, outputs, Effect::kAssigns);
}

std::vector<NamedType> TrainingModel::InputsOf(int entry, const std::vector<std::string>& outputs,
                                               Effect effect) const {
  std::vector<NamedType> inputs;
  for (int k = 0; k < entries(); ++k) {
    if (entry >= 0 && k != entry) continue;
    Graph graph = lowered_[k];
    const CompileOptions options = StepOptions(k, outputs, effect);
    std::vector<std::string> needed = WantedOutputs(graph, options);
    for (const auto& [variable, value] : options.updates) needed.push_back(value);
    for (const std::string& value : options.finite) needed.push_back(value);
    Prune(&graph, needed);
    absl::flat_hash_set<std::string> read(needed.begin(), needed.end());
    for (const Node& node : graph.nodes) {
      for (std::string& v : AllInputs(node)) read.insert(std::move(v));
    }
    for (const NamedType& in : lowered_[k].FeedInputs()) {
      const bool listed = std::any_of(inputs.begin(), inputs.end(),
                                      [&](const NamedType& t) { return t.name == in.name; });
      if (!listed && read.contains(in.name)) inputs.push_back(in);
    }
  }
  return inputs;
}

absl::StatusOr<ValueMap> TrainingModel::RunEntry(int entry, const ValueMap& feeds,
                                                 const std::vector<std::string>& outputs,
                                                 const std::atomic<bool>* cancel, Effect effect) {
  Program& program = StepProgram(entry, outputs, effect);
  for (const auto& [name, value] : feeds) {
    if (variables_.contains(name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", name, "' is a state variable; a step does not take it as input"));
    }
  }
  ValueMap relevant;
  for (const NamedType& in : program.inputs) {
    auto it = feeds.find(in.name);
    if (it == feeds.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("a step needs the input '", in.name, "' (", in.type.ToString(), ")"));
    }
    ONWARD_RETURN_IF_ERROR(CheckFeed(in, it->second));
    relevant.insert(*it);
  }
  ONWARD_RETURN_IF_ERROR(TakeFetched());
  if (effect == Effect::kAssigns) OwnVariables();
  RunOptions run;
  run.random = random_;
  run.cancel = cancel;
  run.residents = &residents_;
  run.on_step = on_kernel_;
  if (effect == Effect::kAssigns) {
    run.writer = &writer_;
    run.meanwhile = std::exchange(meanwhile_, nullptr);
  }
  auto result = program.session.RunValues(relevant, &variables_, run);
  if (!result.ok()) {
    return entries() > 1 ? Annotate(result.status(), absl::StrCat("training_info[", entry, "]"))
                         : result.status();
  }
  return result;
}

absl::StatusOr<ValueMap> TrainingModel::StepEntryValues(int entry, const ValueMap& feeds,
                                                        const std::vector<std::string>& outputs,
                                                        const std::atomic<bool>* cancel) {
  if (entry < 0 || entry >= entries()) {
    return absl::InvalidArgumentError(absl::StrCat("there is no training_info[", entry,
                                                   "]: the model has ", entries(), " entries"));
  }
  auto result = RunEntry(entry, feeds, outputs, cancel);
  if (result.ok()) ++random_.step;
  return result;
}

absl::StatusOr<TensorMap> TrainingModel::StepEntry(int entry, const TensorMap& feeds,
                                                   const std::vector<std::string>& outputs,
                                                   const std::atomic<bool>* cancel) {
  ONWARD_ASSIGN_OR_RETURN(ValueMap results,
                          StepEntryValues(entry, ToValues(feeds), outputs, cancel));
  return ToTensors(std::move(results));
}

absl::StatusOr<ValueMap> TrainingModel::StepValues(const ValueMap& feeds,
                                                   const std::vector<std::string>& outputs,
                                                   const std::atomic<bool>* cancel) {
  // With one entry a failed run has changed nothing; with several, earlier
  // entries may have assigned already.
  const Variables saved = entries() > 1 ? CopyOfVariables() : Variables{};
  ONWARD_RETURN_IF_ERROR(TakeFetched());
  ValueMap all;
  const uint64_t iteration = iteration_++;  // so that what is staged meanwhile is the next one's
  for (int k = 0; k < entries(); ++k) {
    if (!TakesPart(k, iteration)) continue;
    auto result = RunEntry(k, feeds, outputs, cancel);
    if (!result.ok()) {
      iteration_ = iteration;
      RestoreVariables(saved);
      return result.status();
    }
    for (auto& [name, value] : *result) all[name] = std::move(value);
  }
  ++random_.step;
  return all;
}

absl::StatusOr<TensorMap> TrainingModel::Step(const TensorMap& feeds,
                                              const std::vector<std::string>& outputs,
                                              const std::atomic<bool>* cancel) {
  ONWARD_ASSIGN_OR_RETURN(ValueMap results, StepValues(ToValues(feeds), outputs, cancel));
  return ToTensors(std::move(results));
}

absl::Status TrainingModel::Stage(const TensorMap& feeds, const std::vector<std::string>& outputs) {
  for (int k = 0; k < entries(); ++k) {
    if (!TakesPart(k, iteration_)) continue;
    Program& program = StepProgram(k, outputs, Effect::kAssigns);
    TensorMap relevant;
    for (const NamedType& in : program.inputs) {
      if (auto it = feeds.find(in.name); it != feeds.end()) relevant.insert(*it);
    }
    ONWARD_RETURN_IF_ERROR(program.session.Stage(relevant));
  }
  return absl::OkStatus();
}

absl::StatusOr<ValueMap> TrainingModel::EvaluateValues(const ValueMap& feeds,
                                                       const std::vector<std::string>& outputs,
                                                       const std::atomic<bool>* cancel) {
  ValueMap all;
  for (int k = 0; k < entries(); ++k) {
    ONWARD_ASSIGN_OR_RETURN(ValueMap result,
                            RunEntry(k, feeds, outputs, cancel, Effect::kChangesNothing));
    for (auto& [name, value] : result) all[name] = std::move(value);
  }
  return all;
}

absl::StatusOr<TensorMap> TrainingModel::Evaluate(const TensorMap& feeds,
                                                  const std::vector<std::string>& outputs,
                                                  const std::atomic<bool>* cancel) {
  ONWARD_ASSIGN_OR_RETURN(ValueMap results, EvaluateValues(ToValues(feeds), outputs, cancel));
  return ToTensors(std::move(results));
}

absl::StatusOr<TensorMap> TrainingModel::Infer(const TensorMap& feeds) {
  if (inference_ == nullptr) {
    ONWARD_ASSIGN_OR_RETURN(Graph graph,
                            Lower(spec_.inference, environment_, spec_.StateVariables()));
    SetInferenceMode(&graph);
    CompileOptions options = environment_.compile_options();
    const std::set<std::string> state = spec_.StateVariables();
    options.variables.insert(state.begin(), state.end());
    options.looked_at = model_.weights().PageReleaser();
    inference_ = std::make_unique<Session>(std::move(graph), options);
  }
  RunOptions run;
  run.residents = &residents_;
  return inference_->Run(feeds, &variables_, run);
}

}  // namespace onward
