// SPDX-License-Identifier: Apache-2.0
// onward train, onward eval.
#include <cmath>
#include <filesystem>
#include <iostream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/author_flags.h"
#include "cli/commands.h"
#include "cli/compute_flags.h"
#include "cli/open_data.h"
#include "cli/write_checked.h"
#include "core/base/parallel.h"
#include "core/base/status.h"
#include "trainer/report/jsonl.h"
#include "trainer/run/class_labels.h"
#include "trainer/run/loop.h"
#include "training_info/lower.h"
#include "training_info/surgery/surgery.h"

namespace onward {
namespace {

constexpr char kDefaultBatch[] = "64";
constexpr double kMostEpochs = 1e9;

int64_t StoredNumber(const Model& model, const char* key, int64_t otherwise) {
  int64_t value = 0;
  return absl::SimpleAtoi(model.Metadata(key), &value) ? value : otherwise;
}

// A trainable model: the file's own, or made so with the flags.
absl::StatusOr<Model> TrainableModel(const Args& args, const Dataset& data, int64_t batch,
                                     const std::optional<MadeTraining>& made, Model model,
                                     const Environment& environment) {
  if (model.has_training()) return model;
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
  options.seed = static_cast<uint64_t>(args.Int("seed"));
  const int64_t fixed = FixedBatch(graph);
  options.free_batch = fixed > 0 && fixed != batch;
  // A new head is one for other classes.
  if (args.Has("head")) StoreClasses({}, &model);
  ONWARD_ASSIGN_OR_RETURN(AuthorResult result, MakeTrainable(model, options, environment));
  if (!args.Has("quiet")) {
    for (const std::string& note : result.notes) std::cerr << "note: " << note << "\n";
    if (const std::string note = TwiceNote(model, options); !note.empty())
      std::cerr << "note: " << note << "\n";
  }
  result.model.set_path(model.path());
  return std::move(result.model);
}

// A file that carries its training may fix how many examples a step takes.
absl::Status FitBatch(const Args& args, const TrainingModel& training, TrainOptions* options) {
  const int64_t fixed = FixedBatch(training.spec().inference);
  if (fixed == 0 || fixed == options->batch) return absl::OkStatus();
  if (args.Has("batch")) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", training.model().path(), "' takes ", fixed, " examples a step, not ",
                     options->batch, ": use --batch ", fixed,
                     ", or begin with the inference model, whose batch `train` makes variable"));
  }
  options->batch = fixed;
  if (!args.Has("quiet")) {
    std::cerr << "note: batches of " << fixed << ", as '" << training.model().path()
              << "' fixes them\n";
  }
  return absl::OkStatus();
}

// A file that says how it is trained is trained that way.
void NoteUnusedFlags(const Args& args, const Model& model) {
  std::vector<std::string> unused;
  for (const Flag& flag : AuthorFlags()) {
    if (args.Has(flag.name)) unused.push_back(absl::StrCat("--", flag.name));
  }
  if (unused.empty()) return;
  std::cerr
      << "note: " << absl::StrJoin(unused, ", ") << " not used: '" << model.path()
      << "' says itself how it is trained; `onward export` makes a plain model of it, to begin "
         "with others\n";
}

std::vector<ReportSetting> Settings(const Args& args, const Dataset& data,
                                    const TrainOptions& options) {
  return {{"Model", args.Argument("MODEL")},
          {"Data", absl::StrCat(args.String("data"), " (", Describe(data), ")")},
          {"Evaluation", args.Has("eval") ? args.String("eval") : "none"},
          {"Loss", args.Has("loss") ? args.String("loss") : "as the file says, or from the labels"},
          {"Optimizer", args.String("optimizer")},
          {"Schedule", args.String("schedule")},
          {"Batch", absl::StrCat(options.batch)},
          {"Seed", absl::StrCat(options.seed)},
          {"Threads", absl::StrCat(Threads())}};
}

