// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/loop.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/atomic_file.h"
#include "core/base/status.h"
#include "core/onnx_io/model.h"
#include "data/sha256.h"
#include "trainer/report/jsonl.h"
#include "trainer/run/class_labels.h"
#include "training_info/lower.h"

namespace onward {
namespace {

constexpr int kWrongExamples = 48;
constexpr double kLossDecay = 0.98;
constexpr double kSavesShare = 20;  // of the time between two epochs' checkpoints, one part

int64_t MetadataInt(const Model& model, const char* key) {
  int64_t value = 0;
  return absl::SimpleAtoi(model.Metadata(key), &value) ? value : 0;
}

double FirstValue(const TensorMap& outputs, const std::string& name) {
  auto it = outputs.find(name);
  if (it == outputs.end()) return kNotMeasured;
  auto values = ToDoubles(it->second);
  return values.ok() && !values->empty() ? values->front() : kNotMeasured;
}

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class Loop {
 public:
  Loop(TrainingModel* model, const TrainOptions& options, const std::atomic<bool>* cancel)
      : model_(model), options_(options), cancel_(cancel) {}

  absl::StatusOr<TrainResult> Run(std::shared_ptr<const Dataset> data,
                                  std::shared_ptr<const Dataset> eval) {
    ONWARD_RETURN_IF_ERROR(Prepare(std::move(data), std::move(eval)));
    const absl::Status status = RunSteps();
    progress_->Finish();
    result_.seconds = Seconds() - started_;
    result_.samples_per_second = progress_->samples_per_second();
    result_.interrupted = status.code() == absl::StatusCode::kCancelled;
    const bool failed = !status.ok() && !result_.interrupted;
    if (failed && replaces_ && !result_.saved) {
      return Annotate(status, absl::StrCat("'", options_.output, "' is left as it was"));
    }
    ONWARD_RETURN_IF_ERROR(Save());
    if (failed) return status;
    if (!result_.interrupted && evaluator_ != nullptr && evaluated_at_ != result_.steps) {
      ONWARD_RETURN_IF_ERROR(Evaluate(0));
    }
    if (!options_.report.empty() && result_.saved) ONWARD_RETURN_IF_ERROR(WriteReport());
    return result_;
  }

 private:
  absl::Status Prepare(std::shared_ptr<const Dataset> data, std::shared_ptr<const Dataset> eval) {
    started_ = Seconds();
    loss_ = model_->model().Metadata(kMetaLoss);
    train_output_ = model_->model().Metadata(kMetaTrainOutput);
    label_ = model_->model().Metadata(kMetaLabel);
    const Graph& lowered = model_->lowered(0);
    for (const std::string& name : {loss_, train_output_, std::string("learning_rate")}) {
      if (!name.empty() && lowered.IsOutput(name)) wanted_.push_back(name);
    }
    if (loss_.empty()) loss_ = FindLoss(lowered);
    std::error_code error;
    replaces_ = !options_.resumed && std::filesystem::exists(options_.output, error);
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
    saved_at_ = result_.steps;
    saved_time_ = Seconds();
    result_.saved = options_.resumed;
    total_ = options_.steps > 0 ? options_.steps : options_.epochs * source_->batches_per_epoch();
    if (eval != nullptr) ONWARD_RETURN_IF_ERROR(PrepareEvaluation(std::move(eval)));
    if (!options_.log.empty()) {
      ONWARD_ASSIGN_OR_RETURN(JsonlFile log, JsonlFile::Open(options_.log, options_.resumed));
      log_.emplace(std::move(log));
    }
    Progress::Options progress;
    progress.first_step = result_.steps;
    progress.total_steps = total_;
    progress.style = options_.progress;
    progress_ = std::make_unique<Progress>(std::move(progress));
    for (const std::string& note : notes_) progress_->Say(absl::StrCat("note: ", note));
    return absl::OkStatus();
  }

  // Labels get the numbers of the model's outputs.
  absl::Status AlignWithModel(std::shared_ptr<const Dataset>* data) {
    const Model& model = model_->model();
    ONWARD_ASSIGN_OR_RETURN(classes_stored_, StoredClasses(model));
    judges_classes_ = (*data)->classes() > 0;
    std::optional<int64_t> ignored;
    bool probabilities = false;
    if (const std::optional<LossSpec> loss = StoredLoss(model)) {
      judges_classes_ = JudgesClasses(*loss);
      scoring_ = ScoringOf(*loss);
      ignored = IgnoredLabel(*loss);
      probabilities = TakesProbabilities(*loss);
    }
    if (!judges_classes_) return absl::OkStatus();
    const Graph& lowered = model_->lowered(0);
    const ValueType* output = train_output_.empty() ? nullptr : lowered.TypeOf(train_output_);
    ONWARD_ASSIGN_OR_RETURN(AlignedData aligned,
                            AlignClasses(*data, {.names = classes_stored_,
                                                 .output = model.Metadata(kMetaOutput),
                                                 .outputs = OutputClasses(output, scoring_),
                                                 .ignored = ignored,
                                                 .probabilities = probabilities,
                                                 .takes_names = !options_.resumed}));
    *data = std::move(aligned.data);
    classes_stored_ = std::move(aligned.names);
    if (!aligned.note.empty()) notes_.push_back(std::move(aligned.note));
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
    options.wrong_examples = options_.report.empty() ? 0 : kWrongExamples;
    class_names_ = classes_stored_.empty() ? eval->class_names() : classes_stored_;
    ONWARD_ASSIGN_OR_RETURN(evaluator_, Evaluator::Create(std::move(graph), std::move(eval),
                                                          options, model_->environment()));
    if (!evaluator_->note().empty()) notes_.push_back(evaluator_->note());
    return absl::OkStatus();
  }

  absl::Status RunSteps() {
    Batch batch;
    SmoothedMean loss(kLossDecay), accuracy(kLossDecay);
    while (result_.steps < total_) {
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
      const ReportStep step = Measure(*outputs, feeds, &loss, &accuracy);
      result_.loss = loss.mean();
      ONWARD_RETURN_IF_ERROR(Log(step));
      progress_->Update(result_.steps, static_cast<int64_t>(batch.indices.size()), loss.mean(),
                        accuracy.mean());
      if (SaveIsDue(batch.last_of_epoch)) SaveOrGoOn();
      const bool evaluate =
          options_.eval_every > 0 ? result_.steps % options_.eval_every == 0 : batch.last_of_epoch;
      if (evaluate && evaluator_ != nullptr)
        ONWARD_RETURN_IF_ERROR(Evaluate(batch.position.epoch + 1));
    }
    return absl::OkStatus();
  }

  ReportStep Measure(const TensorMap& outputs, const TensorMap& feeds, SmoothedMean* loss,
                     SmoothedMean* accuracy) {
    ReportStep step;
    step.step = result_.steps;
    step.loss = FirstValue(outputs, loss_);
    step.learning_rate = FirstValue(outputs, "learning_rate");
    // An entry that sits out this iteration has no loss to tell.
    if (!std::isnan(step.loss)) loss->Add(step.loss);
    auto scores = outputs.find(train_output_);
    auto labels = feeds.find(label_);
    if (judges_classes_ && scores != outputs.end() && labels != feeds.end()) {
      const int64_t classes = ClassesOf(scores->second.shape(), scoring_);
      ClassificationMetrics metrics(std::max(classes_, classes));
      const auto predictions = Predict(scores->second, scoring_);
      const auto actual = ClassLabels(labels->second, scoring_);
      if (predictions.ok() && actual.ok() && metrics.Add(*predictions, *actual).ok()) {
        step.metric = metrics.accuracy();
        accuracy->Add(step.metric);
      }
    }
    report_.steps.push_back(step);
    return step;
  }

  absl::Status Log(const ReportStep& step) {
    if (!log_.has_value()) return absl::OkStatus();
    JsonWriter w;
    w.BeginObject()
        .Field("step", step.step)
        .Field("epoch", source_->position().epoch)
        .Field("loss", step.loss);
    if (!std::isnan(step.metric)) w.Field("accuracy", step.metric);
    if (!std::isnan(step.learning_rate)) w.Field("learning_rate", step.learning_rate);
    w.Field("seconds", Seconds() - started_).EndObject();
    return log_->Append(w);
  }

  absl::Status Evaluate(int64_t epoch) {
    ONWARD_ASSIGN_OR_RETURN(Evaluation e, evaluator_->Run(&model_->variables(), cancel_));
    evaluated_at_ = result_.steps;
    const bool classes = !std::isnan(e.accuracy);
    report_.evals.push_back({result_.steps, e.loss, classes ? e.accuracy : e.rmse});
    progress_->Say(absl::StrCat(
        epoch > 0 ? absl::StrCat("epoch ", epoch) : absl::StrCat("step ", result_.steps),
        ": evaluation loss ", absl::StrFormat("%.4f", e.loss),
        classes ? absl::StrFormat(", accuracy %.2f %%", 100 * e.accuracy)
                : absl::StrFormat(", RMSE %.4f", e.rmse)));
    if (log_.has_value()) {
      JsonWriter w;
      w.BeginObject().Field("step", result_.steps).Field("eval_loss", e.loss);
      if (classes)
        w.Field("eval_accuracy", e.accuracy);
      else
        w.Field("eval_rmse", e.rmse).Field("eval_mae", e.mae);
      w.Field("examples", e.examples).EndObject();
      ONWARD_RETURN_IF_ERROR(log_->Append(w));
    }
    result_.evaluation = std::move(e);
    return absl::OkStatus();
  }

  bool SaveIsDue(bool epoch_ends) const {
    const double since = Seconds() - saved_time_;
    if (options_.save_every > 0 && result_.steps % options_.save_every == 0) return true;
    return since >= (epoch_ends ? kSavesShare * save_cost_ : options_.save_seconds);
  }

  // A disk that is full now may not be so at the end; the state in memory is worth more.
  void SaveOrGoOn() {
    const absl::Status saved = Save();
    if (saved.ok()) return;
    saved_time_ = Seconds();
    progress_->Say(absl::StrCat("warning: step ", result_.steps,
                                " is not saved: ", std::string(saved.message()), "; going on"));
  }

  // Nothing to do where the file holds this very step.
  absl::Status Save() {
    if (result_.steps == saved_at_) return absl::OkStatus();
    const double begin = Seconds();
    ONWARD_ASSIGN_OR_RETURN(Model out, model_->Export());
    StoreClasses(classes_stored_, &out);
    out.SetMetadata(kMetaSteps, absl::StrCat(result_.steps));
    out.SetMetadata(kMetaEpoch, absl::StrCat(source_->position().epoch));
    out.SetMetadata(kMetaIndex, absl::StrCat(source_->position().index));
    out.SetMetadata(kMetaDataSeed, absl::StrCat(options_.seed));
    out.SetMetadata(kMetaBatch, absl::StrCat(options_.batch));
    out.SetMetadata(kMetaShuffle, options_.shuffle ? "1" : "0");
    ONWARD_RETURN_IF_ERROR(WriteModel(out, options_.output, options_.write));
    result_.saved = true;
    saved_at_ = result_.steps;
    saved_time_ = Seconds();
    save_cost_ = saved_time_ - begin;
    return absl::OkStatus();
  }

  absl::Status WriteReport() {
    report_.title = options_.output;
    report_.subtitle = absl::StrCat(result_.steps, " steps, batch ", options_.batch);
    report_.settings = options_.settings;
    if (result_.evaluation.has_value()) {
      const Evaluation& e = *result_.evaluation;
      if (!std::isnan(e.accuracy)) {
        report_.figures.push_back({"Accuracy", absl::StrFormat("%.2f %%", 100 * e.accuracy),
                                   absl::StrCat(e.examples, " test examples")});
      } else {
        report_.figures.push_back(
            {"RMSE", absl::StrFormat("%.4g", e.rmse), absl::StrCat(e.examples, " test examples")});
        report_.metric_name = "RMSE";
        report_.metric_is_share = false;
      }
      report_.figures.push_back({"Test loss", absl::StrFormat("%.4f", e.loss), ""});
      report_.confusion = e.confusion;
      report_.wrong = e.wrong;
      report_.wrong_total = e.wrong_total;
    }
    report_.class_names = class_names_;
    report_.figures.push_back({"Training loss", absl::StrFormat("%.4f", result_.loss), "smoothed"});
    report_.figures.push_back({"Steps", absl::StrCat(result_.steps), ""});
    report_.timing = {
        {"Time", FormatSeconds(result_.seconds)},
        {"Throughput", absl::StrFormat("%.0f examples/s", result_.samples_per_second)}};
    ReportFile file{"checkpoint", options_.output, "", -1};
    if (auto sum = Sha256OfFile(options_.output); sum.ok()) file.sha256 = *sum;
    report_.files = {file};
    report_.next = {{"Export the plain inference model",
                     absl::StrCat("onward export ", options_.output, " -o model.onnx")},
                    {"Continue training",
                     absl::StrCat("onward train ", options_.output,
                                  " --resume --data SPEC --steps N -o ", options_.output)}};
    return WriteFileAtomically(options_.report, RenderReport(report_));
  }

  TrainingModel* model_;
  const TrainOptions& options_;
  const std::atomic<bool>* cancel_;
  std::string loss_, train_output_, label_;
  std::vector<std::string> wanted_;
  std::optional<BatchSource> source_;
  std::optional<Feeding> feeding_;
  std::unique_ptr<Evaluator> evaluator_;
  std::unique_ptr<Progress> progress_;
  std::optional<JsonlFile> log_;
  std::vector<std::string> class_names_;     // for the report
  std::vector<std::string> classes_stored_;  // what the file calls its classes; empty: nothing
  std::vector<std::string> notes_;
  int64_t classes_ = 0, total_ = 0, evaluated_at_ = -1;
  bool replaces_ = false;  // `output` is there, of another run
  int64_t saved_at_ = 0;   // the step that `output` holds, or where this run began
  double saved_time_ = 0, save_cost_ = 0;
  bool judges_classes_ = false;
  Scoring scoring_;
  double started_ = 0;
  ReportData report_;
  TrainResult result_;
};

}  // namespace

absl::StatusOr<TrainResult> Train(TrainingModel* model, std::shared_ptr<const Dataset> data,
                                  std::shared_ptr<const Dataset> eval, const TrainOptions& options,
                                  const std::atomic<bool>* cancel) {
  return Loop(model, options, cancel).Run(std::move(data), std::move(eval));
}

}  // namespace onward
