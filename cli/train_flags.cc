// SPDX-License-Identifier: Apache-2.0
#include "cli/train_flags.h"

#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cli/author_flags.h"
#include "cli/compute_flags.h"
#include "cli/shell_line.h"
#include "cli/write_checked.h"
#include "core/base/status.h"
#include "data/data_options.h"
#include "data/dataset.h"
#include "trainer/run/fingerprint.h"

namespace onward {
namespace {

namespace fs = std::filesystem;

constexpr char kDefaultBatch[] = "64";
constexpr double kMostEpochs = 1e9;
constexpr double kMostSeconds = 1e9;
constexpr double kMostFolds = 1000;

// Flags that mean nothing without evaluations.
constexpr const char* kNeedEvaluation[] = {"eval-every", "metric", "best", "patience"};

// Files that hold a result.
constexpr const char* kKept[] = {"output", "best"};

// 90, 90s, 30m, 1h30m, in seconds.
absl::StatusOr<double> ParseDuration(const std::string& text) {
  double total = 0;
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = text.find_first_not_of("0123456789.", begin);
    double number = 0;
    if (!absl::SimpleAtod(text.substr(begin, end - begin), &number)) break;
    const char unit = end == std::string::npos ? 's' : text[end];
    const double seconds = unit == 'h' ? 3600 : unit == 'm' ? 60 : unit == 's' ? 1 : 0;
    if (seconds == 0) break;
    total += number * seconds;
    begin = end == std::string::npos ? text.size() : end + 1;
  }
  if (begin == text.size() && total > 0 && total <= kMostSeconds) return total;
  return absl::InvalidArgumentError(
      absl::StrCat("--time-limit ", text, " is no duration; write it like 90s, 30m or 1h30m"));
}

std::optional<Metric> ReadMetric(const Args& args) {
  const std::vector<std::string> names = MetricNames();
  for (size_t i = 0; i < names.size(); ++i) {
    if (args.String("metric") == names[i]) return static_cast<Metric>(i);
  }
  return std::nullopt;
}

OnNan ReadOnNan(const Args& args) {
  const std::string word = args.String("on-nan");
  return word == "skip" ? OnNan::kSkip : word == "back" ? OnNan::kBack : OnNan::kStop;
}

absl::Status CheckFolds(const Args& args) {
  if (!args.Has("folds")) return absl::OkStatus();
  const auto spec = SplitDataSpec(args.String("data"), Split::kTrain);
  if (spec.ok() && spec->options.parts.any()) {
    return absl::InvalidArgumentError(
        "--folds divides the data itself: leave split= and fold= out of --data");
  }
  for (const char* flag : {"report", "log", "tensorboard"}) {
    if (!args.Has(flag) || args.Has("output")) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "--", flag, " tells of the run that -o OUT asks for, after the folds: give -o, too"));
  }
  return absl::OkStatus();
}

// What stands at OUT is somebody's work: it goes on or goes away only when asked to.
absl::Status CheckKept(const Args& args) {
  const std::string output = args.String("output");
  std::error_code error;
  if (args.Has("resume") && !fs::exists(output, error)) {
    return absl::NotFoundError(
        absl::StrCat("--resume: '", output, "' does not exist yet; leave --resume out to start"));
  }
  if (args.Has("resume") || args.Has("overwrite") || OnlyAsks(args)) return absl::OkStatus();
  for (const char* flag : kKept) {
    const std::string path = args.String(flag);
    if (path.empty() || !fs::is_regular_file(path, error)) continue;
    return absl::AlreadyExistsError(
        absl::StrCat("'", path,
                     "' exists already: --resume goes on where it left off, "
                     "--overwrite replaces it, another ",
                     flag == kKept[0] ? "-o" : absl::StrCat("--", flag), " keeps it"));
  }
  return absl::OkStatus();
}