void PrintResult(const Args& args, const TrainResult& r) {
  if (args.Has("json")) {
    JsonWriter w;
    w.BeginObject()
        .Field("output", args.String("output"))
        .Field("steps", r.steps)
        .Field("loss", r.loss);
    if (r.evaluation.has_value()) {
      w.Field("eval_loss", r.evaluation->loss);
      if (!std::isnan(r.evaluation->accuracy))
        w.Field("eval_accuracy", r.evaluation->accuracy);
      else
        w.Field("eval_rmse", r.evaluation->rmse);
    }
    w.Field("seconds", r.seconds).Field("interrupted", r.interrupted).EndObject();
    std::cout << w.text() << "\n";
    return;
  }
  std::cout << args.String("output") << ": " << r.steps << " steps";
  if (std::isnan(r.loss)) {
    std::cout << ", nothing left to do";
  } else {
    std::cout << absl::StrFormat(", loss %.4f", r.loss);
  }
  if (r.evaluation.has_value()) {
    std::cout << (std::isnan(r.evaluation->accuracy)
                      ? absl::StrFormat(", RMSE %.4f", r.evaluation->rmse)
                      : absl::StrFormat(", accuracy %.2f %%", 100 * r.evaluation->accuracy));
  }
  std::cout << absl::StrFormat(" (%s, %.0f examples/s)\n", FormatSeconds(r.seconds),
                               r.samples_per_second);
  if (!args.String("report").empty()) std::cout << "report: " << args.String("report") << "\n";
}

// The command that goes on where this one was stopped.
std::string ResumeCommand(const Args& args) {
  std::string line = absl::StrCat("onward train ", args.Argument("MODEL"));
  for (const char* flag :
       {"data", "eval", "steps", "epochs", "eval-every", "save-every", "report", "log"}) {
    if (args.Has(flag)) absl::StrAppend(&line, " --", flag, " '", args.String(flag), "'");
  }
  if (args.Has("external-data")) absl::StrAppend(&line, " --external-data");
  return absl::StrCat(line, " --resume -o ", args.String("output"));
}

// What stands at OUT is somebody's work: it goes on or goes away only when asked to.
absl::Status CheckTrainFlags(const Args& args) {
  const std::string output = args.String("output");
  std::error_code error;
  const bool exists = std::filesystem::exists(output, error);
  if (args.Has("resume") && args.Has("overwrite")) {
    return absl::InvalidArgumentError(
        "--resume goes on with OUT and --overwrite begins anew: choose one");
  }
  if (args.Has("resume") && !exists) {
    return absl::NotFoundError(
        absl::StrCat("--resume: '", output, "' does not exist yet; leave --resume out to start"));
  }
  if (exists && std::filesystem::is_regular_file(output, error) && !args.Has("resume") &&
      !args.Has("overwrite")) {
    return absl::AlreadyExistsError(
        absl::StrCat("'", output,
                     "' exists already: --resume goes on where it left off, "
                     "--overwrite replaces it, another -o keeps it"));
  }
  if (args.Has("resume") && args.Has("initialize")) {
    return absl::InvalidArgumentError("--initialize would throw away what --resume continues");
  }
  return CheckAuthorFlags(args);
}

