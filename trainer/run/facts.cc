// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/facts.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/base/parallel.h"
#include "core/base/size_text.h"
#include "core/base/status.h"
#include "trainer/report/page/html.h"
#include "trainer/run/class_labels.h"
#include "training_info/training_facts.h"

namespace onward {
namespace {

constexpr size_t kMostNames = 20;   // of classes
constexpr size_t kMostWeights = 4;  // by their names
constexpr double kMuchOld = 0.1;    // of running statistics

std::string Counted(int64_t count, const char* one, const char* many) {
  return absl::StrCat(WithCommas(count), " ", count == 1 ? one : many);
}

void CountWeights(const TrainingModel& model, RunFacts* facts) {
  std::set<std::string> statistics;
  const Graph& inference = model.spec().inference;
  for (const Node& node : inference.nodes) {
    if (!node.Is("BatchNormalization")) continue;
    for (int i : {3, 4}) {
      if (node.HasInput(i)) statistics.insert(node.inputs[static_cast<size_t>(i)]);
    }
  }
  const std::set<std::string> variables = model.spec().StateVariables();
  for (const auto& [name, tensor] : inference.initializers) {
    if (variables.contains(name) && statistics.contains(name)) {
      ++facts->statistics;
    } else if (variables.contains(name)) {
      ++facts->trained;
      if (facts->trained_names.size() < kMostWeights) facts->trained_names.push_back(name);
      facts->trained_numbers += tensor.elements();
    } else if (IsFloating(tensor.dtype()) && tensor.elements() > 1) {
      ++facts->frozen;
      facts->frozen_numbers += tensor.elements();
    }
  }
}

std::string WeightsText(const RunFacts& f) {
  std::string text = absl::StrCat(Counted(f.trained, "tensor", "tensors"), " trained (",
                                  Counted(f.trained_numbers, "number", "numbers"), ")");
  if (f.frozen > 0) {
    // Which they are goes without saying where all are trained.
    const bool more = f.trained > static_cast<int64_t>(f.trained_names.size());
    absl::StrAppend(&text, ": ", absl::StrJoin(f.trained_names, ", "), more ? ", ..." : "", "; ",
                    WithCommas(f.frozen), " frozen (",
                    Counted(f.frozen_numbers, "number", "numbers"), ")");
  }
  if (f.statistics > 0) absl::StrAppend(&text, ", ", f.statistics, " statistics");
  return text;
}

// Evaluations and whoever serves the model go by running statistics, of which
// momentum^steps is still what the file began with. "": hardly any.
std::string OldStatistics(const Graph& step, int64_t steps) {
  double momentum = 0;
  for (const Node& node : step.nodes) {
    if (node.Is("BatchNormalization") && node.Int("training_mode", 0) != 0) {
      momentum = std::max(momentum, static_cast<double>(node.Float("momentum", 0.9f)));
    }
  }
  const double old = std::pow(momentum, static_cast<double>(steps));
  if (old < kMuchOld) return "";
  return absl::StrFormat(
      "after %d steps the running statistics of BatchNormalization (momentum %.4g) will be %.0f %% "
      "what the file began with, and evaluations go by them; where they do not fit the data, train "
      "longer (--epochs), or with --freeze-statistics, so that training goes by them, too",
      steps, momentum, 100 * old);
}

std::string LossesText(const LossParts& losses) {
  if (losses.parts.empty()) {
    return losses.sum.empty() ? "the file does not say" : absl::StrCat("'", losses.sum, "'");
  }
  return absl::StrJoin(losses.parts, " + ", [](std::string* out, const LossPart& part) {
    absl::StrAppend(out, LossTermText(part.term));
    if (!part.labels.empty()) {
      absl::StrAppend(out, " (labels '", absl::StrJoin(part.labels, "', '"), "')");
    }
  });
}

// Some of the names, for weights that may be many.
std::string SomeNames(const std::vector<std::string>& names) {
  const size_t shown = std::min(names.size(), kMostWeights);
  return absl::StrCat(
      absl::StrJoin(names.begin(), names.begin() + static_cast<int64_t>(shown), ", "),
      names.size() > shown ? absl::StrCat(", ... (", names.size(), ")") : "");
}

// What of the recipe there is, beside losses, optimizer and schedule.
void AddRecipe(const TrainingFacts& facts, std::vector<ReportSetting>* settings) {
  const auto add = [&](const char* name, std::string words) {
    if (!words.empty()) settings->push_back({name, std::move(words)});
  };
  add("Groups",
      absl::StrJoin(facts.said.groups, "; ", [](std::string* out, const GroupFacts& group) {
        absl::StrAppend(out, group.options, ": ", SomeNames(group.weights));
      }));
  add("Clipping", facts.said.clip);
  add("Precision", PrecisionWords(facts));
  add("Accumulate", AccumulationWords(facts));
  add("Averages", AveragesWords(facts));
  add("Adapters", AdaptersWords(facts));
}

std::string ClassesText(const PreparedRun& p, int64_t outputs) {
  if (p.judging.by != JudgedBy::kClasses) return "none";
  const std::vector<std::string>& names = p.classes;
  if (names.empty())
    return outputs > 0 ? absl::StrCat(outputs, ", by their numbers") : "by numbers";
  const size_t shown = std::min(names.size(), kMostNames);
  return absl::StrCat(
      names.size(), ": ",
      absl::StrJoin(names.begin(), names.begin() + static_cast<int64_t>(shown), ", "),
      names.size() > shown ? ", ..." : "");
}

std::string StepsText(const RunFacts& f, const TrainOptions& options) {
  std::string text = WithCommas(f.total_steps);
  if (f.first_step > 0) absl::StrAppend(&text, ", ", WithCommas(f.first_step), " of them done");
  absl::StrAppend(&text, "; an epoch has ", WithCommas(f.steps_per_epoch), " of ", f.batch,
                  " examples");
  const int64_t rest = f.examples % f.batch;
  if (rest > 0) {
    absl::StrAppend(&text, options.drop_last ? absl::StrCat(", the last ", rest, " are left out")
                                             : absl::StrCat(", the last of ", rest));
  }
  return text;
}

int64_t PlanBytes(const Plan& plan) {
  size_t bytes = plan.arena_bytes;
  for (size_t accelerator : plan.accelerator_bytes) bytes += accelerator;
  return static_cast<int64_t>(bytes);
}

// Of the largest entry: they run one after the other. The step is compiled for so many examples.
absl::StatusOr<int64_t> StepBytes(TrainingModel* model, const PreparedRun& p, int64_t batch) {
  ONWARD_ASSIGN_OR_RETURN(const TensorMap feeds, FirstFeeds(p, batch));
  int64_t most = 0;
  for (int k = 0; k < model->entries(); ++k) {
    TensorMap own;
    for (const NamedType& in : model->StepInputs(k, p.wanted)) {
      if (const auto it = feeds.find(in.name); it != feeds.end()) own.insert(*it);
    }
    auto executor = model->PrepareStep(k, own, p.wanted);
    if (!executor.ok()) {
      return Annotate(executor.status(), absl::StrCat("'", model->model().path(), "'"));
    }
    most = std::max(most, PlanBytes((*executor)->plan()));
  }
  return most;
}

// Norms are measured where evaluations are: after the last batch of an epoch, which may be short.
// Where they cannot be measured the run goes on without them.
int64_t NormBytes(const TrainingModel& model, const TrainOptions& options, const PreparedRun& p) {
  if (p.norms == nullptr) return 0;
  const int64_t rest = p.facts.examples % options.batch;
  const bool of_rest = options.eval_every == 0 && rest > 0 && !options.drop_last;
  const auto feeds = FirstFeeds(p, of_rest ? rest : options.batch);
  if (!feeds.ok()) return 0;
  const auto plan = p.norms->Prepare(*feeds, model);
  return plan.ok() && *plan != nullptr ? PlanBytes(**plan) : 0;
}

// A model may be made for whole batches without saying so.
absl::Status CheckShortBatch(TrainingModel* model, const PreparedRun& p,
                             const TrainOptions& options) {
  const RunFacts& f = p.facts;
  const int64_t rest = f.examples % f.batch;
  const bool meets = f.total_steps / f.steps_per_epoch > f.first_step / f.steps_per_epoch;
  if (options.drop_last || rest == 0 || rest == f.examples || !meets) return absl::OkStatus();
  return Annotate(StepBytes(model, p, rest).status(),
                  absl::StrCat("the last batch of an epoch has ", rest,
                               " examples, which --drop-last leaves out"));
}

}  // namespace

absl::StatusOr<TensorMap> FirstFeeds(const PreparedRun& prepared, int64_t batch) {
  std::vector<int64_t> indices(static_cast<size_t>(std::min(batch, prepared.data->size())));
  std::iota(indices.begin(), indices.end(), 0);
  std::vector<Tensor> tensors;
  ONWARD_RETURN_IF_ERROR(prepared.data->Fill(indices, &tensors));
  return prepared.feeding->Feeds(tensors);
}

absl::Status GatherFacts(TrainingModel* model, const TrainOptions& options,
                         const std::string& evaluated, PreparedRun* prepared) {
  PreparedRun& p = *prepared;
  RunFacts& f = p.facts;
  f.model = model->model().path();
  f.output = options.output;
  f.command = options.command;
  f.told = options.told;
  f.resumed = options.resumed;
  f.steps_per_epoch = p.source->batches_per_epoch();
  f.total_steps = PlannedSteps(options, p.data->size());
  f.batch = options.batch;
  f.examples = p.data->size();
  f.metric = p.metric;
  CountWeights(*model, &f);
  int64_t held = 0;
  for (const auto& [name, tensor] : std::as_const(*model).variables()) {
    held += static_cast<int64_t>(tensor.bytes());
  }
  ONWARD_ASSIGN_OR_RETURN(const int64_t step, StepBytes(model, p, options.batch));
  ONWARD_RETURN_IF_ERROR(CheckShortBatch(model, p, options));
  const int64_t norms = NormBytes(*model, options, p);
  f.memory_bytes = held + step + norms;
  // Of what is neither evaluated nor written, nothing is seen with them.
  const bool uses_statistics = p.evaluator != nullptr || !options.output.empty();
  const std::string old = OldStatistics(model->lowered(0), f.total_steps);
  if (uses_statistics && !old.empty()) f.notes.push_back(old);
  const absl::StatusOr<RateRecipe> rate = StoredRate(model->model());
  const ValueType* output = model->lowered(0).TypeOf(p.judging.output);
  f.settings = {{"Model", f.model.empty() ? "new" : f.model},
                {"Data", absl::StrCat(p.data->source(), ": ", Describe(*p.data))},
                {"Evaluation", evaluated},
                {"Loss", LossesText(p.losses)},
                {"Optimizer", rate.ok() ? OptimizerWords(rate->optimizer) : "as the file has it"},
                {"Schedule", rate.ok() ? ScheduleText(rate->schedule) : "as the file has it"}};
  AddRecipe(GatherTrainingFacts(model->model(), model->spec()), &f.settings);
  f.settings.insert(
      f.settings.end(),
      {{"Classes", ClassesText(p, OutputClasses(output, p.judging.scoring))},
       {"Weights", WeightsText(f)},
       {"Steps", StepsText(f, options)},
       {"Seed", absl::StrCat(options.seed, options.shuffle ? "" : ", not shuffled",
                             options.balance ? ", all classes equally often" : "")},
       {"Threads", absl::StrCat(Threads())},
       {"Memory",
        absl::StrCat("about ", SizeText(f.memory_bytes), " (variables ", SizeText(held),
                     ", a step ", SizeText(step),
                     norms > 0 ? absl::StrCat(", norms of layers ", SizeText(norms)) : "", ")")}});
  return absl::OkStatus();
}

}  // namespace onward
