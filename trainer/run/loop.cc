// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/loop.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/onnx_io/model.h"
#include "trainer/run/checkpoints.h"
#include "trainer/run/class_labels.h"
#include "training_info/lower.h"

namespace onward {
namespace {

constexpr double kLossDecay = 0.98;

double FirstValue(const TensorMap& outputs, const std::string& name) {
  auto it = outputs.find(name);
  if (it == outputs.end()) return kNotMeasured;
  auto values = ToDoubles(it->second);
  return values.ok() && !values->empty() ? values->front() : kNotMeasured;
}

class Loop {
 public:
  Loop(TrainingModel* model, const TrainOptions& options, RunListener* listener,
       const std::atomic<bool>* cancel)
      : model_(model), options_(options), listener_(listener), cancel_(cancel) {}

  absl::StatusOr<TrainResult> Run(std::shared_ptr<const Dataset> data,
                                  std::shared_ptr<const Dataset> eval) {
    ONWARD_RETURN_IF_ERROR(Prepare(std::move(data), std::move(eval)));
    absl::Status status = listener_->OnStart(facts_);
    if (status.ok()) status = RunSteps();
    result_.seconds = SteadySeconds() - started_;
    result_.samples_per_second =
        result_.seconds > 0 ? static_cast<double>(examples_) / result_.seconds : 0;
    result_.interrupted = status.code() == absl::StatusCode::kCancelled;
    status = End(status);
    status.Update(listener_->OnEnd({result_, status}));
    if (!status.ok() && !result_.interrupted) return status;
    return result_;
  }

 private:
  absl::Status Prepare(std::shared_ptr<const Dataset> data, std::shared_ptr<const Dataset> eval) {
    started_ = SteadySeconds();
    loss_ = model_->model().Metadata(kMetaLoss);
    train_output_ = model_->model().Metadata(kMetaTrainOutput);
    label_ = model_->model().Metadata(kMetaLabel);
    const Graph& lowered = model_->lowered(0);
    for (const std::string& name : {loss_, train_output_, std::string("learning_rate")}) {
      if (!name.empty() && lowered.IsOutput(name)) wanted_.push_back(name);
    }
    if (loss_.empty()) loss_ = FindLoss(lowered);
    ONWARD_RETURN_IF_ERROR(AlignWithModel(&data));
    BatchOptions batches{options_.batch, options_.shuffle, options_.seed, true};
    ONWARD_ASSIGN_OR_RETURN(BatchSource source, BatchSource::Create(data, batches));
    source_.emplace(std::move(source));
    if (options_.resumed) {
      result_.steps = MetadataInt(model_->model(), kMetaSteps);
      ONWARD_RETURN_IF_ERROR(source_->SetPosition(
          {MetadataInt(model_->model(), kMetaEpoch), MetadataInt(model_->model(), kMetaIndex)}));
    }
    ONWARD_ASSIGN_OR_RETURN(feeding_,
                            Feeding::Create(*data, model_->StepInputs(-1, wanted_), label_));
    classes_ = data->classes();
    checkpoints_.emplace(model_, options_, result_.steps, listener_);
    checkpoints_->set_classes(classes_stored_);
    if (eval != nullptr) ONWARD_RETURN_IF_ERROR(PrepareEvaluation(std::move(eval)));
    GatherFacts(*data);
    return absl::OkStatus();
  }

  void GatherFacts(const Dataset& data) {
    facts_.model = model_->model().path();
    facts_.output = options_.output;
    facts_.resumed = options_.resumed;
    facts_.first_step = result_.steps;
    facts_.steps_per_epoch = source_->batches_per_epoch();
    facts_.total_steps =
        options_.steps > 0 ? options_.steps : options_.epochs * facts_.steps_per_epoch;
    facts_.batch = options_.batch;
    facts_.examples = data.size();
    facts_.settings = options_.settings;
  }