absl::StatusOr<int> RunTrain(const Args& args, const Environment& environment) {
  WatchInterrupts();
  OutliveReaders();
  const std::string output = args.String("output");
  const bool resume = args.Has("resume");
  ONWARD_ASSIGN_OR_RETURN(TrainingInputs inputs, OpenForTraining(args, environment));
  auto [model, data, eval, made] = std::move(inputs);
  TrainOptions options;
  options.output = output;
  options.write = ReadWriteFlags(args);
  options.resumed = resume;
  options.batch = args.Has("batch") || !resume ? args.Int("batch")
                                               : StoredNumber(model, kMetaBatch, args.Int("batch"));
  if (made) options.batch = made->batch;
  options.seed = args.Has("seed") || !resume
                     ? static_cast<uint64_t>(args.Int("seed"))
                     : static_cast<uint64_t>(StoredNumber(model, kMetaDataSeed, 0));
  if (resume && StoredNumber(model, kMetaSteps, -1) < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--resume: '", output, "' was not written by onward train"));
  }
  if (resume && (options.batch != StoredNumber(model, kMetaBatch, options.batch) ||
                 options.seed != static_cast<uint64_t>(StoredNumber(model, kMetaDataSeed, 0)))) {
    return absl::InvalidArgumentError(
        absl::StrCat("--resume goes on with the batch size and seed of '", output,
                     "'; leave --batch and --seed out"));
  }
  options.shuffle = resume ? StoredNumber(model, kMetaShuffle, !args.Has("no-shuffle")) != 0
                           : !args.Has("no-shuffle");
  if (options.shuffle && args.Has("no-shuffle")) {
    return absl::InvalidArgumentError(absl::StrCat("--resume goes on shuffling, as '", output,
                                                   "' began; leave --no-shuffle out"));
  }
  if (model.has_training() && !args.Has("quiet")) NoteUnusedFlags(args, model);
  ONWARD_ASSIGN_OR_RETURN(
      model, TrainableModel(args, *data, options.batch, made, std::move(model), environment));
  ONWARD_ASSIGN_OR_RETURN(std::unique_ptr<TrainingModel> training,
                          TrainingModel::Create(std::move(model), environment));
  ONWARD_RETURN_IF_ERROR(FitBatch(args, *training, &options));
  if (!resume) training->set_random({options.seed, 0});
  if (args.Has("initialize")) ONWARD_RETURN_IF_ERROR(training->Initialize());
  options.steps = args.Has("steps") ? args.Int("steps") : 0;
  options.epochs = made && !args.Has("epochs") ? made->epochs : args.Int("epochs");
  options.save_every = args.Has("save-every") ? args.Int("save-every") : 0;
  options.eval_every = args.Has("eval-every") ? args.Int("eval-every") : 0;
  options.log = args.String("log");
  options.report = args.String("report");
  options.progress = args.Has("quiet") ? ProgressStyle::kQuiet : ProgressStyle::kAuto;
  options.settings = Settings(args, *data, options);
  ONWARD_ASSIGN_OR_RETURN(TrainResult result,
                          Train(training.get(), data, eval, options, &Interrupted()));
  if (result.interrupted && !result.saved) {
    std::cerr << "stopped before the first step was done; nothing is written\n";
    return 1;
  }
  PrintResult(args, result);
  if (result.interrupted) {
    std::cerr << "stopped at step " << result.steps << "; everything is saved. Continue with:\n  "
              << ResumeCommand(args) << "\n";
    return 1;
  }
  return 0;
}

absl::Status CheckEvalFlags(const Args& args) {
  return args.Has("loss") ? ParseLoss(args.String("loss")).status() : absl::OkStatus();
}

absl::StatusOr<int> RunEval(const Args& args, const Environment& environment) {
  WatchInterrupts();
  ONWARD_ASSIGN_OR_RETURN(Model model, ReadModel(args.Argument("MODEL")));
  ONWARD_ASSIGN_OR_RETURN(std::shared_ptr<const Dataset> data,
                          OpenDataFor(model, args.String("data"), Split::kTest));
  ONWARD_ASSIGN_OR_RETURN(Graph graph, RunnableGraph(model, environment));
  EvaluateOptions options;
  options.output =
      args.Has("train-output") ? args.String("train-output") : model.Metadata(kMetaOutput);
  options.batch = args.Int("batch");
  options.loss = StoredLoss(model);
  options.looked_at = std::as_const(model).weights().PageReleaser();
  ONWARD_ASSIGN_OR_RETURN(options.classes, StoredClasses(model));
  if (args.Has("loss")) {
    ONWARD_ASSIGN_OR_RETURN(options.loss, ParseLoss(args.String("loss")));
  }
  ONWARD_ASSIGN_OR_RETURN(std::unique_ptr<Evaluator> evaluator,
                          Evaluator::Create(std::move(graph), data, options, environment));
  if (!evaluator->note().empty()) std::cerr << "note: " << evaluator->note() << "\n";
  ONWARD_ASSIGN_OR_RETURN(Evaluation e, evaluator->Run(nullptr, &Interrupted()));
  const bool classes = !std::isnan(e.accuracy);
  if (args.Has("json")) {
    JsonWriter w;
    w.BeginObject()
        .Field("model", model.path())
        .Field("examples", e.examples)
        .Field("loss", e.loss);
    if (classes)
      w.Field("accuracy", e.accuracy).Field("wrong", e.wrong_total);
    else
      w.Field("mae", e.mae).Field("rmse", e.rmse);
    std::cout << w.EndObject().text() << "\n";
  } else if (classes) {
    std::cout << absl::StrFormat("%s: loss %.4f, accuracy %.2f %% (%d of %d right)\n", model.path(),
                                 e.loss, 100 * e.accuracy, e.judged - e.wrong_total, e.judged);
  } else {
    std::cout << absl::StrFormat("%s: loss %.6g, MAE %.6g, RMSE %.6g over %d examples\n",
                                 model.path(), e.loss, e.mae, e.rmse, e.examples);
  }
  if (args.Has("at-least")) return classes && e.accuracy >= args.Double("at-least") ? 0 : 1;
  return 0;
}

}  // namespace

