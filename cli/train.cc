// SPDX-License-Identifier: Apache-2.0
// onward train.
#include <cmath>
#include <filesystem>
#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/author_flags.h"
#include "cli/commands.h"
#include "cli/compute_flags.h"
#include "cli/trainable.h"
#include "cli/write_checked.h"
#include "core/base/parallel.h"
#include "core/base/status.h"
#include "trainer/report/jsonl.h"
#include "trainer/report/listeners.h"
#include "trainer/report/part_figures.h"
#include "trainer/run/loop.h"

namespace onward {
namespace {

constexpr char kDefaultBatch[] = "64";
constexpr double kMostEpochs = 1e9;

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
      const Evaluation& e = *r.evaluation;
      w.Field("eval_loss", e.loss);
      if (!std::isnan(e.accuracy)) w.Field("eval_accuracy", e.accuracy);
      if (!std::isnan(e.rmse)) w.Field("eval_rmse", e.rmse);
      if (e.parts.size() > 1) WriteParts(e.parts, &w.Key("eval_parts"));
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
  if (r.evaluation.has_value()) std::cout << "; evaluation " << ShortFigures(*r.evaluation);
  std::cout << absl::StrFormat(" (%s, %.0f examples/s)\n", FormatSeconds(r.seconds),
                               r.samples_per_second);
  if (!args.String("report").empty()) std::cout << "report: " << args.String("report") << "\n";
}

std::optional<Metric> ReadMetric(const Args& args) {
  const std::vector<std::string> names = MetricNames();
  for (size_t i = 0; i < names.size(); ++i) {
    if (args.String("metric") == names[i]) return static_cast<Metric>(i);
  }
  return std::nullopt;
}

void AddListeners(const Args& args, Listeners* listeners) {
  const std::string log = args.String("log"), report = args.String("report");
  if (!log.empty()) listeners->Add(LogListener(log));
  listeners->Add(
      ProgressListener(args.Has("quiet") ? ProgressStyle::kQuiet : ProgressStyle::kAuto));
  if (!report.empty()) listeners->Add(ReportListener(report));
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
  ONWARD_ASSIGN_OR_RETURN(std::shared_ptr<const Dataset> data,
                          ParseDataSpec(args.String("data"), Split::kTrain));
  std::shared_ptr<const Dataset> eval;
  if (args.Has("eval")) {
    ONWARD_ASSIGN_OR_RETURN(eval, ParseDataSpec(args.String("eval"), Split::kTest));
  } else if (IsSplitSpec(args.String("data"))) {
    ONWARD_ASSIGN_OR_RETURN(eval, ParseDataSpec(args.String("data"), Split::kTest));
  }
  ONWARD_ASSIGN_OR_RETURN(Model model, ReadModel(resume ? output : args.Argument("MODEL")));
  TrainOptions options;
  options.output = output;
  options.write = ReadWriteFlags(args);
  options.resumed = resume;
  options.steps = args.Has("steps") ? args.Int("steps") : 0;
  options.epochs = args.Int("epochs");
  options.save_every = args.Has("save-every") ? args.Int("save-every") : 0;
  options.eval_every = args.Has("eval-every") ? args.Int("eval-every") : 0;
  options.metric = ReadMetric(args);
  options.batch = args.Has("batch") || !resume ? args.Int("batch")
                                               : MetadataInt(model, kMetaBatch, args.Int("batch"));
  options.seed = args.Has("seed") || !resume
                     ? static_cast<uint64_t>(args.Int("seed"))
                     : static_cast<uint64_t>(MetadataInt(model, kMetaDataSeed, 0));
  if (resume && MetadataInt(model, kMetaSteps, -1) < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--resume: '", output, "' was not written by onward train"));
  }
  if (resume && (options.batch != MetadataInt(model, kMetaBatch, options.batch) ||
                 options.seed != static_cast<uint64_t>(MetadataInt(model, kMetaDataSeed, 0)))) {
    return absl::InvalidArgumentError(
        absl::StrCat("--resume goes on with the batch size and seed of '", output,
                     "'; leave --batch and --seed out"));
  }
  options.shuffle = resume ? MetadataInt(model, kMetaShuffle, !args.Has("no-shuffle")) != 0
                           : !args.Has("no-shuffle");
  if (options.shuffle && args.Has("no-shuffle")) {
    return absl::InvalidArgumentError(absl::StrCat("--resume goes on shuffling, as '", output,
                                                   "' began; leave --no-shuffle out"));
  }
  std::vector<std::string> notes;
  ONWARD_ASSIGN_OR_RETURN(
      model, TrainableModel(args, *data, std::move(model), environment, &options, &notes));
  if (!args.Has("quiet")) {
    for (const std::string& note : notes) std::cerr << "note: " << note << "\n";
  }
  ONWARD_ASSIGN_OR_RETURN(std::unique_ptr<TrainingModel> training,
                          TrainingModel::Create(std::move(model), environment));
  if (!resume) training->set_random({options.seed, 0});
  if (args.Has("initialize")) ONWARD_RETURN_IF_ERROR(training->Initialize());
  options.settings = Settings(args, *data, options);
  Listeners listeners;
  AddListeners(args, &listeners);
  ONWARD_ASSIGN_OR_RETURN(TrainResult result,
                          Train(training.get(), data, eval, options, &listeners, &Interrupted()));
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
      Flag::Choice("metric", MetricNames(),
                   "what evaluations are compared by (default loss; accuracy where the schedule "
                   "says mode=max)"),
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

}  // namespace onward
