// SPDX-License-Identifier: Apache-2.0
#include "trainer/doctor/doctor.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "trainer/doctor/checks.h"
#include "trainer/doctor/landmarks.h"
#include "trainer/doctor/probe.h"
#include "trainer/run/class_labels.h"
#include "trainer/run/prepared_run.h"
#include "training_info/author.h"
#include "training_info/rate.h"
#include "training_info/surgery/surgery.h"
#include "training_info/weights/weights.h"

namespace onward {
namespace {

class Doctor {
 public:
  Doctor(TrainingModel* model, std::shared_ptr<const Dataset> data, DoctorOptions options,
         const std::atomic<bool>* cancel)
      : model_(model), data_(std::move(data)), options_(std::move(options)), cancel_(cancel) {}

  absl::StatusOr<DoctorReport> Run(bool rate_adjustable) {
    const TrainingSpec& spec = model_->spec();
    if (FixedBatch(spec.inference) == 0) {
      options_.run.batch = std::min(options_.run.batch, std::max<int64_t>(data_->size(), 1));
    }
    ONWARD_RETURN_IF_ERROR(LookAtLabels());
    trained_ = TrainedWeights(spec);
    Add(TrainedFindings(trained_, Decided()));
    options_.run.on_nan = OnNan::kSkip;  // bad numbers are findings
    auto run = PrepareRun(model_, data_, nullptr, RunListener(), options_.run);
    if (!run.ok()) {
      if (report_.findings.empty()) return run.status();
      report_.not_examined = std::string(run.status().message());
      return std::move(report_);
    }
    run_ = std::move(run).value();
    report_.notes = run_.facts.notes;
    if (run_.losses.sum.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", model_->model().path(),
          "' does not say which value is its loss: no output of its algorithm is one number"));
    }
    ONWARD_RETURN_IF_ERROR(Examine(rate_adjustable));
    return std::move(report_);
  }

 private:
  void Add(DoctorFindings findings) {
    for (DoctorFinding& finding : findings) report_.findings.push_back(std::move(finding));
  }

  const Model& file() const { return model_->model(); }

  size_t Decided() const {
    const Graph& graph = model_->spec().inference;
    std::vector<std::string> outputs;
    for (const NamedType& out : graph.outputs) outputs.push_back(out.name);
    const std::vector<WeightDecision> decisions = DecideWeights(graph, outputs);
    return static_cast<size_t>(std::count_if(decisions.begin(), decisions.end(),
                                             [](const WeightDecision& d) { return d.trains; }));
  }

  // Before the run is prepared, which refuses labels that do not fit.
  absl::Status LookAtLabels() {
    const std::optional<LossParts> losses = StoredLosses(file());
    if (!losses.has_value() || losses->parts[0].labels.empty()) return absl::OkStatus();
    const LossPart& part = losses->parts[0];
    LabelFacts facts{.judging = JudgingOf(part, model_->lowered(0)),
                     .output = part.term.outputs[0]};
    facts.outputs =
        OutputClasses(model_->lowered(0).TypeOf(facts.judging.output), facts.judging.scoring);
    ONWARD_ASSIGN_OR_RETURN(facts.names, StoredClasses(file()));
    ONWARD_ASSIGN_OR_RETURN(DoctorFindings findings, LabelFindings(*data_, facts));
    Add(std::move(findings));
    return absl::OkStatus();
  }

  absl::Status Examine(bool rate_adjustable) {
    ProbeTargets targets{.loss = run_.losses.sum, .output = "", .labels = {}, .weights = trained_};
    const LossPart* part = MainPart();
    if (part != nullptr) targets.output = part->compared[0];
    for (const LossPart& each : run_.losses.parts) {
      targets.labels.insert(each.labels.begin(), each.labels.end());
    }
    targets.labels.insert(run_.feeding->label_input());
    ONWARD_ASSIGN_OR_RETURN(const Prober prober, Prober::Create(model_, targets));
    ONWARD_ASSIGN_OR_RETURN(const std::vector<TensorMap> batches, Batches());
    Probe before = prober.Begin(), after = prober.Begin();
    for (const TensorMap& feeds : batches) ONWARD_RETURN_IF_ERROR(prober.Look(feeds, &before));
    OneBatch one(model_, batches[0], run_.losses.sum, options_.steps);
    ONWARD_RETURN_IF_ERROR(Try(1, &one));
    const bool learns = !trained_.empty() && report_.trials[0].rate != 0;
    if (learns && rate_adjustable) ONWARD_RETURN_IF_ERROR(TryOtherRates(&one));
    // With what the last trial has taught, which is the one that helps if there is one.
    if (learns) ONWARD_RETURN_IF_ERROR(prober.Look(batches[0], &after));
    Add(InputFindings(before));
    Add(UnitFindings(before, after, BatchIsLearned(report_.trials)));
    if (learns) Add(GradientFindings(before, after));
    if (part != nullptr) {
      Add(OutputFindings(before, after, *part,
                         LastOperator(model_->spec().inference, part->term.outputs[0])));
    }
    if (!trained_.empty()) Add(LearningFindings(report_.trials));
    return absl::OkStatus();
  }

  // The loss that judges the main output, if its value is one of the step.
  const LossPart* MainPart() const {
    for (const LossPart& part : run_.losses.parts) {
      if (part.compared.empty() || part.compared[0] != run_.judging.output) continue;
      if (model_->lowered(0).IsOutput(part.compared[0])) return &part;
    }
    return nullptr;
  }

  absl::StatusOr<std::vector<TensorMap>> Batches() {
    std::vector<TensorMap> all;
    const int64_t count = std::min(options_.batches, run_.source->batches_per_epoch());
    for (int64_t k = 0; k < std::max<int64_t>(count, 1); ++k) {
      Batch batch;
      ONWARD_RETURN_IF_ERROR(run_.source->Next(&batch));
      ONWARD_ASSIGN_OR_RETURN(all.emplace_back(), run_.feeding->Feeds(batch.tensors));
    }
    return all;
  }

  absl::Status Try(double factor, OneBatch* one) {
    ONWARD_ASSIGN_OR_RETURN(Trial trial, one->Try(factor, cancel_));
    report_.trials.push_back(std::move(trial));
    return absl::OkStatus();
  }

  absl::Status TryOtherRates(OneBatch* one) {
    const Trial first = report_.trials[0];
    for (double factor : RatesToTry(first)) {
      ONWARD_RETURN_IF_ERROR(Try(factor, one));
      if (IsRemedy(first, report_.trials.back())) break;
    }
    return absl::OkStatus();
  }

  TrainingModel* model_;
  std::shared_ptr<const Dataset> data_;
  DoctorOptions options_;
  const std::atomic<bool>* cancel_;
  std::set<std::string> trained_;
  PreparedRun run_;
  DoctorReport report_;
};

}  // namespace

absl::StatusOr<DoctorReport> Diagnose(Model model, std::shared_ptr<const Dataset> data,
                                      DoctorOptions options, const Environment& environment,
                                      const std::atomic<bool>* cancel) {
  const bool adjustable = MakeRateAdjustable(environment, &model);
  ONWARD_ASSIGN_OR_RETURN(std::unique_ptr<TrainingModel> training,
                          TrainingModel::Create(std::move(model), environment));
  training->set_random({options.run.seed, 0});
  if (options.initialize) ONWARD_RETURN_IF_ERROR(training->Initialize());
  return Doctor(training.get(), std::move(data), std::move(options), cancel).Run(adjustable);
}

}  // namespace onward