Command TrainCommand() {
  std::vector<Flag> flags = {
      Flag::Value("data", "SPEC", "training data; see `onward eval --help` for the forms")
          .Names(FlagNames::kData)
          .Required(),
      Flag::Value("output", "OUT",
                  "the trained model, also the checkpoint: saved after each epoch and every 10 "
                  "minutes")
          .Short('o')
          .Names(FlagNames::kResult)
          .Required(),
      Flag::Value("eval", "SPEC", "data to evaluate on after each epoch").Names(FlagNames::kData),
      Flag::Count("epochs", "N", "passes over the data", 1, kMostEpochs).Default("1"),
      Flag::Count("steps", "N", "steps in all (resumed ones included) instead of epochs", 1),
      Flag::Count("batch", "N", "examples per step", 1).Default(kDefaultBatch),
      Flag::Count("seed", "S", "of shuffling, dropout and new weights", 0).Default("0"),
      Flag::Switch("resume", "continue where OUT left off"),
      Flag::Switch("overwrite",
                   "begin anew although OUT exists; it stays until the first save of this run"),
      ExternalDataFlag(),
      Flag::Switch("initialize", "start from newly drawn weights (the file's initialization)"),
      Flag::Switch("no-shuffle", "take examples in their order"),
      Flag::Count("save-every", "N", "write OUT every N steps too", 1),
      Flag::Count("eval-every", "N", "evaluate every N steps instead of each epoch", 1),
      Flag::Value("report", "FILE.html", "write a report").Names(FlagNames::kResult),
      Flag::Value("log", "FILE.jsonl", "write one JSON object per step").Names(FlagNames::kLog),
      Flag::Switch("quiet", "no progress"),
      Flag::Switch("json", "print one JSON object at the end")};
  for (Flag& f : AuthorFlags()) flags.push_back(std::move(f));
  return Computing(
      {.name = "train",
       .summary = "fine-tunes a model; an inference-only model is made trainable first",
       .arguments = {{"MODEL", "an .onnx file"}},
       .flags = std::move(flags),
       .example =
           "onward train model.onnx --data mnist:DIR --eval mnist:DIR -o trained.onnx --epochs "
           "2 --report report.html",
       .check = CheckTrainFlags},
      RunTrain);
}

Command EvalCommand() {
  return Computing(
      {.name = "eval",
       .summary = "loss and accuracy (or error) over a data set",
       .arguments = {{"MODEL", "an .onnx file"}},
       .flags =
           {Flag::Value("data", "SPEC", DataSpecHelp()).Names(FlagNames::kData).Required(),
            Flag::Value(
                "loss", "LOSS",
                "which loss to report; by default the one it was trained with, or from the labels"),
            Flag::Value("train-output", "NAME", "the model output to judge; the first by default"),
            Flag::Count("batch", "N", "examples at a time", 1).Default("256"),
            Flag::Number("at-least", "A", "exit 1 if the accuracy (0 to 1) is below this", 0, 1),
            Flag::Switch("json", "print one JSON object")},
       .example = "onward eval model.onnx --data mnist:DIR",
       .check = CheckEvalFlags},
      RunEval);
}

}  // namespace onward