// A resumed run goes on with the best that it has, and replaces that of another only if it was
// begun to.
absl::Status CheckBest(const Args& args, const Model& model) {
  const std::string best = args.String("best"), run = model.Metadata(kMetaRun);
  std::error_code error;
  if (OnlyAsks(args) || !fs::is_regular_file(best, error)) return absl::OkStatus();
  const std::string has_best = model.Metadata(kMetaHasBest);
  // Files of before do not say which run they are of.
  if (has_best == kReplacesBest || (run.empty() && has_best == kHasBest)) return absl::OkStatus();
  const auto held = ReadModel(best);
  if (held.ok() && !run.empty() && held->Metadata(kMetaRun) == run) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat(
      "'", best, "' exists already and is not of the run that '", args.String("output"),
      "' goes on with: another --best keeps it; to have it "
      "replaced, move it away"));
}

// Batch size, seed and order are those the file began with.
absl::Status GoOnAsBegun(const Args& args, const Model& model, TrainOptions* options) {
  if (MetadataInt(model, kMetaSteps, -1) < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--resume: '", options->output, "' was not written by onward train"));
  }
  const int64_t batch = MetadataInt(model, kMetaBatch, options->batch);
  const auto seed = static_cast<uint64_t>(MetadataInt(model, kMetaDataSeed, 0));
  if ((args.Has("batch") && options->batch != batch) ||
      (args.Has("seed") && options->seed != seed)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--resume goes on with the batch size and seed of '", options->output,
                     "'; leave --batch and --seed out"));
  }
  options->batch = batch;
  options->seed = seed;
  options->shuffle = MetadataInt(model, kMetaShuffle, options->shuffle ? 1 : 0) != 0;
  if (options->shuffle && args.Has("no-shuffle")) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--resume goes on shuffling, as '", options->output, "' began; leave --no-shuffle out"));
  }
  const bool sampled = MetadataInt(model, kMetaBalance) != 0;
  if (options->balance && !sampled) {
    return absl::InvalidArgumentError(absl::StrCat("--resume goes on taking examples as '",
                                                   options->output,
                                                   "' began; leave --balance sample out"));
  }
  options->balance = sampled;
  options->drop_last = MetadataInt(model, kMetaDropLast, 1) != 0;
  if (!options->drop_last && args.Has("drop-last")) {
    return absl::InvalidArgumentError(absl::StrCat("--resume goes on with the short batch, as '",
                                                   options->output,
                                                   "' began; leave --drop-last out"));
  }
  return CheckBest(args, model);
}

}  // namespace

bool OnlyAsks(const Args& args) { return args.Has("dry-run") || args.Has("find-lr"); }

std::vector<Clash> TrainClashes() {
  return {
      {"steps", "epochs", "--steps and --epochs both say when the run ends: choose one"},
      {"resume", "overwrite", "--resume goes on with OUT and --overwrite begins anew: choose one"},
      {"resume", "initialize", "--initialize would throw away what --resume continues"},
      {"find-lr", "resume", "--find-lr looks for a rate to begin with; leave --resume out"},
      {"find-lr", "dry-run", "--find-lr and --dry-run both end before training: choose one"},
      {"find-lr", "lr", "--find-lr looks for what --lr gives: choose one"},
      {"find-lr", "tensorboard",
       "--find-lr writes no event files: --log and --report get its curve"},
      {"folds", "eval", "--folds judges on parts of --data: leave --eval out"},
      {"folds", "resume", "--folds begins anew for each fold: leave --resume out"},
      {"folds", "dry-run", "--dry-run looks at one run: leave --folds out"},
      {"folds", "find-lr", "--find-lr looks at one run: leave --folds out"},
      {"folds", "best", "--folds writes no model of a fold, so there is no best: leave --best out"},
      {"folds", "patience", "--folds judges each run at its end: leave --patience out"},
      {"folds", "eval-every", "--folds judges each run at its end: leave --eval-every out"},
      {"folds", "time-limit", "--time-limit is of one run: leave it out with --folds"},
  };
}

