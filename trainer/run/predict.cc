// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/predict.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/json.h"
#include "core/base/status.h"
#include "core/graph/infer.h"
#include "trainer/run/class_labels.h"
#include "trainer/run/data_check.h"
#include "trainer/run/judging.h"
#include "training_info/author.h"
#include "training_info/surgery/surgery.h"

namespace onward {
namespace {

// Whether the scores of an output are those of classes, as far as the model tells.
bool Classifies(const PredictOptions& options, const Dataset& data, const std::string& last) {
  if (options.classifies) return *options.classifies;
  if (options.loss) return JudgesClasses(*options.loss);
  if (!options.classes.empty() || data.classes() > 0) return true;
  return last == "Softmax" || last == "LogSoftmax" || last == "Sigmoid";
}

// Whether there are scores for several places of each example, as of language models: two sizes
// beside the batch are not 1.
bool HasManyAnswers(const ValueType* output) {
  if (output == nullptr || !output->has_rank || output->rank() < 3) return false;
  return std::count_if(output->dims.begin() + 1, output->dims.end(),
                       [](const Dim& d) { return !d.known() || d.value != 1; }) > 1;
}

absl::Status ManyAnswers(const std::string& output, const std::string& type) {
  return absl::InvalidArgumentError(absl::StrCat(
      "output '", output, "' is ", type,
      ": scores for many places of each example, as language "
      "models have them; predict writes one class for each. `onward eval` tells how right they are "
      "(loss, accuracy, perplexity), `onward run --input NAME=FILE.npy --output-dir DIR` writes "
      "the scores themselves"));
}

int LabelIndex(const Dataset& data) {
  const std::vector<FieldInfo> fields = data.fields();
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].is_label) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Predictor>> Predictor::Create(Graph graph,
                                                             std::shared_ptr<const Dataset> data,
                                                             const PredictOptions& options,
                                                             const Environment& environment) {
  auto p = std::unique_ptr<Predictor>(new Predictor);
  p->data_ = std::move(data);
  p->options_ = options;
  if (options.batch == 0) p->options_.batch = ExamplesAtOnce(*p->data_);
  if (graph.outputs.empty()) return absl::InvalidArgumentError("the model has no outputs");
  const std::string output = options.output.empty() ? DefaultOutput(graph) : options.output;
  if (!graph.IsOutput(output)) {
    return absl::InvalidArgumentError(absl::StrCat("'", output, "' is not an output"));
  }
  if (const int64_t fixed = FixedBatch(graph); fixed > 0 && fixed != p->options_.batch) {
    p->fixed_batch_ = !FreeBatch(environment.operators(), &graph).ok();
    if (p->fixed_batch_) p->options_.batch = fixed;
  }
  SetInferenceMode(&graph);
  ONWARD_RETURN_IF_ERROR(InferTypes(&graph, environment.operators()));
  p->options_.output = output;
  p->label_ = LabelIndex(*p->data_);
  p->classifies_ = Classifies(options, *p->data_, LastOperator(graph, output));
  if (p->classifies_) {
    const ValueType* type = graph.TypeOf(output);
    if (HasManyAnswers(type)) return ManyAnswers(output, type->ToString());
    const LossSpec loss = options.loss.value_or(
        DefaultLoss(graph, output, std::max<int64_t>(2, DistinctClasses(*p->data_))));
    p->scoring_ = ScoringOf(loss);
    const int64_t outputs = OutputClasses(graph.TypeOf(output), p->scoring_);
    if (!options.classes.empty() && outputs > 0 &&
        outputs != static_cast<int64_t>(options.classes.size())) {
      return absl::InvalidArgumentError(absl::StrCat("the file names ", options.classes.size(),
                                                     " classes, but output '", output, "' tells ",
                                                     outputs, " apart"));
    }
    auto aligned = AlignClasses(p->data_, {.names = options.classes,
                                           .output = output,
                                           .outputs = outputs,
                                           .ignored = IgnoredLabel(loss)});
    // Labels that the model does not know are none to compare with.
    if (aligned.ok()) {
      p->data_ = std::move(aligned->data);
      p->note_ = std::move(aligned->note);
    } else {
      p->label_ = -1;
    }
  }
  ONWARD_ASSIGN_OR_RETURN(p->feeding_, Feeding::Create(*p->data_, graph.FeedInputs(), ""));
  CompileOptions compile = environment.compile_options();
  compile.looked_at = options.looked_at;
  compile.outputs = {output};
  p->session_ = std::make_unique<Session>(std::move(graph), std::move(compile));
  return p;
}

std::string Predictor::ClassName(size_t c) const {
  const std::vector<std::string>& names = options_.classes;
  return c < names.size() ? names[c] : absl::StrCat(c);
}

// Probabilities, or numbers as the data has them.
absl::StatusOr<Tensor> Predictor::Values(const Tensor& scores) const {
  if (classifies_) return Probabilities(scores, scoring_);
  ONWARD_ASSIGN_OR_RETURN(const std::vector<double> values, ToDoubles(scores));
  Tensor out(DType::kFloat, scores.shape());
  const Standard target = data_->target();
  for (size_t i = 0; i < values.size(); ++i) {
    out.data<float>()[i] = static_cast<float>(values[i] * target.deviation + target.mean);
  }
  return out;
}

// One text for each example.
absl::StatusOr<std::vector<std::string>> Predictor::Actual(const std::vector<Tensor>& batch) const {
  const int64_t count = batch.empty() ? 0 : batch[0].shape()[0];
  std::vector<std::string> texts(static_cast<size_t>(count));
  if (label_ < 0 || batch[label_].elements() != count) return texts;
  ONWARD_ASSIGN_OR_RETURN(const std::vector<double> labels, ToDoubles(batch[label_]));
  const Standard target = data_->target();
  for (size_t i = 0; i < labels.size(); ++i) {
    if (data_->classes() == 0) {
      texts[i] = JsonNumber(static_cast<float>(labels[i] * target.deviation + target.mean));
    } else if (labels[i] >= 0) {
      texts[i] = ClassName(static_cast<size_t>(labels[i]));
    }
  }
  return texts;
}

absl::Status Predictor::Run(absl::FunctionRef<absl::Status(const PredictedRow&)> take,
                            const std::atomic<bool>* cancel) {
  RunOptions run;
  run.cancel = cancel;
  std::vector<Tensor> batch;
  for (int64_t start = 0; start < data_->size(); start += options_.batch) {
    const int64_t count = std::min(options_.batch, data_->size() - start);
    std::vector<int64_t> indices(fixed_batch_ ? options_.batch : count);
    // A model that takes exactly one batch size gets the last example again.
    for (size_t i = 0; i < indices.size(); ++i) {
      indices[i] = std::min(start + static_cast<int64_t>(i), data_->size() - 1);
    }
    ONWARD_RETURN_IF_ERROR(data_->Fill(indices, &batch));
    ONWARD_ASSIGN_OR_RETURN(TensorMap feeds, feeding_->Feeds(batch));
    ONWARD_ASSIGN_OR_RETURN(TensorMap outputs, session_->Run(feeds, nullptr, run));
    const Tensor& scores = outputs.at(options_.output);
    if (scores.shape().rank() < 1 || scores.shape()[0] != static_cast<int64_t>(indices.size())) {
      return absl::InvalidArgumentError(
          absl::StrCat("output '", options_.output, "' has shape ", scores.shape().ToString(),
                       " for ", indices.size(), " examples; expected a row for each"));
    }
    auto values = Values(scores);
    if (!values.ok()) {
      return Annotate(values.status(), absl::StrCat("output '", options_.output, "'"));
    }
    ONWARD_ASSIGN_OR_RETURN(const std::vector<std::string> actual, Actual(batch));
    const size_t each = static_cast<size_t>(values->elements()) / indices.size();
    for (int64_t i = 0; i < count; ++i) {
      const float* row = values->data<float>() + static_cast<size_t>(i) * each;
      ONWARD_RETURN_IF_ERROR(take({start + i, absl::MakeConstSpan(row, each), actual[i]}));
    }
  }
  return absl::OkStatus();
}

}  // namespace onward
