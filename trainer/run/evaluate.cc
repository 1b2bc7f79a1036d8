// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/evaluate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status.h"
#include "core/graph/infer.h"
#include "trainer/run/class_labels.h"
#include "trainer/run/data_check.h"
#include "trainer/run/data_loss.h"
#include "trainer/run/label_feeding.h"
#include "training_info/author.h"
#include "training_info/lower.h"
#include "training_info/step.h"
#include "training_info/surgery/surgery.h"

namespace onward {
namespace {

double ScalarValue(const Tensor& t) {
  auto values = ToDoubles(t);
  return values.ok() && !values->empty() ? values->front() : kNotMeasured;
}

std::vector<std::string> LabelsOf(const LossParts& losses) {
  std::vector<std::string> labels;
  for (const LossPart& part : losses.parts) {
    labels.insert(labels.end(), part.labels.begin(), part.labels.end());
  }
  return labels;
}

// Whether there is something to feed to each of the labels, the first of which takes what the
// data set calls its labels.
bool HasLabels(const Dataset& data, const std::vector<std::string>& labels) {
  const std::vector<FieldInfo> fields = data.fields();
  bool spare = LabelField(fields) != nullptr;
  for (const std::string& label : labels) {
    const bool named = std::any_of(fields.begin(), fields.end(),
                                   [&](const FieldInfo& f) { return f.name == label; });
    if (!named && !std::exchange(spare, false)) return false;
  }
  return true;
}

// In the units of the data, whatever the model was trained on.
void InUnitsOf(const Standard& target, PartEvaluation* part) {
  part->mae *= target.deviation;
  part->rmse *= target.deviation;
  for (NumberPair& pair : part->pairs) {
    pair.actual = pair.actual * target.deviation + target.mean;
    pair.predicted = pair.predicted * target.deviation + target.mean;
  }
}

absl::Status NoOutput(const std::string& name, const Graph& graph) {
  std::vector<std::string> known;
  for (const NamedType& out : graph.outputs) known.push_back(out.name);
  return absl::InvalidArgumentError(absl::StrCat("'", name, "' is not an output of the model; ",
                                                 "there are: ", absl::StrJoin(known, ", ")));
}

}  // namespace

std::vector<std::string> MetricNames() { return {"loss", "accuracy", "rmse", "mae"}; }

std::string MetricName(Metric metric) { return MetricNames()[static_cast<size_t>(metric)]; }

bool HigherIsBetter(Metric metric) { return metric == Metric::kAccuracy; }

double MetricOf(Metric metric, const Evaluation& e) {
  switch (metric) {
    case Metric::kAccuracy: return e.accuracy;
    case Metric::kRmse: return e.rmse;
    case Metric::kMae: return e.mae;
    case Metric::kLoss: break;
  }
  return e.loss;
}

absl::StatusOr<Graph> EvaluationGraph(const Model& model, const TrainingSpec& spec,
                                      const Environment& environment, EvaluateOptions* options) {
  options->output = model.Metadata(kMetaOutput);
  options->losses = spec.entries.empty() ? std::nullopt : StoredLosses(model);
  if (!options->losses.has_value()) {
    return Lower(spec.inference, environment, spec.StateVariables());
  }
  ONWARD_ASSIGN_OR_RETURN(const Graph graph, LossGraph(spec, &*options->losses));
  return Lower(graph, environment, spec.StateVariables());
}

absl::StatusOr<std::unique_ptr<Evaluator>> Evaluator::Create(Graph graph,
                                                             std::shared_ptr<const Dataset> data,
                                                             const EvaluateOptions& options,
                                                             const Environment& environment) {
  auto e = std::unique_ptr<Evaluator>(new Evaluator);
  e->data_ = std::move(data);
  e->options_ = options;
  if (options.batch == 0) e->options_.batch = ExamplesAtOnce(*e->data_);
  if (graph.outputs.empty()) return absl::InvalidArgumentError("the model has no outputs");
  if (options.output.empty()) e->options_.output = DefaultOutput(graph);
  if (!graph.IsOutput(e->options_.output)) return NoOutput(e->options_.output, graph);
  if (const int64_t fixed = FixedBatch(graph); fixed > 0 && fixed != e->options_.batch) {
    if (!FreeBatch(environment.operators(), &graph).ok()) {
      e->options_.batch = fixed;
      e->fixed_batch_ = true;
    }
  }
  SetInferenceMode(&graph);
  ONWARD_RETURN_IF_ERROR(InferTypes(&graph, environment.operators()));
  ONWARD_RETURN_IF_ERROR(e->PrepareLosses(environment, &graph));
  for (const LossPart& part : e->losses_.parts) e->judgings_.push_back(JudgingOf(part, graph));
  const std::vector<std::string> labels = LabelsOf(e->losses_);
  ONWARD_ASSIGN_OR_RETURN(
      e->feeding_, FeedingFor(e->data_, graph.FeedInputs(), labels.empty() ? "" : labels.front(),
                              e->judgings_, graph));
  ONWARD_RETURN_IF_ERROR(e->AlignLabels(graph));
  CompileOptions compile = environment.compile_options();
  compile.looked_at = options.looked_at;
  compile.variables = options.variables;
  compile.outputs = e->Wanted();
  e->session_ = std::make_unique<Session>(std::move(graph), std::move(compile));
  return e;
}

std::vector<std::string> Evaluator::Wanted() const {
  std::vector<std::string> wanted = {options_.output};
  const auto want = [&](const std::string& value) {
    if (std::find(wanted.begin(), wanted.end(), value) == wanted.end()) wanted.push_back(value);
  };
  for (const Judging& judging : judgings_) {
    if (judging.by != JudgedBy::kLossAlone) want(judging.output);
  }
  for (const LossPart& part : losses_.parts) want(part.value);
  return wanted;
}

absl::Status Evaluator::PrepareLosses(const Environment& environment, Graph* graph) {
  const bool labelled = LabelField(data_->fields()) != nullptr;
  if (options_.losses.has_value()) {
    losses_ = *options_.losses;
  } else if (labelled || !options_.terms.empty()) {
    std::vector<LossTerm> terms = options_.terms;
    if (terms.empty()) terms.push_back({.spec = DefaultLoss(*graph, options_.output, *data_)});
    ONWARD_ASSIGN_OR_RETURN(losses_,
                            AddLosses(terms, options_.output, "label", environment, graph));
  }
  if (!HasLabels(*data_, LabelsOf(losses_))) {
    const std::vector<std::string> unfed = LabelsOf(losses_);
    std::erase_if(graph->inputs, [&](const NamedType& in) {
      return std::find(unfed.begin(), unfed.end(), in.name) != unfed.end();
    });
    losses_ = {};
  }
  return absl::OkStatus();
}

// Labels of the data set get the numbers of the outputs they are compared with.
absl::Status Evaluator::AlignLabels(const Graph& graph) {
  for (size_t i = 0; i < judgings_.size(); ++i) {
    const Judging& judging = judgings_[i];
    if (judging.by != JudgedBy::kClasses || judging.label != feeding_->label_input()) continue;
    ONWARD_ASSIGN_OR_RETURN(AlignedData aligned,
                            AlignClasses(data_, {.names = options_.classes,
                                                 .output = losses_.parts[i].term.outputs[0],
                                                 .outputs = OutputClasses(
                                                     graph.TypeOf(judging.output), judging.scoring),
                                                 .ignored = judging.ignored,
                                                 .probabilities = judging.scoring.soft_labels}));
    data_ = std::move(aligned.data);
    note_ = std::move(aligned.note);
    break;
  }
  ChooseMain();
  return absl::OkStatus();
}

absl::Status Evaluator::CheckMeasures(Metric metric) const {
  if (losses_.parts.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(data_->source(), ": has no labels, so evaluations have no figures"));
  }
  const JudgedBy by = main_ < judgings_.size() ? judgings_[main_].by : JudgedBy::kLossAlone;
  const bool measured =
      metric == Metric::kLoss ||
      by == (metric == Metric::kAccuracy ? JudgedBy::kClasses : JudgedBy::kNumbers);
  if (measured) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "there is no ", MetricName(metric), " to compare evaluations by: the model gives ",
      by == JudgedBy::kClasses   ? "classes (use accuracy or loss)"
      : by == JudgedBy::kNumbers ? "numbers (use rmse, mae or loss)"
                                 : "a loss alone"));
}

