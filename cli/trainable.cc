// SPDX-License-Identifier: Apache-2.0
#include "cli/trainable.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "cli/author_flags.h"
#include "cli/open_data.h"
#include "core/base/status.h"
#include "trainer/run/balance.h"
#include "trainer/run/class_labels.h"
#include "trainer/run/judging.h"
#include "training_info/rate.h"
#include "training_info/step.h"
#include "training_info/surgery/surgery.h"

namespace onward {
namespace {

// The field that a loss will take its labels from, by the rules of Feeding: by the name of the
// label, and for the first loss what the data set calls its labels. Null where there is none.
const FieldInfo* LabelOf(const AuthorOptions& options, size_t number,
                         const std::vector<FieldInfo>& fields) {
  std::string name = options.label;
  if (number > 0) {
    name = number <= options.more_labels.size() ? options.more_labels[number - 1]
           : options.losses[number].outputs.empty()
               ? ""
               : absl::StrCat("label_", options.losses[number].outputs[0]);
  }
  for (const FieldInfo& field : fields) {
    if (field.name == name) return &field;
  }
  return number == 0 ? LabelField(fields) : nullptr;
}

// Where labels show that the classes are on the last axis, and nobody said so.
void InferClassAxes(const Graph& graph, const Dataset& data, AuthorOptions* options,
                    std::vector<std::string>* notes) {
  const std::vector<FieldInfo> fields = data.fields();
  const std::string first = options->output.empty() ? DefaultOutput(graph) : options->output;
  const auto infer = [&](size_t number, const std::string& output, LossSpec* loss) {
    const FieldInfo* label = LabelOf(*options, number, fields);
    if (label == nullptr || !InferClassAxis(graph.TypeOf(output), label->shape, loss)) return;
    notes->push_back(absl::StrCat("the labels of '", label->name, "' are ", label->shape.ToString(),
                                  " each, so the classes of output '", output,
                                  "' are on its last axis: ", LossText(*loss)));
  };
  if (options->losses.empty()) infer(0, first, &options->loss);
  for (size_t i = 0; i < options->losses.size(); ++i) {
    LossTerm& term = options->losses[i];
    if (term.file.empty()) infer(i, term.outputs.empty() ? first : term.outputs[0], &term.spec);
  }
}

// A schedule counts updates, each of `accumulate` steps.
void FillTotal(const TrainOptions& run, const Dataset& data, int64_t accumulate,
               ScheduleSpec* schedule) {
  if (!NeedsTotal(*schedule)) return;
  const int64_t updates = std::max<int64_t>(1, PlannedSteps(run, data.size()) / accumulate);
  schedule->options["total"] = static_cast<double>(updates);
}

absl::StatusOr<Model> Author(const Args& args, const std::shared_ptr<const Dataset>& labelled,
                             const std::optional<MadeTraining>& made, Model model,
                             const Environment& environment, TrainOptions* run,
                             std::vector<std::string>* notes) {
  const Dataset& data = *labelled;
  AuthorOptions options;
  ONWARD_ASSIGN_OR_RETURN(Graph graph, InferenceGraph(model));
  if (graph.outputs.empty())
    return absl::InvalidArgumentError(absl::StrCat("'", model.path(), "' has no outputs"));
  options.output = args.String("train-output");
  options.loss =
      DefaultLoss(graph, options.output.empty() ? DefaultOutput(graph) : options.output, data);
  // Mixed examples have mixed labels.
  if (data.hints().mixes() && options.loss.name == "cross_entropy") {
    options.loss.options.emplace("soft_labels", "1");
  }
  ONWARD_RETURN_IF_ERROR(ReadAuthorFlags(args, &options));
  if (made) ONWARD_RETURN_IF_ERROR(UseUsualTraining(args, *made, &options));
  if (args.Has("lr")) {
    (options.optimizer_file.empty() ? options.optimizer.options : options.optimizer_numbers)["lr"] =
        args.Double("lr");
  }
  InferClassAxes(graph, data, &options, notes);
  if (WeighsClasses(args)) {
    ONWARD_ASSIGN_OR_RETURN(const std::vector<std::string> classes, StoredClasses(model));
    ONWARD_RETURN_IF_ERROR(WeighClasses(graph, classes, labelled, &options));
  }
  options.seed = run->seed;
  const int64_t fixed = FixedBatch(graph);
  options.free_batch = fixed > 0 && fixed != run->batch;
  // A step of such a model takes whole batches only.
  if (fixed == run->batch) run->drop_last = true;
  FillTotal(*run, data, options.accumulate, &options.schedule);
  // A new head is one for other classes.
  if (args.Has("head")) StoreClasses({}, &model);
  ONWARD_ASSIGN_OR_RETURN(AuthorResult result, MakeTrainable(model, options, environment));
  // Of a model that was made a moment ago nobody asks what its parts are.
  if (!made || args.Has("train") || args.Has("freeze")) {
    notes->insert(notes->end(), result.notes.begin(), result.notes.end());
  }
  if (std::string note = TwiceNote(model, options); !note.empty()) notes->push_back(note);
  result.model.set_path(model.path());
  StoreAuthorFlags(args, &result.model);
  return std::move(result.model);
}

absl::Status ChangeRate(const Args& args, const Dataset& data, const TrainOptions& run,
                        const Environment& environment, std::vector<std::string>* notes,
                        Model* model) {
  if (!args.Has("lr") && !args.Has("schedule")) return absl::OkStatus();
  ONWARD_ASSIGN_OR_RETURN(const RateRecipe before, StoredRate(*model));
  const double rate = args.Has("lr") ? args.Double("lr") : before.optimizer.lr();
  ScheduleSpec schedule = before.schedule;
  if (args.Has("schedule")) {
    ONWARD_ASSIGN_OR_RETURN(schedule, ParseSchedule(args.String("schedule")));
    // A run that goes on as it began keeps the total that it began with.
    if (NeedsTotal(schedule) && schedule.name == before.schedule.name && run.resumed &&
        before.schedule.options.contains("total")) {
      schedule.options["total"] = before.schedule.options.at("total");
    }
    FillTotal(run, data, MetadataInt(*model, kMetaAccumulate, 1), &schedule);
  }
  const std::string text = ScheduleText(schedule), old = ScheduleText(before.schedule);
  if (rate == before.optimizer.lr() && text == old) return absl::OkStatus();
  notes->push_back(absl::StrCat("learning rate ", rate, ", schedule ", text, "; they were ",
                                before.optimizer.lr(), " and ", old));
  return ReplaceRate(rate, schedule, environment, model);
}

// A file that carries its training may fix how many examples a step takes.
absl::Status FitBatch(const Args& args, const Model& model, TrainOptions* run,
                      std::vector<std::string>* notes) {
  ONWARD_ASSIGN_OR_RETURN(const Graph graph, InferenceGraph(model));
  const int64_t fixed = FixedBatch(graph);
  if (fixed == 0) return absl::OkStatus();
  if (fixed != run->batch && args.Has("batch")) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", model.path(), "' takes ", fixed, " examples a step, not ", run->batch,
                     ": use --batch ", fixed,
                     ", or begin with the inference model, whose batch `train` makes variable"));
  }
  if (fixed != run->batch) {
    notes->push_back(absl::StrCat("batches of ", fixed, ", as '", model.path(), "' fixes them"));
  }
  run->batch = fixed;
  run->drop_last = true;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Model> TrainableModel(const Args& args,
                                     const std::shared_ptr<const Dataset>& labelled,
                                     const std::optional<MadeTraining>& made, Model model,
                                     const Environment& environment, TrainOptions* run,
                                     std::vector<std::string>* notes) {
  if (model.training_damaged()) return model;
  const Dataset& data = *labelled;
  const bool drops_last = run->drop_last;
  if (!model.has_training()) {
    ONWARD_ASSIGN_OR_RETURN(
        model, Author(args, labelled, made, std::move(model), environment, run, notes));
  } else {
    ONWARD_RETURN_IF_ERROR(CheckFlagsOfTrainable(args, model));
    ONWARD_RETURN_IF_ERROR(FitBatch(args, model, run, notes));
    ONWARD_RETURN_IF_ERROR(ChangeRate(args, data, *run, environment, notes, &model));
  }
  if (run->drop_last && !drops_last && !run->resumed && data.size() % run->batch != 0) {
    notes->push_back(absl::StrCat("the model takes whole batches of ", run->batch, ": ",
                                  data.size() % run->batch,
                                  " examples of each epoch are left out"));
  }
  if (run->on_nan == OnNan::kBack) ONWARD_RETURN_IF_ERROR(AddRateFactor(environment, &model));
  return model;
}

}  // namespace onward