  // Labels get the numbers of the model's outputs.
  absl::Status AlignWithModel(std::shared_ptr<const Dataset>* data) {
    const Model& model = model_->model();
    ONWARD_ASSIGN_OR_RETURN(classes_stored_, StoredClasses(model));
    judges_classes_ = (*data)->classes() > 0;
    std::optional<int64_t> ignored;
    if (const std::optional<LossSpec> loss = StoredLoss(model)) {
      judges_classes_ = JudgesClasses(*loss);
      scoring_ = ScoringOf(*loss);
      ignored = IgnoredLabel(*loss);
    }
    if (!judges_classes_) return absl::OkStatus();
    const Graph& lowered = model_->lowered(0);
    const ValueType* output = train_output_.empty() ? nullptr : lowered.TypeOf(train_output_);
    ONWARD_ASSIGN_OR_RETURN(AlignedData aligned,
                            AlignClasses(*data, {.names = classes_stored_,
                                                 .output = model.Metadata(kMetaOutput),
                                                 .outputs = OutputClasses(output, scoring_),
                                                 .ignored = ignored,
                                                 .takes_names = !options_.resumed}));
    *data = std::move(aligned.data);
    classes_stored_ = std::move(aligned.names);
    if (!aligned.note.empty()) facts_.notes.push_back(std::move(aligned.note));
    return absl::OkStatus();
  }

  // A file written elsewhere does not say what its loss is: the one scalar
  // float output of the algorithm, if there is just one.
  static std::string FindLoss(const Graph& graph) {
    std::string found;
    for (const NamedType& out : graph.outputs) {
      if (out.type.rank() == 0 && IsFloating(out.type.dtype)) {
        if (!found.empty()) return "";
        found = out.name;
      }
    }
    return found;
  }

  absl::Status PrepareEvaluation(std::shared_ptr<const Dataset> eval) {
    ONWARD_ASSIGN_OR_RETURN(Graph graph, Lower(model_->spec().inference, model_->environment(),
                                               model_->spec().StateVariables()));
    EvaluateOptions options;
    options.output = model_->model().Metadata(kMetaOutput);
    options.loss = StoredLoss(model_->model());
    options.looked_at = model_->model().weights().PageReleaser();
    options.classes = classes_stored_;
    for (const auto& [name, tensor] : model_->variables()) options.variables.insert(name);
    options.wrong_examples = listener_->wrong_examples();
    facts_.class_names = classes_stored_.empty() ? eval->class_names() : classes_stored_;
    ONWARD_ASSIGN_OR_RETURN(evaluator_, Evaluator::Create(std::move(graph), std::move(eval),
                                                          options, model_->environment()));
    if (!evaluator_->note().empty()) facts_.notes.push_back(evaluator_->note());
    return absl::OkStatus();
  }

  absl::Status RunSteps() {
    Batch batch;
    while (result_.steps < facts_.total_steps) {
      if (cancel_ != nullptr && cancel_->load()) return absl::CancelledError("stopped");
      const BatchPosition before = source_->position();
      ONWARD_RETURN_IF_ERROR(source_->Next(&batch));
      ONWARD_ASSIGN_OR_RETURN(TensorMap feeds, feeding_->Feeds(batch.tensors));
      auto outputs = model_->Step(feeds, wanted_, cancel_);
      if (!outputs.ok()) {
        // The batch counts as not taken: a resumed run meets it again.
        ONWARD_RETURN_IF_ERROR(source_->SetPosition(before));
        return Annotate(outputs.status(),
                        absl::StrCat("'", model_->model().path(), "', step ", result_.steps + 1));
      }
      ++result_.steps;
      examples_ += static_cast<int64_t>(batch.indices.size());
      ONWARD_RETURN_IF_ERROR(listener_->OnStep(Measure(*outputs, feeds, batch)));
      if (checkpoints_->IsDue(result_.steps, batch.last_of_epoch)) {
        checkpoints_->SaveOrGoOn(result_.steps, source_->position());
      }
      const bool evaluate =
          options_.eval_every > 0 ? result_.steps % options_.eval_every == 0 : batch.last_of_epoch;
      if (evaluate && evaluator_ != nullptr)
        ONWARD_RETURN_IF_ERROR(Evaluate(batch.last_of_epoch ? batch.position.epoch + 1 : 0));
    }
    return absl::OkStatus();
  }

