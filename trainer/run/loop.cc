// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/loop.h"

#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "trainer/report/page/augmentation_grid.h"
#include "trainer/report/terminal/progress.h"
#include "trainer/run/ahead.h"
#include "trainer/run/checkpoints.h"
#include "trainer/run/data_check.h"
#include "trainer/run/details.h"
#include "trainer/run/prepared_run.h"
#include "training_info/loss_scale.h"

namespace onward {
namespace {

constexpr int kMostReturns = 10;  // to one checkpoint
constexpr int kMostSkipsTold = 10;
constexpr int kTimedSteps = 2;

double FirstValue(const TensorMap& outputs, const std::string& name) {
  auto it = outputs.find(name);
  if (it == outputs.end()) return kNotMeasured;
  auto values = ToDoubles(it->second);
  return values.ok() && !values->empty() ? values->front() : kNotMeasured;
}

// Of what a step can return, only numbers that are not finite are out of range.
bool IsNotFinite(const absl::Status& status) {
  return status.code() == absl::StatusCode::kOutOfRange;
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
        checkpoints_(options, p_.facts.first_step,
                     options.resumed ? model->model().Metadata(kMetaHasBest) : "", listener) {
    result_.steps = p_.facts.first_step;
    if (options.resumed) result_.skipped = MetadataInt(model->model(), kMetaSkipped);
    checkpoints_.set_classes(p_.classes);
    checkpoints_.Note(kMetaDataPrint, p_.data_fingerprint);
    checkpoints_.Note(kMetaRun, p_.run_fingerprint);
    NoteSkipped();
    NoteDecisions();
    skipped_before_ = SkippedSteps(*model).value_or(0);
  }

  absl::StatusOr<TrainResult> Run() {
    absl::Status status = listener_->OnStart(p_.facts);
    if (status.ok()) status = EvaluateBaseline();
    if (status.ok()) status = RunSteps();
    details_.Leave(model_);
    result_.seconds = SteadySeconds() - started_;
    result_.samples_per_second =
        result_.seconds > 0 ? static_cast<double>(examples_) / result_.seconds : 0;
    result_.operators = details_.Operators();
    result_.interrupted = status.code() == absl::StatusCode::kCancelled;
    status = End(status);
    if (status.ok()) SayWhatWasBest();
    result_.peak_bytes = PeakBytes();
    status.Update(listener_->OnEnd({result_, status}));
    if (!status.ok() && !result_.interrupted) return status;
    return result_;
  }

 private:
  absl::Status RunSteps() {
    if (options_.on_nan == OnNan::kBack && !checkpoints_.saved()) {
      ONWARD_ASSIGN_OR_RETURN(start_, model_->Export());
      start_position_ = batches_.position();
    }
    if (options_.resumed && MetadataInt(model_->model(), kMetaEvaluationDue) != 0 &&
        p_.evaluator != nullptr) {
      checkpoints_.Changed();
      ONWARD_RETURN_IF_ERROR(EvaluateAsPlanned());
    }
    while (result_.steps < p_.facts.total_steps && result_.stopped.empty()) {
      if (cancel_ != nullptr && cancel_->load()) return absl::CancelledError("stopped");
      ONWARD_RETURN_IF_ERROR(RunStep());
      const double limit = options_.time_limit;
      if (limit > 0 && SteadySeconds() - started_ >= limit) {
        Stop(absl::StrCat("the time limit of ", FormatSeconds(limit), " is reached"));
      }
    }
    return absl::OkStatus();
  }

  // What the model can do before it is trained; it decides nothing.
  absl::Status EvaluateBaseline() {
    if (!details_.wanted() || options_.resumed || p_.evaluator == nullptr) return absl::OkStatus();
    ONWARD_ASSIGN_OR_RETURN(const Evaluation e, p_.evaluator->Run(&model_->variables(), cancel_));
    return listener_->OnEvaluation({result_.steps, 0, e, std::nullopt, /*baseline=*/true});
  }

  // Ends the run where it is not at its end anyway. Whether it does.
  bool Stop(std::string why) {
    if (result_.steps >= p_.facts.total_steps || !result_.stopped.empty()) return false;
    result_.stopped = std::move(why);
    return true;
  }

  absl::Status RunStep() {
    ONWARD_RETURN_IF_ERROR(batches_.Next());
    if (result_.steps + 1 < p_.facts.total_steps) {
      model_->set_meanwhile([this] { batches_.ReadAhead(model_, p_.wanted); });
    }
    details_.BeforeStep(result_.steps - p_.facts.first_step, model_);
    auto outputs = model_->Step(batches_.feeds(), p_.wanted, cancel_);
    model_->set_meanwhile(nullptr);
    const Batch& batch = batches_.batch();
    if (outputs.ok()) {
      batches_.Done();
      ++result_.steps;
      skipped_in_a_row_ = 0;
      examples_ += static_cast<int64_t>(batch.indices.size());
      ONWARD_RETURN_IF_ERROR(listener_->OnStep(Measure(*outputs)));
      TellTime();
    } else {
      const absl::Status status = Blamed(outputs.status());
      const bool bad = IsNotFinite(status);
      if (bad && options_.on_nan == OnNan::kBack) return GoBack(status);
      // The batch counts as not taken: a resumed run meets it again.
      if (!bad || options_.on_nan == OnNan::kStop) return status;
      batches_.Done();
      ONWARD_RETURN_IF_ERROR(Skip(status));
    }
    const bool evaluate =
        options_.eval_every > 0 ? result_.steps % options_.eval_every == 0 : batch.last_of_epoch;
    if (evaluate && outputs.ok()) details_.MeasureNorms(result_.steps, batches_.feeds(), model_);
    if (evaluate) ONWARD_RETURN_IF_ERROR(EvaluateAsPlanned());
    // What the evaluation decided is in the file then.
    if (checkpoints_.IsDue(result_.steps, batch.last_of_epoch)) {
      checkpoints_.SaveOrGoOn(*model_, result_.steps, batches_.position());
      if (checkpoints_.saved()) start_.reset();
    }
    return absl::OkStatus();
  }

  // How long it will take, once a step was timed; the first one also finds its memory.
  void TellTime() {
    const int64_t done = result_.steps - p_.facts.first_step;
    if (done == 1) first_ended_ = SteadySeconds();
    if (done != kTimedSteps + 1 || result_.steps == p_.facts.total_steps) return;
    const double each = (SteadySeconds() - first_ended_) / kTimedSteps;
    listener_->OnPace(p_.facts.total_steps - p_.facts.first_step, each);
  }

  // The error of a step, with the example that is to blame where one is.
  absl::Status Blamed(const absl::Status& status) const {
    const std::string where =
        absl::StrCat("'", model_->model().path(), "', step ", result_.steps + 1);
    if (!IsNotFinite(status)) return Annotate(status, where);
    const std::string place = BadPlace(batches_.batch(), p_.source->dataset());
    return Annotate(absl::Status(status.code(), absl::StrCat(status.message(), place)), where);
  }

  absl::Status Skip(const absl::Status& status) {
    ++result_.steps;
    ++result_.skipped;
    NoteSkipped();
    if (++skipped_in_a_row_ >= p_.facts.steps_per_epoch) {
      return Annotate(status, absl::StrCat("no step of a whole epoch (", skipped_in_a_row_,
                                           " steps) has finite numbers"));
    }
    if (++skips_told_ <= kMostSkipsTold) {
      Warn(absl::StrCat("skipped: ", std::string(status.message())));
    }
    return absl::OkStatus();
  }

  void Warn(std::string text) { listener_->OnNote({std::move(text), true, result_.steps}); }

  void NoteSkipped() {
    checkpoints_.Note(kMetaSkipped, result_.skipped == 0 ? "" : absl::StrCat(result_.skipped));
  }

  // To the last checkpoint, or where the run began, with half the rate.
  absl::Status GoBack(const absl::Status& why) {
    if (++returns_ > kMostReturns) {
      return Annotate(why, absl::StrCat("went back ", kMostReturns,
                                        " times without reaching the next checkpoint"));
    }
    const double factor = RateFactor(*model_) / 2;
    int64_t steps = p_.facts.first_step;
    BatchPosition position = start_position_;
    Model model;
    if (start_.has_value()) {
      model = *start_;
    } else {
      ONWARD_ASSIGN_OR_RETURN(model, ReadModel(options_.output));
      steps = MetadataInt(model, kMetaSteps);
      position = {MetadataInt(model, kMetaEpoch), MetadataInt(model, kMetaIndex)};
    }
    if (steps != returned_to_) returns_ = 1;
    returned_to_ = steps;
    ONWARD_RETURN_IF_ERROR(ForgetDecisions(model));
    model.set_path(model_->model().path());
    details_.Leave(model_);
    ONWARD_ASSIGN_OR_RETURN(restored_,
                            TrainingModel::Create(std::move(model), model_->environment()));
    model_ = restored_.get();
    SetRateFactor(factor, model_);
    ONWARD_RETURN_IF_ERROR(batches_.SetPosition(position));
    Warn(absl::StrCat(std::string(why.message()), "; back to step ", steps,
                      ", learning rate times ", factor));
    result_.steps = steps;
    return absl::OkStatus();
  }

  // What evaluations had decided when `model` was written.
  absl::Status ForgetDecisions(const Model& model) {
    p_.plateau = plateau_at_start_;
    p_.patience = patience_at_start_;
    if (start_.has_value()) return absl::OkStatus();
    const std::string plateau = model.Metadata(kMetaPlateau);
    const std::string patience = model.Metadata(kMetaPatience);
    if (p_.plateau.has_value() && !plateau.empty()) {
      ONWARD_RETURN_IF_ERROR(p_.plateau->Resume(plateau));
    }
    if (!p_.patience.has_value() || patience.empty()) return absl::OkStatus();
    return p_.patience->Resume(patience);
  }

  // An evaluation that decides something. One that is cut short is done again when the run is
  // resumed, before the next step.
  absl::Status EvaluateAsPlanned() {
    if (p_.evaluator == nullptr) return absl::OkStatus();
    checkpoints_.Note(kMetaEvaluationDue, "1");
    const BatchPosition& next = batches_.position();
    ONWARD_RETURN_IF_ERROR(Evaluate(next.index == 0 ? next.epoch : 0));
    const double value = MetricOf(p_.metric, *result_.evaluation);
    if (p_.plateau.has_value()) ReduceOnPlateau(value);
    if (p_.patience.has_value() && p_.patience->Observe(value)) {
      result_.out_of_patience =
          Stop(absl::StrCat("the ", MetricName(p_.metric), " has not become better for ",
                            options_.patience, " evaluations"));
    }
    NoteDecisions();
    return OfferBest(value);
  }

  void NoteDecisions() {
    checkpoints_.Note(kMetaPlateau, p_.plateau.has_value() ? p_.plateau->State() : "");
    checkpoints_.Note(kMetaPatience, p_.patience.has_value() ? p_.patience->State() : "");
    checkpoints_.Note(kMetaEvaluationDue, "");
  }

  absl::Status OfferBest(double value) {
    return checkpoints_.OfferBest(*model_, result_.steps, batches_.position(), p_.metric, value);
  }

  void ReduceOnPlateau(double value) {
    double factor = RateFactor(*model_);
    const double before = factor;
    if (!p_.plateau->Observe(value, &factor)) return;
    SetRateFactor(factor, model_);
    listener_->OnNote(
        {absl::StrCat("step ", result_.steps, ": the ", MetricName(p_.metric),
                      " has not become better; learning rate times ", factor / before),
         false, result_.steps});
  }

  StepEvent Measure(const TensorMap& outputs) {
    StepEvent step;
    step.step = result_.steps;
    step.epoch = batches_.position().epoch;
    step.examples = static_cast<int64_t>(batches_.batch().indices.size());
    step.loss = FirstValue(outputs, p_.losses.sum);
    if (p_.losses.parts.size() > 1) {
      for (const LossPart& part : p_.losses.parts) {
        step.parts.push_back({part.value, FirstValue(outputs, part.value)});
      }
    }
    step.learning_rate = FirstValue(outputs, kRateOutput);
    // An entry that sits out this iteration has no loss to tell.
    if (!std::isnan(step.loss)) smoothed_loss_.Add(step.loss);
    step.accuracy = Accuracy(outputs, batches_.feeds());
    if (!std::isnan(step.accuracy)) smoothed_accuracy_.Add(step.accuracy);
    step.smoothed_loss = result_.loss = smoothed_loss_.mean();
    step.smoothed_accuracy = result_.accuracy = smoothed_accuracy_.mean();
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
    best_seen_.Observe(result_.steps, MetricOf(p_.metric, e));
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
    listener_->OnNote(
        {absl::StrCat(*result_.skipped_steps, " of ", result_.steps - p_.facts.first_step,
                      " steps overflowed and were left out; the loss is scaled by ",
                      LossScaleNow(*model_)),
         false, result_.steps});
  }

  void SayWhatWasBest() {
    std::string hint = best_seen_.Hint(options_.best);
    if (!hint.empty()) listener_->OnNote({std::move(hint), false, result_.steps});
  }

  // What is left to do after the steps, which ended like this.
  absl::Status End(const absl::Status& status) {
    CountSkipped();
    const bool failed = !status.ok() && !result_.interrupted;
    result_.saved = checkpoints_.saved();
    if (failed && checkpoints_.replaces_other() && !result_.saved) {
      return Annotate(status, absl::StrCat("'", options_.output, "' is left as it was"));
    }
    ONWARD_RETURN_IF_ERROR(checkpoints_.Save(*model_, result_.steps, batches_.position()));
    result_.saved = checkpoints_.saved();
    if (!status.ok() || p_.evaluator == nullptr || evaluated_at_ == result_.steps) return status;
    // It decides nothing: a run that goes on from here has not planned it.
    ONWARD_RETURN_IF_ERROR(Evaluate(0));
    ONWARD_RETURN_IF_ERROR(OfferBest(MetricOf(p_.metric, *result_.evaluation)));
    return checkpoints_.Save(*model_, result_.steps, batches_.position());
  }

  TrainingModel* model_;
  std::unique_ptr<TrainingModel> restored_;  // model_, once the run went back
  PreparedRun p_;
  BatchesAhead batches_{&*p_.source, &*p_.feeding};
  const TrainOptions& options_;
  RunListener* listener_;
  const std::atomic<bool>* cancel_;
  Checkpoints checkpoints_;
  RunDetails details_{listener_, std::move(p_.norms)};
  std::optional<Model> start_;  // to go back to, until there is a checkpoint
  BatchPosition start_position_;
  BestSeen best_seen_{p_.metric};
  const std::optional<Plateau> plateau_at_start_ = p_.plateau;
  const std::optional<Patience> patience_at_start_ = p_.patience;
  int returns_ = 0, skips_told_ = 0;
  int64_t returned_to_ = -1, skipped_in_a_row_ = 0, evaluated_at_ = -1;
  int64_t skipped_before_ = 0;  // steps, in runs before this one
  SmoothedMean smoothed_loss_{kStepDecay}, smoothed_accuracy_{kStepDecay};
  double started_ = SteadySeconds(), first_ended_ = 0;
  int64_t examples_ = 0;  // that this run has trained on
  TrainResult result_;
};

}  // namespace

absl::StatusOr<TrainResult> Train(TrainingModel* model, std::shared_ptr<const Dataset> data,
                                  std::shared_ptr<const Dataset> eval, const TrainOptions& options,
                                  RunListener* listener, const std::atomic<bool>* cancel) {
  RunListener silent;
  if (listener == nullptr) listener = &silent;
  ONWARD_ASSIGN_OR_RETURN(PreparedRun prepared,
                          PrepareRun(model, std::move(data), std::move(eval), *listener, options));
  if (listener->wants_details()) {
    prepared.facts.augmentation = ShownAugmentation(prepared.source->dataset(), options.seed);
  }
  return Loop(model, std::move(prepared), options, listener, cancel).Run();
}

}  // namespace onward