void Evaluator::ChooseMain() {
  for (const JudgedBy by : {JudgedBy::kClasses, JudgedBy::kNumbers}) {
    for (main_ = 0; main_ < judgings_.size(); ++main_) {
      if (judgings_[main_].by == by) return;
    }
  }
}

void Evaluator::KeepWrong(const Judge::Answers& answers, const Tensor& inputs, int64_t first,
                          Evaluation* e) const {
  const Tensor& labels = answers.actual;
  const bool one_each = inputs.shape().rank() > 0 && labels.elements() == inputs.shape()[0];
  if (options_.wrong_examples == 0 || labels.dtype() != DType::kInt64 || !one_each) return;
  const auto actual = labels.values<int64_t>();
  const std::vector<std::string> names = data_->class_names();
  auto name_of = [&](int64_t c) {
    return c >= 0 && c < static_cast<int64_t>(names.size()) ? names[c] : absl::StrCat(c);
  };
  const auto surer = [](const WrongExample& a, const WrongExample& b) {
    return a.confidence > b.confidence;
  };
  const Predictions& predictions = answers.predictions;
  const size_t most = static_cast<size_t>(options_.wrong_examples);
  for (size_t i = 0; i < predictions.classes.size() && i < actual.size(); ++i) {
    const bool counts = actual[i] >= 0 && actual[i] != judgings_[main_].ignored;
    if (!counts || predictions.classes[i] == actual[i]) continue;
    WrongExample wrong{{},
                       name_of(predictions.classes[i]),
                       name_of(actual[i]),
                       predictions.confidence[i],
                       first + static_cast<int64_t>(i)};
    if (std::isnan(wrong.confidence)) wrong.confidence = 0;
    const auto place = std::upper_bound(e->wrong.begin(), e->wrong.end(), wrong, surer);
    if (e->wrong.size() == most && place == e->wrong.end()) continue;
    if (auto picture = PictureOf(inputs, static_cast<int64_t>(i)); picture.ok()) {
      wrong.picture = *std::move(picture);
    }
    e->wrong.insert(place, std::move(wrong));
    if (e->wrong.size() > most) e->wrong.pop_back();
  }
}

