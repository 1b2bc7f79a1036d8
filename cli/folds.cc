// SPDX-License-Identifier: Apache-2.0
#include "cli/folds.h"

#include <cmath>
#include <iostream>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/begin_training.h"
#include "cli/commands.h"
#include "core/base/status.h"
#include "data/data_options.h"
#include "trainer/report/listeners.h"
#include "trainer/report/log/jsonl.h"
#include "trainer/report/numbers/part_figures.h"
#include "trainer/run/loop.h"
#include "training_info/rate.h"

namespace onward {
namespace {

constexpr int64_t kAtTheEnd = std::numeric_limits<int64_t>::max();

struct MeanAndDeviation {
  double mean = 0, deviation = 0;
};

// The deviation of a sample: its squares are divided by one less than there are numbers.
MeanAndDeviation Summarised(const std::vector<double>& values) {
  MeanAndDeviation result;
  const auto count = static_cast<double>(values.size());
  for (double v : values) result.mean += v / count;
  for (double v : values) {
    result.deviation += (v - result.mean) * (v - result.mean) / (count - 1);
  }
  result.deviation = std::sqrt(result.deviation);
  return result;
}

// What decides: the metric asked for, else accuracy of classes, RMSE of numbers, or the loss.
Metric DecidingMetric(const std::optional<Metric>& asked, const Evaluation& e) {
  if (asked) return *asked;
  if (!std::isnan(e.accuracy)) return Metric::kAccuracy;
  return std::isnan(e.rmse) ? Metric::kLoss : Metric::kRmse;
}

// A schedule that goes by evaluations has none in the run on all data.
absl::Status CheckSchedule(const Model& model) {
  const absl::StatusOr<RateRecipe> rate = StoredRate(model);
  if (!rate.ok() || rate->schedule.name != kReduceOnPlateau) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--folds: schedule '", kReduceOnPlateau,
                   "' goes by evaluations while it trains, and a fold is judged at its end; take "
                   "another --schedule"));
}

struct FoldRun {
  TrainResult result;
  int64_t trained = 0, judged = 0;  // examples
  std::optional<Metric> metric;     // that is asked for
};

absl::StatusOr<FoldRun> RunFold(const Args& args, int64_t number, const Environment& environment) {
  const std::string spec = WithOption(
      WithOption(args.String("data"), absl::StrCat("fold=", number, "/", args.Int("folds"))),
      absl::StrCat("split_seed=", args.Int("seed")));
  const bool first = number == 1;
  ONWARD_ASSIGN_OR_RETURN(BegunTraining begun,
                          BeginTraining(args, {spec, spec}, environment, /*tells=*/first));
  ONWARD_RETURN_IF_ERROR(CheckSchedule(begun.training->model()));
  begun.options.output.clear();
  begun.options.eval_every = kAtTheEnd;
  const std::unique_ptr<RunListener> progress =
      ProgressListener(args.Has("quiet") ? ProgressStyle::kQuiet : ProgressStyle::kAuto,
                       first ? ProgressTalk::kAll : ProgressTalk::kWarnings);
  FoldRun run{.result = {},
              .trained = begun.data->size(),
              .judged = begun.eval->size(),
              .metric = begun.options.metric};
  ONWARD_ASSIGN_OR_RETURN(run.result, Train(begun.training.get(), begun.data, begun.eval,
                                            begun.options, progress.get(), &Interrupted()));
  return run;
}

void PrintFold(const Args& args, int64_t number, const FoldRun& run) {
  if (!args.Has("json")) {
    std::cout << "fold " << number << " of " << args.Int("folds") << ": "
              << ShortFigures(*run.result.evaluation) << " (" << run.judged
              << " examples, trained on " << run.trained << ")" << std::endl;
    return;
  }
  JsonWriter w;
  w.BeginObject()
      .Field("fold", number)
      .Field("folds", args.Int("folds"))
      .Field("steps", run.result.steps)
      .Field("examples", run.trained)
      .Field("eval_examples", run.judged);
  WriteFigures("eval_", *run.result.evaluation, &w);
  std::cout << w.EndObject().text() << std::endl;
}

void PrintSummary(const Args& args, Metric metric, const MeanAndDeviation& figures) {
  if (args.Has("json")) {
    JsonWriter w;
    w.BeginObject()
        .Field("folds", args.Int("folds"))
        .Field("metric", MetricName(metric))
        .Field("mean", figures.mean)
        .Field("deviation", figures.deviation);
    std::cout << w.EndObject().text() << std::endl;
    return;
  }
  const std::string text =
      metric == Metric::kAccuracy
          ? absl::StrFormat("%.2f %% ± %.2f %%", 100 * figures.mean, 100 * figures.deviation)
          : absl::StrFormat("%.6g ± %.2g", figures.mean, figures.deviation);
  std::cout << args.Int("folds") << " folds: " << MetricName(metric) << " " << text
            << " (mean and standard deviation)" << std::endl;
}

}  // namespace

absl::StatusOr<bool> CrossValidate(const Args& args, const Environment& environment) {
  std::vector<double> values;
  Metric metric = Metric::kLoss;
  for (int64_t number = 1; number <= args.Int("folds"); ++number) {
    auto run = RunFold(args, number, environment);
    if (!run.ok()) return Annotate(run.status(), absl::StrCat("fold ", number));
    if (run->result.interrupted) {
      std::cerr << "stopped in fold " << number << "; nothing is written\n";
      return false;
    }
    PrintFold(args, number, *run);
    const Evaluation& e = *run->result.evaluation;
    metric = DecidingMetric(run->metric, e);
    values.push_back(MetricOf(metric, e));
  }
  PrintSummary(args, metric, Summarised(values));
  return true;
}

}  // namespace onward
