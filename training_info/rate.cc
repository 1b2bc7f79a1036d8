// SPDX-License-Identifier: Apache-2.0
#include "training_info/rate.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/graph/verify.h"
#include "training_info/author_update.h"
#include "training_info/export.h"
#include "training_info/import.h"

namespace onward {
namespace {

bool IsFactor(const Tensor& t) { return t.dtype() == DType::kDouble && t.elements() == 1; }

// An entry of the file while its rate is written anew.
class RateEditor {
 public:
  static absl::StatusOr<RateEditor> Open(const Model& model) {
    ONWARD_ASSIGN_OR_RETURN(TrainingSpec spec, ImportTraining(model));
    for (size_t k = 0; k < spec.entries.size(); ++k) {
      if (!spec.entries[k].algorithm.IsOutput(kRateOutput)) continue;
      RateEditor editor(static_cast<int>(k), std::move(spec.entries[k]));
      ONWARD_RETURN_IF_ERROR(Annotate(
          editor.CheckNames(), absl::StrCat("'", model.path(), "', training_info[", k, "]")));
      return editor;
    }
    return absl::FailedPreconditionError(
        absl::StrCat("'", model.path(), "' has no value '", kRateOutput,
                     "': it was not made trainable here, so its learning rate cannot be changed"));
  }

  bool has_factor() const { return entry_.algorithm.initializers.contains(kRateFactor); }
  absl::Status CheckNames() const {
    const Graph& graph = entry_.algorithm;
    const auto factor = graph.initializers.find(kRateFactor);
    if (factor != graph.initializers.end() && !IsFactor(factor->second)) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", kRateFactor, "' is no double scalar: it is not ours"));
    }
    if (graph.initializers.contains(kStepVariable)) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("there is no variable '", kStepVariable, "'"));
  }
  DType dtype() const {
    for (const NamedType& out : entry_.algorithm.outputs) {
      if (out.name == kRateOutput && out.type.dtype != DType::kUndefined) return out.type.dtype;
    }
    return DType::kFloat;
  }

  // The value that was the rate, under another name, which is free from now on.
  Expr TakeRate(GraphBuilder& b) {
    const std::string before = b.UniqueName(absl::StrCat(kRateOutput, "__planned"));
    for (Node& node : entry_.algorithm.nodes) {
      std::replace(node.outputs.begin(), node.outputs.end(), std::string(kRateOutput), before);
    }
    entry_.algorithm.types[before] = ValueType::Of(dtype(), {});
    return b.Value(before);
  }

  void AddFactor(GraphBuilder& b) {
    Graph& graph = entry_.algorithm;
    graph.initializers.emplace(kRateFactor, Tensor::Scalar<double>(1));
    graph.types[kRateFactor] = ValueType::Of(DType::kDouble, {});
    const Expr same =
        b.Named(b.Value(kRateFactor), b.UniqueName(absl::StrCat(kRateFactor, "__new")));
    graph.outputs.push_back({same.name(), same.type()});
    entry_.update_bindings.push_back({kRateFactor, same.name()});
  }

  void SetRate(GraphBuilder& b, const Expr& rate) {
    Expr scaled = rate;
    if (has_factor()) {
      scaled = Cast(Cast(rate, DType::kDouble) * b.Value(kRateFactor), dtype());
    }
    b.Named(scaled, kRateOutput);
  }

  // The number of updates before this one.
  Expr Count(GraphBuilder& b, int first) {
    entry_.algorithm.types[kStepVariable] = ValueType::Of(DType::kInt64, {});
    const Expr step = b.Value(kStepVariable);
    return first == 0 ? step : step - b.Int(first);
  }

