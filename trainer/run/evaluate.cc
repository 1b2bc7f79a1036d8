// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/evaluate.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/graph/infer.h"
#include "data/text/read_text.h"
#include "trainer/run/class_labels.h"
#include "training_info/author.h"
#include "training_info/step.h"
#include "training_info/surgery/surgery.h"

namespace onward {
namespace {

double ScalarValue(const Tensor& t) {
  auto values = ToDoubles(t);
  return values.ok() && !values->empty() ? values->front() : kNotMeasured;
}

}  // namespace

LossSpec DefaultLoss(const Graph& graph, const std::string& output, int64_t classes) {
  if (classes == 0) return {"mse", {}};
  const std::string last = LastOperator(graph, output);
  const ValueType* type = graph.TypeOf(output);
  const bool one_score = type != nullptr && type->has_rank &&
                         (type->rank() == 1 || (type->rank() == 2 && type->dims[1].value == 1));
  if (one_score && classes <= 2) {
    if (last == "Sigmoid") return {"bce", {{"logits", "probabilities"}}};
    return {"bce", {}};
  }
  if (last == "Softmax") return {"cross_entropy", {{"logits", "probabilities"}}};
  if (last == "LogSoftmax") return {"cross_entropy", {{"logits", "log_probabilities"}}};
  return {"cross_entropy", {}};
}

LossSpec DefaultLoss(const Graph& graph, const std::string& output, const Dataset& data) {
  LossSpec loss = DefaultLoss(graph, output, DistinctClasses(data));
  if (loss.name != "cross_entropy") return loss;
  const ValueType* type = graph.TypeOf(output);
  for (const FieldInfo& field : data.fields()) {
    if (!field.is_label) continue;
    if (field.varies) loss.options["ignore_index"] = absl::StrCat(kNoToken);
    const int rank = field.shape.rank();
    if (rank < 1 || type == nullptr || type->rank() != rank + 2) continue;
    const Dim &first = type->dims[1], &last = type->dims[rank + 1];
    const bool positions_first = !first.known() || first.value == field.shape[0];
    if (last.known() && last.value >= data.classes() && positions_first)
      loss.options["axis"] = "-1";
  }
  return loss;
}

std::optional<LossSpec> StoredLoss(const Model& model) {
  auto loss = ParseLoss(model.Metadata(kMetaLossSpec));
  return loss.ok() ? std::optional(*std::move(loss)) : std::nullopt;
}

std::optional<int64_t> IgnoredLabel(const LossSpec& loss) {
  auto it = loss.options.find("ignore_index");
  int64_t label = 0;
  if (it == loss.options.end() || !absl::SimpleAtoi(it->second, &label)) return std::nullopt;
  return label;
}

bool TakesProbabilities(const LossSpec& loss) {
  return loss.name == "cross_entropy" && SwitchedOn(loss, "soft_labels");
}

bool JudgesClasses(const LossSpec& loss) {
  return IsClassLoss(loss) || TakesProbabilities(loss) || loss.name == "bce";
}

Scoring ScoringOf(const LossSpec& loss) {
  const auto option = [&](const char* name) {
    auto it = loss.options.find(name);
    return it == loss.options.end() ? std::string() : it->second;
  };
  Scoring scoring;
  scoring.binary = loss.name == "bce";
  scoring.soft_labels = TakesProbabilities(loss);
  scoring.classes_last = option("axis") == "-1";
  if (option("logits") == "probabilities") scoring.kind = ScoreKind::kProbabilities;
  return scoring;
}

absl::StatusOr<std::unique_ptr<Evaluator>> Evaluator::Create(Graph graph,
                                                             std::shared_ptr<const Dataset> data,
                                                             const EvaluateOptions& options,
                                                             const Environment& environment) {
  auto e = std::unique_ptr<Evaluator>(new Evaluator);
  e->data_ = std::move(data);
  e->options_ = options;
  if (graph.outputs.empty()) return absl::InvalidArgumentError("the model has no outputs");
  const std::string output = options.output.empty() ? DefaultOutput(graph) : options.output;
  if (!graph.IsOutput(output))
    return absl::InvalidArgumentError(absl::StrCat("'", output, "' is not an output"));
  if (const int64_t fixed = FixedBatch(graph); fixed > 0 && fixed != options.batch) {
    if (!FreeBatch(environment.operators(), &graph).ok()) {
      e->options_.batch = fixed;
      e->fixed_batch_ = true;
    }
  }
  SetInferenceMode(&graph);
  ONWARD_RETURN_IF_ERROR(InferTypes(&graph, environment.operators()));
  std::vector<std::string> wanted = {output};
  const std::vector<NamedType> inputs = graph.FeedInputs();
  std::vector<NamedType> fed = inputs;
  const std::vector<FieldInfo> fields = e->data_->fields();
  const bool labelled =
      std::any_of(fields.begin(), fields.end(), [](const FieldInfo& f) { return f.is_label; });
  if (labelled) {
    e->loss_spec_ = options.loss.value_or(DefaultLoss(graph, output, *e->data_));
    const LossSpec& loss = e->loss_spec_;
    if (JudgesClasses(loss)) {
      ONWARD_ASSIGN_OR_RETURN(
          AlignedData aligned,
          AlignClasses(e->data_, {.names = options.classes,
                                  .output = output,
                                  .outputs = OutputClasses(graph.TypeOf(output), ScoringOf(loss)),
                                  .ignored = IgnoredLabel(loss),
                                  .probabilities = TakesProbabilities(loss)}));
      e->data_ = std::move(aligned.data);
      e->note_ = std::move(aligned.note);
    }
    GraphBuilder b(&graph, &environment.operators(), "eval");
    e->label_ = b.UniqueName("label");
    const Expr label = b.Input(e->label_, LabelType(loss, b.Value(output).type()));
    ONWARD_ASSIGN_OR_RETURN(Expr value, BuildLoss(b, loss, b.Value(output), label));
    ONWARD_RETURN_IF_ERROR(b.status());
    e->loss_ = value.name();
    wanted.push_back(e->loss_);
    fed.push_back({e->label_, label.type()});
  }
  ONWARD_ASSIGN_OR_RETURN(e->feeding_, Feeding::Create(*e->data_, fed, e->label_));
  CompileOptions compile = environment.compile_options();
  compile.looked_at = options.looked_at;
  compile.variables = options.variables;
  compile.outputs = wanted;
  e->options_.output = output;
  e->session_ = std::make_unique<Session>(std::move(graph), std::move(compile));
  return e;
}

void Evaluator::KeepWrong(const Predictions& predictions, const Tensor& labels,
                          const Tensor& images, Evaluation* e) const {
  const bool one_each = labels.elements() == images.shape()[0];
  if (options_.wrong_examples == 0 || labels.dtype() != DType::kInt64 || !one_each) return;
  const auto actual = labels.values<int64_t>();
  const std::vector<std::string> names = data_->class_names();
  auto name_of = [&](int64_t c) {
    return c >= 0 && c < static_cast<int64_t>(names.size()) ? names[c] : absl::StrCat(c);
  };
  for (size_t i = 0; i < predictions.classes.size() && i < actual.size(); ++i) {
    if (predictions.classes[i] == actual[i] ||
        static_cast<int>(e->wrong.size()) >= options_.wrong_examples)
      continue;
    auto picture = PictureOf(images, static_cast<int64_t>(i));
    if (!picture.ok()) return;
    e->wrong.push_back({*std::move(picture), name_of(predictions.classes[i]), name_of(actual[i]),
                        predictions.confidence[i]});
  }
}

absl::StatusOr<Evaluation> Evaluator::Run(Variables* variables, const std::atomic<bool>* cancel) {
  Evaluation result;
  const bool classes = !loss_.empty() && JudgesClasses(loss_spec_);
  const Scoring scoring = ScoringOf(loss_spec_);
  // A data set may lack classes that the model knows: its output says how many there are.
  std::optional<ClassificationMetrics> classification;
  RegressionMetrics regression;
  RunningMean loss;
  RunOptions run;
  run.cancel = cancel;
  std::vector<Tensor> batch;
  for (int64_t start = 0; start < data_->size(); start += options_.batch) {
    int64_t count = std::min(options_.batch, data_->size() - start);
    std::vector<int64_t> indices(count);
    std::iota(indices.begin(), indices.end(), start);
    // A model that takes exactly one batch size gets the last examples again,
    // and what it says of the repeated ones would count twice: leave them out.
    if (fixed_batch_ && count < options_.batch) break;
    ONWARD_RETURN_IF_ERROR(data_->Fill(indices, &batch));
    ONWARD_ASSIGN_OR_RETURN(TensorMap feeds, feeding_->Feeds(batch));
    ONWARD_ASSIGN_OR_RETURN(TensorMap outputs, session_->Run(feeds, variables, run));
    result.examples += count;
    if (loss_.empty()) continue;
    loss.Add(ScalarValue(outputs.at(loss_)), static_cast<double>(count));
    const Tensor& labels = feeds.at(label_);
    if (classes) {
      const Tensor& scores = outputs.at(options_.output);
      ONWARD_ASSIGN_OR_RETURN(const Predictions predictions, Predict(scores, scoring));
      if (!classification.has_value()) {
        classification.emplace(std::max(data_->classes(), ClassesOf(scores.shape(), scoring)),
                               IgnoredLabel(loss_spec_));
      }
      ONWARD_ASSIGN_OR_RETURN(const Tensor actual, ClassLabels(labels, scoring));
      ONWARD_RETURN_IF_ERROR(classification->Add(predictions, actual));
      if (batch[0].shape().rank() > 1) KeepWrong(predictions, actual, batch[0], &result);
    } else {
      ONWARD_RETURN_IF_ERROR(regression.Add(outputs.at(options_.output), labels));
    }
  }
  if (!loss_.empty()) result.loss = loss.mean();
  if (classification.has_value()) {
    result.accuracy = classification->accuracy();
    result.confusion = classification->confusion();
    result.judged = classification->total();
    result.wrong_total = result.judged - classification->correct();
  } else if (!loss_.empty()) {
    // In the units of the data, whatever the model was trained on.
    result.mae = regression.mae() * data_->target().deviation;
    result.rmse = regression.rmse() * data_->target().deviation;
  }
  return result;
}

}  // namespace onward