  StepEvent Measure(const TensorMap& outputs, const TensorMap& feeds, const Batch& batch) {
    StepEvent step;
    step.step = result_.steps;
    step.epoch = source_->position().epoch;
    step.examples = static_cast<int64_t>(batch.indices.size());
    step.loss = FirstValue(outputs, loss_);
    step.learning_rate = FirstValue(outputs, "learning_rate");
    // An entry that sits out this iteration has no loss to tell.
    if (!std::isnan(step.loss)) smoothed_loss_.Add(step.loss);
    auto scores = outputs.find(train_output_);
    auto labels = feeds.find(label_);
    if (judges_classes_ && scores != outputs.end() && labels != feeds.end()) {
      const int64_t classes = ClassesOf(scores->second.shape(), scoring_);
      ClassificationMetrics metrics(std::max(classes_, classes));
      const auto predictions = Predict(scores->second, scoring_);
      const auto actual = ClassLabels(labels->second, scoring_);
      if (predictions.ok() && actual.ok() && metrics.Add(*predictions, *actual).ok()) {
        step.accuracy = metrics.accuracy();
        smoothed_accuracy_.Add(step.accuracy);
      }
    }
    step.smoothed_loss = result_.loss = smoothed_loss_.mean();
    step.smoothed_accuracy = smoothed_accuracy_.mean();
    step.seconds = SteadySeconds() - started_;
    return step;
  }

  absl::Status Evaluate(int64_t epoch) {
    ONWARD_ASSIGN_OR_RETURN(Evaluation e, evaluator_->Run(&model_->variables(), cancel_));
    evaluated_at_ = result_.steps;
    result_.evaluation = std::move(e);
    return listener_->OnEvaluation({result_.steps, epoch, *result_.evaluation});
  }

  // What is left to do after the steps, which ended like this.
  absl::Status End(const absl::Status& status) {
    const bool failed = !status.ok() && !result_.interrupted;
    result_.saved = checkpoints_->saved();
    if (failed && checkpoints_->replaces_other() && !result_.saved) {
      return Annotate(status, absl::StrCat("'", options_.output, "' is left as it was"));
    }
    ONWARD_RETURN_IF_ERROR(checkpoints_->Save(result_.steps, source_->position()));
    result_.saved = checkpoints_->saved();
    if (status.ok() && evaluator_ != nullptr && evaluated_at_ != result_.steps) {
      ONWARD_RETURN_IF_ERROR(Evaluate(0));
    }
    return status;
  }

  TrainingModel* model_;
  const TrainOptions& options_;
  RunListener* listener_;
  const std::atomic<bool>* cancel_;
  std::string loss_, train_output_, label_;
  std::vector<std::string> wanted_;
  std::optional<BatchSource> source_;
  std::optional<Feeding> feeding_;
  std::optional<Checkpoints> checkpoints_;
  std::unique_ptr<Evaluator> evaluator_;
  std::vector<std::string> classes_stored_;  // what the file calls its classes; empty: nothing
  int64_t classes_ = 0, evaluated_at_ = -1;
  bool judges_classes_ = false;
  Scoring scoring_;
  SmoothedMean smoothed_loss_{kLossDecay}, smoothed_accuracy_{kLossDecay};
  double started_ = 0;
  int64_t examples_ = 0;  // that this run has trained on
  RunFacts facts_;
  TrainResult result_;
};

}  // namespace

absl::StatusOr<TrainResult> Train(TrainingModel* model, std::shared_ptr<const Dataset> data,
                                  std::shared_ptr<const Dataset> eval, const TrainOptions& options,
                                  RunListener* listener, const std::atomic<bool>* cancel) {
  RunListener silent;
  return Loop(model, options, listener == nullptr ? &silent : listener, cancel)
      .Run(std::move(data), std::move(eval));
}

}  // namespace onward