  absl::Status Write(const GraphBuilder& b, Model* model) {
    ONWARD_RETURN_IF_ERROR(b.status());
    std::vector<std::string> wanted;
    for (const NamedType& out : entry_.algorithm.outputs) wanted.push_back(out.name);
    for (const Binding& binding : entry_.update_bindings) {
      wanted.push_back(binding.variable);
      wanted.push_back(binding.value);
    }
    Prune(&entry_.algorithm, wanted);
    ONWARD_RETURN_IF_ERROR(SortNodes(&entry_.algorithm));
    SetAlgorithm(number_, entry_, model);
    return absl::OkStatus();
  }

  Graph* graph() { return &entry_.algorithm; }

 private:
  RateEditor(int number, TrainingEntry entry) : number_(number), entry_(std::move(entry)) {}

  int number_;
  TrainingEntry entry_;
};

}  // namespace

void StoreRate(const RateRecipe& recipe, Model* model) {
  model->SetMetadata(kMetaOptimizer, OptimizerChoiceText(recipe.optimizer));
  model->SetMetadata(kMetaSchedule, ScheduleText(recipe.schedule));
}

absl::StatusOr<RateRecipe> StoredRate(const Model& model) {
  const std::string optimizer = model.Metadata(kMetaOptimizer);
  const std::string schedule = model.Metadata(kMetaSchedule);
  if (optimizer.empty() || schedule.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("'", model.path(), "' does not say what its optimizer and schedule are"));
  }
  RateRecipe recipe;
  const std::string where = absl::StrCat("'", model.path(), "': metadata ");
  auto read = ParseOptimizerChoice(optimizer);
  if (!read.ok()) return Annotate(read.status(), where + kMetaOptimizer);
  recipe.optimizer = *std::move(read);
  auto plan = ParseSchedule(schedule);
  if (!plan.ok()) return Annotate(plan.status(), where + kMetaSchedule);
  recipe.schedule = *std::move(plan);
  return recipe;
}

absl::Status AddRateFactor(const Environment& environment, Model* model) {
  ONWARD_ASSIGN_OR_RETURN(RateEditor editor, RateEditor::Open(*model));
  if (editor.has_factor()) return absl::OkStatus();
  GraphBuilder b(editor.graph(), &environment.operators(), "rate");
  const Expr planned = editor.TakeRate(b);
  editor.AddFactor(b);
  editor.SetRate(b, planned);
  return editor.Write(b, model);
}

absl::Status ReplaceRate(double base_rate, const ScheduleSpec& schedule,
                         const Environment& environment, Model* model) {
  ONWARD_ASSIGN_OR_RETURN(RateRecipe recipe, StoredRate(*model));
  ONWARD_ASSIGN_OR_RETURN(RateEditor editor, RateEditor::Open(*model));
  const int first = recipe.optimizer.is_file() ? 0 : FirstStep(recipe.optimizer.spec);
  GraphBuilder b(editor.graph(), &environment.operators(), "rate");
  editor.TakeRate(b);
  if (schedule.name == kReduceOnPlateau && !editor.has_factor()) editor.AddFactor(b);
  editor.SetRate(b, BuildSchedule(b, schedule, base_rate, editor.Count(b, first), editor.dtype()));
  ONWARD_RETURN_IF_ERROR(editor.Write(b, model));
  auto& numbers =
      recipe.optimizer.is_file() ? recipe.optimizer.numbers : recipe.optimizer.spec.options;
  numbers["lr"] = base_rate;
  recipe.schedule = schedule;
  StoreRate(recipe, model);
  return absl::OkStatus();
}

bool HasRateFactor(const TrainingModel& model) {
  const auto it = model.variables().find(kRateFactor);
  return it != model.variables().end() && IsFactor(it->second);
}

double RateFactor(const TrainingModel& model) {
  return HasRateFactor(model) ? *model.variables().at(kRateFactor).data<double>() : 1;
}

void SetRateFactor(double factor, TrainingModel* model) {
  CheckInvariant(HasRateFactor(*model), "who sets the factor of the rate has added it");
  *model->variables().at(kRateFactor).data<double>() = factor;
}

}  // namespace onward
