// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/prepared_run.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "trainer/run/class_labels.h"
#include "trainer/run/data_check.h"
#include "trainer/run/facts.h"
#include "trainer/run/fingerprint.h"
#include "trainer/run/label_feeding.h"

namespace onward {
namespace {

// A file written elsewhere does not say what its loss is: the one float output of the
// algorithm that is a single number, if there is just one.
std::string FindLoss(const Graph& graph) {
  std::string found;
  for (const NamedType& out : graph.outputs) {
    const bool single =
        out.type.rank() == 0 || (out.type.rank() == 1 && out.type.dims[0].value == 1);
    if (!single || !IsFloating(out.type.dtype)) continue;
    if (!found.empty()) return "";
    found = out.name;
  }
  return found;
}

class Preparer {
 public:
  Preparer(TrainingModel* model, const TrainOptions& options) : model_(model), options_(options) {}

  absl::StatusOr<PreparedRun> Run(std::shared_ptr<const Dataset> data,
                                  std::shared_ptr<const Dataset> eval,
                                  const RunListener& listener) {
    for (const Dataset* source : {data.get(), eval.get()}) {
      if (source == nullptr) continue;
      // Both may be parts of one.
      for (std::string& note : source->notes()) {
        const auto& told = p_.facts.notes;
        if (std::find(told.begin(), told.end(), note) == told.end()) {
          p_.facts.notes.push_back(std::move(note));
        }
      }
    }
    FindLosses(*data);
    ONWARD_RETURN_IF_ERROR(CheckFingerprint(*data));
    const std::string label = LabelInput();
    ONWARD_ASSIGN_OR_RETURN(p_.feeding, FeedingFor(data, model_->StepInputs(-1, p_.wanted), label,
                                                   {p_.judging}, lowered()));
    ONWARD_RETURN_IF_ERROR(AlignLabels(&data));
    p_.facts.class_names = p_.classes;
    p_.data = std::move(data);
    ONWARD_RETURN_IF_ERROR(OpenSource());
    const std::string evaluated =
        eval == nullptr ? "none" : absl::StrCat(eval->source(), ": ", Describe(*eval));
    if (eval != nullptr) {
      ONWARD_RETURN_IF_ERROR(PrepareEvaluation(std::move(eval), listener.wrong_examples()));
    }
    ONWARD_RETURN_IF_ERROR(PrepareWatch());
    ONWARD_RETURN_IF_ERROR(CheckData());
    if (listener.wants_details()) p_.norms = std::make_unique<NormMeter>(*model_);
    ONWARD_RETURN_IF_ERROR(GatherFacts(model_, options_, evaluated, &p_));
    return std::move(p_);
  }

 private:
  const Model& file() const { return model_->model(); }
  const Graph& lowered() const { return model_->lowered(0); }

  absl::Status CheckFingerprint(const Dataset& data) {
    ONWARD_ASSIGN_OR_RETURN(p_.data_fingerprint, DataFingerprint(data));
    p_.run_fingerprint = options_.resumed
                             ? file().Metadata(kMetaRun)
                             : RunFingerprint(model_->spec(), options_, p_.data_fingerprint);
    const std::string stored = options_.resumed ? file().Metadata(kMetaDataPrint) : "";
    if (!stored.empty() && stored != p_.data_fingerprint) {
      p_.facts.warnings.push_back(absl::StrCat(data.source(), " is not the data that '",
                                               file().path(),
                                               "' was trained on so far; the run goes on with it"));
    }
    return absl::OkStatus();
  }

  void FindLosses(const Dataset& data) {
    if (std::optional<LossParts> stored = StoredLosses(file())) {
      p_.losses = *std::move(stored);
    } else {
      FindForeignLoss(data);
    }
    for (size_t i = 0; i < p_.losses.parts.size(); ++i) {
      Judging judging = JudgingOf(p_.losses.parts[i], lowered());
      if (i > 0 && !(judging.by == JudgedBy::kClasses && p_.judging.by != JudgedBy::kClasses)) {
        continue;
      }
      p_.judging = std::move(judging);
      main_ = i;
    }
    Want(p_.losses.sum);
    Want(p_.judging.output);
    for (const LossPart& part : p_.losses.parts) Want(part.value);
    Want(kRateOutput);
  }

