// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/loop.h"

#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "trainer/run/checkpoints.h"
#include "trainer/run/prepared_run.h"
#include "training_info/loss_scale.h"

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
  Loop(TrainingModel* model, PreparedRun prepared, const TrainOptions& options,
       RunListener* listener, const std::atomic<bool>* cancel)
      : model_(model),
        p_(std::move(prepared)),
        options_(options),
        listener_(listener),
        cancel_(cancel),
        checkpoints_(model, options, p_.facts.first_step, listener) {
    checkpoints_.set_classes(p_.classes);
    checkpoints_.Note(kMetaPlateau, p_.plateau.has_value() ? p_.plateau->State() : "");
    checkpoints_.Note(kMetaEvaluationDue, "");
    result_.steps = p_.facts.first_step;
    skipped_before_ = SkippedSteps(*model).value_or(0);
  }

  absl::StatusOr<TrainResult> Run() {
    absl::Status status = listener_->OnStart(p_.facts);
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
  absl::Status RunSteps() {
    Batch batch;
    if (options_.resumed && p_.evaluator != nullptr &&
        MetadataInt(model_->model(), kMetaEvaluationDue) != 0) {
      checkpoints_.Changed();
      ONWARD_RETURN_IF_ERROR(EvaluateAsPlanned());
    }
    while (result_.steps < p_.facts.total_steps) {
      if (cancel_ != nullptr && cancel_->load()) return absl::CancelledError("stopped");
      const BatchPosition before = p_.source->position();
      ONWARD_RETURN_IF_ERROR(p_.source->Next(&batch));
      ONWARD_ASSIGN_OR_RETURN(TensorMap feeds, p_.feeding->Feeds(batch.tensors));
      auto outputs = model_->Step(feeds, p_.wanted, cancel_);
      if (!outputs.ok()) {
        // The batch counts as not taken: a resumed run meets it again.
        ONWARD_RETURN_IF_ERROR(p_.source->SetPosition(before));
        return Annotate(outputs.status(),
                        absl::StrCat("'", model_->model().path(), "', step ", result_.steps + 1));
      }
      ++result_.steps;
      examples_ += static_cast<int64_t>(batch.indices.size());
      ONWARD_RETURN_IF_ERROR(listener_->OnStep(Measure(*outputs, feeds, batch)));
      const bool evaluate =
          options_.eval_every > 0 ? result_.steps % options_.eval_every == 0 : batch.last_of_epoch;
      if (evaluate) ONWARD_RETURN_IF_ERROR(EvaluateAsPlanned());
      // What the evaluation decided is in the file then.
      if (checkpoints_.IsDue(result_.steps, batch.last_of_epoch)) {
        checkpoints_.SaveOrGoOn(result_.steps, p_.source->position());
      }
    }
    return absl::OkStatus();
  }

  // An evaluation that decides something. One that is cut short is done again when the run is
  // resumed, before the next step.
  absl::Status EvaluateAsPlanned() {
    if (p_.evaluator == nullptr) return absl::OkStatus();
    checkpoints_.Note(kMetaEvaluationDue, "1");
    const BatchPosition& next = p_.source->position();
    ONWARD_RETURN_IF_ERROR(Evaluate(next.index == 0 ? next.epoch : 0));
    if (p_.plateau.has_value()) ReduceOnPlateau();
    checkpoints_.Note(kMetaEvaluationDue, "");
    return absl::OkStatus();
  }

  void ReduceOnPlateau() {
    double factor = RateFactor(*model_);
    const double before = factor, value = MetricOf(p_.metric, *result_.evaluation);
    if (p_.plateau->Observe(value, &factor)) {
      SetRateFactor(factor, model_);
      listener_->OnNote(absl::StrCat("step ", result_.steps, ": the ", MetricName(p_.metric),
                                     " has not become better; learning rate times ",
                                     factor / before));
    }
    checkpoints_.Note(kMetaPlateau, p_.plateau->State());
  }

  StepEvent Measure(const TensorMap& outputs, const TensorMap& feeds, const Batch& batch) {
    StepEvent step;
    step.step = result_.steps;
    step.epoch = p_.source->position().epoch;
    step.examples = static_cast<int64_t>(batch.indices.size());
    step.loss = FirstValue(outputs, p_.losses.sum);
    if (p_.losses.parts.size() > 1) {
      for (const LossPart& part : p_.losses.parts) {
        step.parts.push_back({part.value, FirstValue(outputs, part.value)});
      }
    }
    step.learning_rate = FirstValue(outputs, kRateOutput);
    // An entry that sits out this iteration has no loss to tell.
    if (!std::isnan(step.loss)) smoothed_loss_.Add(step.loss);
    step.accuracy = Accuracy(outputs, feeds);
    if (!std::isnan(step.accuracy)) smoothed_accuracy_.Add(step.accuracy);
    step.smoothed_loss = result_.loss = smoothed_loss_.mean();
    step.smoothed_accuracy = smoothed_accuracy_.mean();
    step.seconds = SteadySeconds() - started_;
    return step;
  }

  double Accuracy(const TensorMap& outputs, const TensorMap& feeds) const {
    if (p_.judging.by != JudgedBy::kClasses) return kNotMeasured;
    Judge judge(p_.judging, p_.data_classes);
    PartEvaluation batch;
    if (judge.Add(outputs, feeds).ok()) judge.Fill(&batch);
    return batch.accuracy;
  }

  absl::Status Evaluate(int64_t epoch) {
    ONWARD_ASSIGN_OR_RETURN(Evaluation e, p_.evaluator->Run(&model_->variables(), cancel_));
    std::optional<Evaluation> averaged;
    if (model_->has_averages()) {
      Variables averages = model_->AveragedVariables();
      ONWARD_ASSIGN_OR_RETURN(averaged, p_.evaluator->Run(&averages, cancel_));
    }
    evaluated_at_ = result_.steps;
    result_.evaluation = std::move(e);
    result_.averages = std::move(averaged);
    return listener_->OnEvaluation({result_.steps, epoch, *result_.evaluation, result_.averages});
  }

  // Steps whose numbers overflowed have taught nothing: who trains should know how many.
  void CountSkipped() {
    const std::optional<int64_t> skipped = SkippedSteps(*model_);
    if (!skipped.has_value()) return;
    result_.skipped_steps = *skipped - skipped_before_;
    if (*result_.skipped_steps == 0) return;
    listener_->OnNote(absl::StrCat(
        "note: ", *result_.skipped_steps, " of ", result_.steps - p_.facts.first_step,
        " steps overflowed and were left out; the loss is scaled by ", LossScaleNow(*model_)));
  }

  // What is left to do after the steps, which ended like this.
  absl::Status End(const absl::Status& status) {
    CountSkipped();
    const bool failed = !status.ok() && !result_.interrupted;
    result_.saved = checkpoints_.saved();
    if (failed && checkpoints_.replaces_other() && !result_.saved) {
      return Annotate(status, absl::StrCat("'", options_.output, "' is left as it was"));
    }
    ONWARD_RETURN_IF_ERROR(checkpoints_.Save(result_.steps, p_.source->position()));
    result_.saved = checkpoints_.saved();
    if (status.ok() && p_.evaluator != nullptr && evaluated_at_ != result_.steps) {
      ONWARD_RETURN_IF_ERROR(Evaluate(0));
    }
    return status;
  }

  TrainingModel* model_;
  PreparedRun p_;
  const TrainOptions& options_;
  RunListener* listener_;
  const std::atomic<bool>* cancel_;
  Checkpoints checkpoints_;
  int64_t evaluated_at_ = -1;
  int64_t skipped_before_ = 0;  // steps, in runs before this one
  SmoothedMean smoothed_loss_{kLossDecay}, smoothed_accuracy_{kLossDecay};
  double started_ = SteadySeconds();
  int64_t examples_ = 0;  // that this run has trained on
  TrainResult result_;
};

}  // namespace

absl::StatusOr<TrainResult> Train(TrainingModel* model, std::shared_ptr<const Dataset> data,
                                  std::shared_ptr<const Dataset> eval, const TrainOptions& options,
                                  RunListener* listener, const std::atomic<bool>* cancel) {
  RunListener silent;
  if (listener == nullptr) listener = &silent;
  ONWARD_ASSIGN_OR_RETURN(PreparedRun prepared, PrepareRun(model, std::move(data), std::move(eval),
                                                           listener->wrong_examples(), options));
  return Loop(model, std::move(prepared), options, listener, cancel).Run();
}

}  // namespace onward
