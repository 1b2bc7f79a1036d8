// SPDX-License-Identifier: Apache-2.0
// onward train.
#include <cmath>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/author_flags.h"
#include "cli/begin_training.h"
#include "cli/commands.h"
#include "cli/compute_flags.h"
#include "cli/folds.h"
#include "cli/rates.h"
#include "cli/run_file.h"
#include "cli/train_flags.h"
#include "core/base/atomic_file.h"
#include "core/base/status.h"
#include "trainer/report/listeners.h"
#include "trainer/report/log/jsonl.h"
#include "trainer/report/numbers/part_figures.h"
#include "trainer/report/terminal/statement.h"
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

// Flags that say where a run is written to, which a dry one is not.
void NoteWhatIsNotWritten(const Args& args, RunFacts* facts) {
  std::vector<std::string> given;
  for (const char* flag : {"report", "log", "tensorboard"}) {
    if (args.Has(flag)) given.push_back(absl::StrCat("--", flag));
  }
  if (given.empty()) return;
  facts->notes.push_back(absl::StrCat("not written in a dry run: ", absl::StrJoin(given, ", ")));
}

absl::Status Ask(const Args& args, BegunTraining* begun) {
  if (args.Has("dry-run")) {
    Listeners listeners;
    AddListeners(args, &listeners);
    ONWARD_ASSIGN_OR_RETURN(RunFacts facts, DryRun(begun->training.get(), begun->data, begun->eval,
                                                   begun->options, listeners));
    NoteWhatIsNotWritten(args, &facts);
    PrintFacts(args, facts);
    return absl::OkStatus();
  }
  ONWARD_ASSIGN_OR_RETURN(const RateSearch search, FindRate(begun->training.get(), begun->data,
                                                            begun->options, &Interrupted()));
  return ShowRates(args, search);
}

absl::StatusOr<int> RunTrain(const Args& args, const Environment& environment) {
  WatchInterrupts();
  OutliveReaders();
  ONWARD_RETURN_IF_ERROR(SaveConfig(args));
  if (args.Has("folds")) {
    ONWARD_ASSIGN_OR_RETURN(const bool done, CrossValidate(args, environment));
    if (!done) return 1;
    if (!args.Has("output")) return 0;
  }
  ONWARD_ASSIGN_OR_RETURN(BegunTraining begun, BeginTraining(args, SpecsOf(args), environment));
  if (OnlyAsks(args)) {
    ONWARD_RETURN_IF_ERROR(Ask(args, &begun));
    return 0;
  }
  Listeners listeners;
  AddListeners(args, &listeners);
  ONWARD_ASSIGN_OR_RETURN(TrainResult result, Train(begun.training.get(), begun.data, begun.eval,
                                                    begun.options, &listeners, &Interrupted()));
  if (result.interrupted && !result.saved) {
    std::cerr << "stopped before the first step was done; nothing is written\n";
    return 1;
  }
  PrintResult(args, result);
  SayHowItEnded(args, begun.made, result);
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