  // The metadata tell names, if anything, but not which loss it is.
  void FindForeignLoss(const Dataset& data) {
    p_.losses.sum = file().Metadata(kMetaLoss);
    if (p_.losses.sum.empty()) p_.losses.sum = FindLoss(lowered());
    const std::string output = file().Metadata(kMetaOutput), label = file().Metadata(kMetaLabel);
    std::string trained = file().Metadata(kMetaTrainOutput);
    if (trained.empty()) trained = output;
    if (p_.losses.sum.empty() || trained.empty() || label.empty()) return;
    LossPart part{.term = {.spec = DefaultLoss(lowered(), trained, data), .outputs = {output}},
                  .value = p_.losses.sum,
                  .compared = {trained},
                  .labels = {label}};
    p_.losses.parts.push_back(std::move(part));
  }

  void Want(const std::string& value) {
    const bool listed = std::find(p_.wanted.begin(), p_.wanted.end(), value) != p_.wanted.end();
    if (!listed && !value.empty() && lowered().IsOutput(value)) p_.wanted.push_back(value);
  }

  // What takes the labels of the data set where no field has its name.
  std::string LabelInput() const {
    if (const std::string label = file().Metadata(kMetaLabel); !label.empty()) return label;
    // Of a file written elsewhere: what is there for training alone, if it is one input.
    std::string found;
    for (const NamedType& in : model_->StepInputs()) {
      if (model_->spec().inference.IsInput(in.name)) continue;
      if (!found.empty()) return "";
      found = in.name;
    }
    return found;
  }

  // Labels get the numbers of the model's outputs.
  absl::Status AlignLabels(std::shared_ptr<const Dataset>* data) {
    ONWARD_ASSIGN_OR_RETURN(p_.classes, StoredClasses(file()));
    const Judging& judging = p_.judging;
    p_.data_classes = judging.label == p_.feeding->label_input() ? (*data)->classes() : 0;
    if (judging.by != JudgedBy::kClasses || judging.label != p_.feeding->label_input()) {
      return absl::OkStatus();
    }
    ONWARD_ASSIGN_OR_RETURN(
        AlignedData aligned,
        AlignClasses(*data,
                     {.names = p_.classes,
                      .output = p_.losses.parts[main_].term.outputs[0],
                      .outputs = OutputClasses(lowered().TypeOf(judging.output), judging.scoring),
                      .ignored = judging.ignored,
                      .probabilities = judging.scoring.soft_labels,
                      .takes_names = !options_.resumed}));
    *data = std::move(aligned.data);
    p_.classes = std::move(aligned.names);
    p_.data_classes = (*data)->classes();
    if (!aligned.note.empty()) p_.facts.notes.push_back(std::move(aligned.note));
    if ((*data)->size() > 1 && DistinctClasses(**data) == 1) {
      p_.facts.warnings.push_back(
          absl::StrCat("all labels of ", (*data)->source(),
                       " are one class, so there is nothing to tell apart: look at label= and "
                       "limit= of --data (shuffle=1 before a limit)"));
    }
    return absl::OkStatus();
  }

  absl::Status OpenSource() {
    BatchOptions batches;
    batches.batch_size = options_.batch;
    batches.shuffle = options_.shuffle;
    batches.seed = options_.seed;
    batches.balance = options_.balance;
    batches.drop_last = options_.drop_last;
    ONWARD_ASSIGN_OR_RETURN(BatchSource source, BatchSource::Create(p_.data, batches));
    p_.source.emplace(std::move(source));
    if (!options_.resumed) return absl::OkStatus();
    p_.facts.first_step = MetadataInt(file(), kMetaSteps);
    return p_.source->SetPosition(
        {MetadataInt(file(), kMetaEpoch), MetadataInt(file(), kMetaIndex)});
  }

  absl::Status PrepareEvaluation(std::shared_ptr<const Dataset> eval, int wrong_examples) {
    EvaluateOptions options;
    ONWARD_ASSIGN_OR_RETURN(
        Graph graph, EvaluationGraph(file(), model_->spec(), model_->environment(), &options));
    options.looked_at = file().weights().PageReleaser();
    options.classes = p_.classes;
    for (const auto& [name, tensor] : model_->variables()) options.variables.insert(name);
    options.wrong_examples = wrong_examples;
    // What a step has memory for, an evaluation has, too.
    options.batch = std::min(options_.batch, ExamplesAtOnce(*eval));
    p_.facts.class_names = p_.classes.empty() ? eval->class_names() : p_.classes;
    ONWARD_ASSIGN_OR_RETURN(p_.evaluator, Evaluator::Create(std::move(graph), std::move(eval),
                                                            options, model_->environment()));
    if (!p_.evaluator->note().empty()) p_.facts.notes.push_back(p_.evaluator->note());
    return absl::OkStatus();
  }