std::vector<Flag> TrainFlags() {
  return {
      Flag::Value("data", "SPEC", "training data; see `onward eval --help` for the forms")
          .Names(FlagNames::kData)
          .Required(),
      Flag::Value("output", "OUT",
                  "the trained model, also the checkpoint: saved after each epoch and every 10 "
                  "minutes")
          .Short('o')
          .Names(FlagNames::kResult)
          .RequiredUnless({"dry-run", "find-lr", "folds"}),
      Flag::Value("eval", "SPEC",
                  "data to evaluate on after each epoch; by default what split= of --data leaves")
          .Names(FlagNames::kData),
      Flag::Count("folds", "K",
                  "cross validation: train K times, each time without one of K parts of the data "
                  "(stratified, by --seed), judge on that part, print mean and deviation; with -o "
                  "train on everything then",
                  2, kMostFolds),
      Flag::Choice("balance", {"weights", "sample"},
                   "where classes differ in number: weigh them in the loss by how rare they are, "
                   "or take all equally often")
          .Implied("weights"),
      Flag::Count("epochs", "N", "passes over the data; for mlp and gpt as many as suit it", 1,
                  kMostEpochs)
          .Default("1"),
      Flag::Count("steps", "N", "steps in all (resumed ones included) instead of epochs", 1),
      Flag::Count("batch", "N", "examples per step", 1).Default(kDefaultBatch),
      Flag::Switch("drop-last", "leave out the short batch at the end of an epoch"),
      Flag::Count("seed", "S", "of shuffling, dropout and new weights", 0).Default("0"),
      Flag::Number("lr", "X",
                   "learning rate, in the place of the optimizer's own or, of a file that is "
                   "trainable already, of the one it has",
                   0, 1e30),
      Flag::Switch("resume", "continue where OUT left off"),
      Flag::Switch("overwrite",
                   "begin anew although OUT exists; it stays until the first save of this run"),
      Flag::Switch("dry-run", "check everything, say what would be done and how, and stop"),
      Flag::Switch(
          "find-lr",
          "try rates from tiny to large, suggest one, and stop; --log and --report get the "
          "curve"),
      Flag::Value("save-config", "FILE.toml", "write these flags as a file for `onward train FILE`")
          .Names(FlagNames::kResult),
      ExternalDataFlag(),
      Flag::Switch("initialize", "start from newly drawn weights (the file's initialization)"),
      Flag::Switch("no-shuffle", "take examples in their order"),
      Flag::Count("save-every", "N", "write OUT every N steps too", 1),
      Flag::Count("keep", "K", "keep the last K checkpoints, too, as OUT.step-N.onnx", 1),
      Flag::Count("eval-every", "N", "evaluate every N steps instead of each epoch", 1),
      Flag::Choice("metric", MetricNames(),
                   "what evaluations are compared by (default loss; accuracy where the schedule "
                   "says mode=max)"),
      Flag::Value("best", "FILE", "write the model with the best evaluation")
          .Names(FlagNames::kResult),
      Flag::Count("patience", "N", "stop after N evaluations in a row that are no better", 1),
      Flag::Value("time-limit", "T", "stop after this time, as in 90s, 30m or 1h30m"),
      Flag::Choice("on-nan", {"stop", "skip", "back"},
                   "where numbers are not finite: stop with the last good state, skip the batch, "
                   "or go back to the last checkpoint with half the rate")
          .Default("stop"),
      Flag::Value("report", "FILE.html",
                  "write a page with curves, classes, mistakes, layers, time and memory "
                  "(docs/report.md)")
          .Names(FlagNames::kResult),
      Flag::Switch("watch",
                   "write the report at every evaluation and checkpoint too, as a page that "
                   "browsers load again every 5 seconds while the run goes on"),
      Flag::Value("tensorboard", "DIR",
                  "write event files for TensorBoard: tensorboard --logdir DIR"),
      Flag::Value("log", "FILE.jsonl",
                  "write one JSON object per step and evaluation; `onward report` reads it")
          .Names(FlagNames::kLog),
      Flag::Switch("quiet", "no progress"),
      Flag::Switch("json", "print one JSON object at the end")};
}

