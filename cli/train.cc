// SPDX-License-Identifier: Apache-2.0
// onward train.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/author_flags.h"
#include "cli/commands.h"
#include "cli/compute_flags.h"
#include "cli/open_data.h"
#include "cli/rates.h"
#include "cli/run_file.h"
#include "cli/shell_line.h"
#include "cli/train_flags.h"
#include "cli/trainable.h"
#include "core/base/atomic_file.h"
#include "core/base/status.h"
#include "trainer/report/listeners.h"
#include "trainer/report/log/jsonl.h"
#include "trainer/report/numbers/part_figures.h"
#include "trainer/report/terminal/statement.h"
#include "trainer/run/fingerprint.h"
#include "trainer/run/loop.h"

namespace onward {
namespace {

void PrintResult(const Args& args, const TrainResult& r) {
  if (args.Has("json")) {
    JsonWriter w;
    w.BeginObject()
        .Field("output", args.String("output"))
        .Field("steps", r.steps)
        .Field("loss", r.loss);
    if (r.evaluation.has_value()) {
      WriteFigures("eval_", *r.evaluation, &w);
      if (r.averages.has_value()) WriteFigures("ema_eval_", *r.averages, &w);
    }
    if (r.skipped > 0) w.Field("skipped", r.skipped);
    if (!r.stopped.empty()) w.Field("stopped", r.stopped);
    if (r.skipped_steps.has_value()) w.Field("skipped_steps", *r.skipped_steps);
    w.Field("seconds", r.seconds).Field("interrupted", r.interrupted).EndObject();
    std::cout << w.text() << "\n";
    return;
  }
  std::cout << args.String("output") << ": " << r.steps << " steps";
  if (std::isnan(r.loss)) {
    std::cout << ", nothing left to do";
  } else {
    std::cout << "; " << TrainingFigures(r.loss, r.accuracy);
  }
  if (r.evaluation.has_value()) std::cout << "; evaluation " << ShortFigures(*r.evaluation);
  if (r.averages.has_value()) std::cout << "; averages: " << ShortFigures(*r.averages);
  if (r.skipped_steps.value_or(0) > 0) std::cout << "; skipped steps: " << *r.skipped_steps;
  std::cout << absl::StrFormat(" (%s, %.0f examples/s)\n", FormatSeconds(r.seconds),
                               r.samples_per_second);
  if (!args.String("report").empty()) std::cout << "report: " << args.String("report") << "\n";
}

// What the user should know of how it ended.
void SayHowItEnded(const Args& args, const std::optional<MadeTraining>& made,
                   const TrainResult& r) {
  if (r.skipped > 0) {
    std::cerr << "warning: " << r.skipped << " steps were skipped, their numbers not finite\n";
  }
  if (!r.stopped.empty()) {
    std::cerr << "stopped at step " << r.steps << ": " << r.stopped
              << "; to go on nevertheless:\n  "
              << ResumeCommand(args, made, r.out_of_patience ? "patience" : "") << "\n";
  }
  if (r.interrupted) {
    std::cerr << "stopped at step " << r.steps << "; everything is saved. Continue with:\n  "
              << ResumeCommand(args, made) << "\n";
  }
}

void AddListeners(const Args& args, Listeners* listeners) {
  const std::string log = args.String("log"), report = args.String("report");
  if (!log.empty()) listeners->Add(LogListener(log));
  listeners->Add(
      ProgressListener(args.Has("quiet") ? ProgressStyle::kQuiet : ProgressStyle::kAuto));
  if (!report.empty()) listeners->Add(ReportListener(report, args.Has("watch")));
  const std::string tensorboard = args.String("tensorboard");
  if (!tensorboard.empty()) listeners->Add(TensorBoardListener(tensorboard));
}

// A resumed run belongs to the model it began with; OUT itself is none to compare with. What to
// warn of; "": nothing.
std::string OtherModel(const Args& args, const Model& output) {
  const std::string stored = output.Metadata(kMetaModelPrint), model = args.Argument("MODEL");
  std::error_code error;
  if (stored.empty() || std::filesystem::equivalent(model, args.String("output"), error)) {
    return "";
  }
  const auto read = ReadModel(model);
  const auto print = read.ok() ? ModelFingerprint(*read) : read.status();
  if (!print.ok() || *print == stored) return "";
  return absl::StrCat("'", model, "' is not the model that '", args.String("output"),
                      "' began with; the run goes on from '", args.String("output"), "'");
}

void PrintFacts(const Args& args, const RunFacts& facts) {
  if (args.Has("json")) {
    std::cout << FactsJson(facts) << "\n";
    return;
  }
  for (const std::string& line : StatementLines(facts)) std::cout << line << "\n";
  for (const std::string& note : facts.notes) std::cout << "note: " << note << "\n";
  for (const std::string& warning : facts.warnings) std::cout << "warning: " << warning << "\n";
}

// What belongs to one start of the program, not to the run.
absl::Status SaveConfig(const Args& args) {
  const std::string path = args.String("save-config");
  if (path.empty()) return absl::OkStatus();
  return WriteFileAtomically(
      path, RunFileText(args, {"save-config", "resume", "overwrite", "dry-run", "find-lr"}));
}

absl::StatusOr<int> RunTrain(const Args& args, const Environment& environment) {
  WatchInterrupts();
  OutliveReaders();
  ONWARD_RETURN_IF_ERROR(SaveConfig(args));
  const bool resume = args.Has("resume"), quiet = args.Has("quiet");
  ONWARD_ASSIGN_OR_RETURN(TrainingInputs inputs, OpenForTraining(args, environment));
  auto [model, data, eval, made] = std::move(inputs);
  ONWARD_ASSIGN_OR_RETURN(TrainOptions options, ReadTrainOptions(args, model));
  if (made) {
    options.epochs = made->epochs;
    options.batch = made->batch;
  }
  const std::string other = resume ? OtherModel(args, model) : "";
  std::vector<std::string> notes;
  ONWARD_ASSIGN_OR_RETURN(
      model, TrainableModel(args, *data, made, std::move(model), environment, &options, &notes));
  if (!other.empty()) options.told.push_back({other, true});
  for (std::string& note : notes) options.told.push_back({std::move(note)});
  for (const ReportNote& told : options.told) {
    if (!quiet) std::cerr << NoteLine(told) << "\n";
  }
  if (args.Has("find-lr")) ONWARD_RETURN_IF_ERROR(PrepareForSearch(environment, &model));
  ONWARD_ASSIGN_OR_RETURN(std::unique_ptr<TrainingModel> training,
                          TrainingModel::Create(std::move(model), environment));
  if (!resume) training->set_random({options.seed, 0});
  if (args.Has("initialize")) ONWARD_RETURN_IF_ERROR(training->Initialize());
  options.command = ShellLine("train", args);
  if (args.Has("dry-run")) {
    ONWARD_ASSIGN_OR_RETURN(const RunFacts facts, DryRun(training.get(), data, eval, options));
    PrintFacts(args, facts);
    return 0;
  }
  if (args.Has("find-lr")) {
    ONWARD_ASSIGN_OR_RETURN(const RateSearch search,
                            FindRate(training.get(), data, options, &Interrupted()));
    ONWARD_RETURN_IF_ERROR(ShowRates(args, search));
    return 0;
  }
  Listeners listeners;
  AddListeners(args, &listeners);
  ONWARD_ASSIGN_OR_RETURN(TrainResult result,
                          Train(training.get(), data, eval, options, &listeners, &Interrupted()));
  if (result.interrupted && !result.saved) {
    std::cerr << "stopped before the first step was done; nothing is written\n";
    return 1;
  }
  PrintResult(args, result);
  SayHowItEnded(args, made, result);
  return result.interrupted ? 1 : 0;
}

}  // namespace

Command TrainCommand() {
  std::vector<Flag> flags = TrainFlags();
  for (Flag& f : AuthorFlags()) flags.push_back(std::move(f));
  return Computing(
      {.name = "train",
       .summary = "fine-tunes a model; an inference-only model is made trainable first",
       .arguments = {{"MODEL",
                      "an .onnx file, the kind of a new one (mlp, gpt: see `onward new --help`), "
                      "or a .toml file with flags as keys"}},
       .flags = std::move(flags),
       .example =
           "onward train model.onnx --data mnist:DIR --eval mnist:DIR -o trained.onnx --epochs "
           "2 --report report.html\nonward train run.toml --resume",
       .clashes = TrainClashes(),
       .flag_file = ReadRunFile,
       .check = CheckTrainFlags},
      RunTrain);
}

}  // namespace onward
