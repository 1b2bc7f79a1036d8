// SPDX-License-Identifier: Apache-2.0
#include "cli/trainable.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/author_flags.h"
#include "core/base/status.h"
#include "trainer/run/class_labels.h"
#include "trainer/run/judging.h"
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

absl::StatusOr<Model> Author(const Args& args, const Dataset& data, const TrainOptions& run,
                             Model model, const Environment& environment,
                             std::vector<std::string>* notes) {
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
  InferClassAxes(graph, data, &options, notes);
  options.seed = run.seed;
  const int64_t fixed = FixedBatch(graph);
  options.free_batch = fixed > 0 && fixed != run.batch;
  if (NeedsTotal(options.schedule)) {
    const int64_t steps = PlannedSteps(run, data.size());
    options.schedule.options["total"] = static_cast<double>(steps);
    notes->push_back(absl::StrCat("schedule ", ScheduleText(options.schedule)));
  }
  // A new head is one for other classes.
  if (args.Has("head")) StoreClasses({}, &model);
  ONWARD_ASSIGN_OR_RETURN(AuthorResult result, MakeTrainable(model, options, environment));
  notes->insert(notes->end(), result.notes.begin(), result.notes.end());
  if (std::string note = TwiceNote(model, options); !note.empty()) notes->push_back(note);
  result.model.set_path(model.path());
  return std::move(result.model);
}

// A file that carries its training may fix how many examples a step takes.
absl::Status FitBatch(const Args& args, const Model& model, TrainOptions* run,
                      std::vector<std::string>* notes) {
  ONWARD_ASSIGN_OR_RETURN(const Graph graph, InferenceGraph(model));
  const int64_t fixed = FixedBatch(graph);
  if (fixed == 0 || fixed == run->batch) return absl::OkStatus();
  if (args.Has("batch")) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", model.path(), "' takes ", fixed, " examples a step, not ", run->batch,
                     ": use --batch ", fixed,
                     ", or begin with the inference model, whose batch `train` makes variable"));
  }
  run->batch = fixed;
  notes->push_back(absl::StrCat("batches of ", fixed, ", as '", model.path(), "' fixes them"));
  return absl::OkStatus();
}

// A file that says how it is trained is trained that way.
void NoteUnusedFlags(const Args& args, const Model& model, std::vector<std::string>* notes) {
  std::vector<std::string> unused;
  for (const Flag& flag : AuthorFlags()) {
    if (args.Has(flag.name)) unused.push_back(absl::StrCat("--", flag.name));
  }
  if (unused.empty()) return;
  notes->push_back(absl::StrCat(
      absl::StrJoin(unused, ", "), " not used: '", model.path(),
      "' says itself how it is trained; `onward export` makes a plain model of it, to begin with "
      "others"));
}

}  // namespace

absl::StatusOr<Model> TrainableModel(const Args& args, const Dataset& data, Model model,
                                     const Environment& environment, TrainOptions* run,
                                     std::vector<std::string>* notes) {
  if (!model.has_training()) {
    return Author(args, data, *run, std::move(model), environment, notes);
  }
  NoteUnusedFlags(args, model, notes);
  ONWARD_RETURN_IF_ERROR(FitBatch(args, model, run, notes));
  return model;
}

}  // namespace onward