  // Numbers that cannot be learned from, with where they are.
  absl::Status CheckData() {
    std::vector<LabelRange> ranges;
    // Somebody's own loss may look for NaN in labels; other nodes of the algorithm do it to check
    // themselves.
    bool takes_nan = HandlesNan(model_->spec().inference);
    for (const LossPart& part : p_.losses.parts) {
      if (!part.term.file.empty()) takes_nan |= HandlesNan(lowered());
      const Judging judging = JudgingOf(part, lowered());
      if (judging.by != JudgedBy::kClasses || judging.scoring.binary) continue;
      ranges.push_back({judging.label, part.term.outputs[0],
                        OutputClasses(lowered().TypeOf(judging.output), judging.scoring),
                        judging.ignored, !part.term.file.empty()});
    }
    const absl::Status status =
        onward::CheckData(*p_.data, *p_.feeding, ranges, {options_.check_all_data, !takes_nan});
    if (status.code() != absl::StatusCode::kOutOfRange) return status;
    // Who skips such batches knows of them.
    if (options_.on_nan == OnNan::kSkip) {
      p_.facts.warnings.push_back(
          absl::StrCat(std::string(status.message()), "; batches with such numbers are skipped"));
      return absl::OkStatus();
    }
    return absl::Status(
        status.code(),
        absl::StrCat(status.message(),
                     "; mend the data, leave the row out, or train with --on-nan skip"));
  }

  // What evaluations decide.
  absl::Status PrepareWatch() {
    if (options_.on_nan == OnNan::kBack && !HasRateFactor(*model_)) {
      return absl::FailedPreconditionError(
          "a run that goes back with half the rate needs a model with a factor of it "
          "(AddRateFactor)");
    }
    const absl::StatusOr<RateRecipe> rate = StoredRate(file());
    const bool reduces = rate.ok() && rate->schedule.name == kReduceOnPlateau;
    const bool seeks_maximum = reduces && OptionOf(rate->schedule, "mode") != 0;
    p_.metric = options_.metric.value_or(seeks_maximum ? Metric::kAccuracy : Metric::kLoss);
    if (p_.evaluator != nullptr) {
      ONWARD_RETURN_IF_ERROR(p_.evaluator->CheckMeasures(p_.metric));
    }
    if (options_.patience > 0) {
      p_.patience.emplace(options_.patience, HigherIsBetter(p_.metric));
      const std::string state = options_.resumed ? file().Metadata(kMetaPatience) : "";
      if (!state.empty()) ONWARD_RETURN_IF_ERROR(p_.patience->Resume(state));
    }
    const std::string asks = reduces ? absl::StrCat("schedule '", kReduceOnPlateau, "'")
                             : options_.patience > 0  ? "--patience"
                             : !options_.best.empty() ? "--best"
                                                      : "";
    if (!asks.empty() && p_.evaluator == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(asks, " goes by evaluations: give --eval"));
    }
    if (!reduces) return absl::OkStatus();
    if (HigherIsBetter(p_.metric) != seeks_maximum) {
      return absl::InvalidArgumentError(absl::StrCat(
          "schedule '", kReduceOnPlateau, "' with mode=", seeks_maximum ? "max" : "min",
          " does not go with the ", MetricName(p_.metric), ", which gets better as it gets ",
          seeks_maximum ? "smaller" : "larger"));
    }
    if (!HasRateFactor(*model_)) {
      return absl::InvalidArgumentError(absl::StrCat("the schedule is '", kReduceOnPlateau,
                                                     "', but there is no variable '", kRateFactor,
                                                     "'; make the model trainable again"));
    }
    p_.plateau.emplace(rate->schedule, rate->optimizer.lr());
    const std::string state = options_.resumed ? file().Metadata(kMetaPlateau) : "";
    return state.empty() ? absl::OkStatus() : p_.plateau->Resume(state);
  }

  TrainingModel* model_;
  const TrainOptions& options_;
  PreparedRun p_;
  size_t main_ = 0;
};

}  // namespace

absl::StatusOr<PreparedRun> PrepareRun(TrainingModel* model, std::shared_ptr<const Dataset> data,
                                       std::shared_ptr<const Dataset> eval,
                                       const RunListener& listener, const TrainOptions& options) {
  return Preparer(model, options).Run(std::move(data), std::move(eval), listener);
}

}  // namespace onward