absl::Status CheckTrainFlags(const Args& args) {
  ONWARD_RETURN_IF_ERROR(CheckFolds(args));
  const bool evaluates = args.Has("eval") || args.Has("folds") || IsSplitSpec(args.String("data"));
  for (const char* flag : kNeedEvaluation) {
    if (args.Has(flag) && !evaluates) {
      return absl::InvalidArgumentError(
          absl::StrCat("--", flag, " goes by evaluations: give --eval SPEC, too"));
    }
  }
  if (args.Has("watch") && !args.Has("report")) {
    return absl::InvalidArgumentError(
        "--watch writes the report while the run goes on: it needs --report FILE.html");
  }
  if (args.Has("time-limit")) {
    ONWARD_RETURN_IF_ERROR(ParseDuration(args.String("time-limit")).status());
  }
  ONWARD_RETURN_IF_ERROR(CheckAuthorFlags(args));
  ONWARD_ASSIGN_OR_RETURN(const OptimizerChoice optimizer,
                          ParseOptimizerChoice(args.String("optimizer")));
  const auto& numbers = optimizer.is_file() ? optimizer.numbers : optimizer.spec.options;
  if (args.Has("lr") && numbers.contains("lr")) {
    return absl::InvalidArgumentError(absl::StrCat("--lr ", args.String("lr"), " and --optimizer ",
                                                   args.String("optimizer"),
                                                   " both give the learning rate: choose one"));
  }
  return CheckKept(args);
}

absl::StatusOr<TrainOptions> ReadTrainOptions(const Args& args, const Model& model) {
  TrainOptions options;
  options.output = args.String("output");
  options.write = ReadWriteFlags(args);
  options.resumed = args.Has("resume");
  options.steps = args.Int("steps");
  options.epochs = args.Int("epochs");
  options.batch = args.Int("batch");
  options.seed = static_cast<uint64_t>(args.Int("seed"));
  options.shuffle = !args.Has("no-shuffle");
  options.balance = args.String("balance") == "sample";
  options.drop_last = args.Has("drop-last");
  options.save_every = args.Int("save-every");
  options.keep = args.Int("keep");
  options.eval_every = args.Int("eval-every");
  options.metric = ReadMetric(args);
  options.best = args.String("best");
  options.patience = args.Int("patience");
  options.on_nan = ReadOnNan(args);
  if (args.Has("time-limit")) {
    ONWARD_ASSIGN_OR_RETURN(options.time_limit, ParseDuration(args.String("time-limit")));
  }
  if (options.resumed) {
    ONWARD_RETURN_IF_ERROR(GoOnAsBegun(args, model, &options));
  } else {
    ONWARD_ASSIGN_OR_RETURN(options.model_fingerprint, ModelFingerprint(model));
  }
  return options;
}

std::string ResumeCommand(const Args& args, const std::optional<MadeTraining>& made,
                          const std::string& without) {
  std::string line = absl::StrCat("onward train ", ShellWord(args.Argument("MODEL")));
  // How the model is trained is in the file, how it is computed is not.
  std::vector<Flag> flags = Computing({}, nullptr).flags;
  for (Flag& flag : TrainFlags()) flags.push_back(std::move(flag));
  const std::set<std::string> of_the_start = {"resume",      "overwrite", "initialize", "output",
                                              "save-config", "folds",     without};
  for (const Flag& flag : flags) {
    if (of_the_start.contains(flag.name)) continue;
    for (const std::string& value : args.All(flag.name)) {
      absl::StrAppend(&line, " --", flag.name);
      if (!flag.placeholder.empty()) absl::StrAppend(&line, " ", ShellWord(value));
    }
  }
  if (made && !args.Has("epochs") && !args.Has("steps")) {
    absl::StrAppend(&line, " --epochs ", made->epochs);
  }
  return absl::StrCat(line, " --resume -o ", ShellWord(args.String("output")));
}

}  // namespace onward