absl::StatusOr<Evaluation> Evaluator::Run(Variables* variables, const std::atomic<bool>* cancel) {
  Evaluation result;
  std::vector<Judge> judges;
  for (const Judging& judging : judgings_) {
    judges.emplace_back(judging, judging.label == feeding_->label_input() ? data_->classes() : 0);
  }
  std::vector<DataLoss> losses;
  for (size_t i = 0; i < judges.size(); ++i) {
    losses.emplace_back(losses_.parts[i], judgings_[i], judges.size() == 1);
  }
  RunOptions run;
  run.cancel = cancel;
  std::vector<Tensor> batch;
  for (int64_t start = 0; start < data_->size(); start += options_.batch) {
    const int64_t count = std::min(options_.batch, data_->size() - start);
    std::vector<int64_t> indices(count);
    std::iota(indices.begin(), indices.end(), start);
    // A model that takes exactly one batch size gets the last examples again,
    // and what it says of the repeated ones would count twice: leave them out.
    if (fixed_batch_ && count < options_.batch) break;
    ONWARD_RETURN_IF_ERROR(data_->Fill(indices, &batch));
    ONWARD_ASSIGN_OR_RETURN(const TensorMap feeds, feeding_->Feeds(batch));
    ONWARD_ASSIGN_OR_RETURN(const TensorMap values, session_->Run(feeds, variables, run));
    result.examples += count;
    if (judges.empty()) continue;
    for (size_t i = 0; i < judges.size(); ++i) {
      ONWARD_ASSIGN_OR_RETURN(const auto answers, judges[i].Add(values, feeds));
      if (i == main_ && answers.has_value()) KeepWrong(*answers, batch[0], start, &result);
      losses[i].Add(ScalarValue(values.at(losses_.parts[i].value)), answers, count);
    }
  }
  if (judges.empty()) return result;
  result.loss = 0;
  for (size_t i = 0; i < judges.size(); ++i) {
    const LossTerm& term = losses_.parts[i].term;
    PartEvaluation& part = result.parts.emplace_back(
        PartEvaluation{.name = LossTermText(term), .output = term.outputs[0]});
    part.loss = losses[i].mean();
    result.loss += term.weight * part.loss;
    judges[i].Fill(&part);
    if (judgings_[i].sequence) part.perplexity = std::exp(part.loss);
    if (judgings_[i].label == feeding_->label_input()) InUnitsOf(data_->target(), &part);
  }
  if (main_ < judges.size()) {
    const PartEvaluation& part = result.parts[main_];
    result.accuracy = part.accuracy;
    result.confusion = part.confusion;
    result.judged = part.judged;
    result.wrong_total = part.wrong_total;
    result.mae = part.mae;
    result.rmse = part.rmse;
    result.r2 = part.r2;
    result.perplexity = part.perplexity;
    result.calibration = part.calibration;
    result.pairs = part.pairs;
  }
  return result;
}

}  // namespace onward
