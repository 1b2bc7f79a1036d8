// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/judging.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "data/text/read_text.h"
#include "trainer/run/class_labels.h"
#include "training_info/author.h"

namespace onward {
namespace {

// Whether labels of one example fit the sizes [begin, begin + their rank) of the output.
bool Fits(const Shape& label, const ValueType& output, int begin) {
  for (int i = 0; i < label.rank(); ++i) {
    const Dim& dim = output.dims[begin + i];
    if (dim.known() && dim.value != label[i]) return false;
  }
  return true;
}

// Of scores [N, ?, C] for as many labels as there happen to be classes: models know their
// number of classes, and what is open is how many positions there are.
bool PositionsAreOpen(const ValueType* output, const Shape& label, int64_t classes) {
  if (output == nullptr || !output->has_rank || label.rank() != 1 || output->rank() != 3) {
    return false;
  }
  const Dim& last = output->dims[2];
  return !output->dims[1].known() && last.known() && last.value >= classes;
}

bool IsWhole(DType dtype) { return dtype == DType::kInt64 || dtype == DType::kInt32; }

// Label smoothing, class weights and sums are other numbers than the mean of -log p.
bool IsCrossEntropyOfSequences(const LossSpec& loss, const ValueType* label) {
  if (loss.name != "cross_entropy" || label == nullptr || !label->has_rank) return false;
  for (const char* option : {"label_smoothing", "weight", "reduction", "soft_labels"}) {
    if (loss.options.contains(option)) return false;
  }
  return label->rank() == 2 && (!label->dims[1].known() || label->dims[1].value > 1);
}

// A loss that somebody else wrote: class numbers have one axis less than their scores.
Judging ByTypes(const ValueType& output, const ValueType& label, Judging judging) {
  if (!output.has_rank || !label.has_rank) return judging;
  if (IsWhole(label.dtype) && output.rank() == label.rank() + 1 && output.rank() >= 2) {
    judging.by = JudgedBy::kClasses;
    Shape sizes;
    for (int i = 1; i < label.rank(); ++i) {
      if (!label.dims[i].known()) return judging;
      sizes.push_back(label.dims[i].value);
    }
    judging.scoring.classes_last = !Fits(sizes, output, 2) && Fits(sizes, output, 1);
  } else if (IsFloating(label.dtype) && output.rank() == label.rank()) {
    judging.by = JudgedBy::kNumbers;
  }
  return judging;
}

// What labels hold where there is no class: the number that pads them, or the only negative one.
std::optional<int64_t> LabelOfNoClass(const FieldInfo& label, const Dataset& data) {
  if (label.varies) return kNoToken;
  const Tensor labels = data.class_labels();
  if (labels.dtype() != DType::kInt64) return std::nullopt;
  std::optional<int64_t> none;
  for (const int64_t value : labels.values<int64_t>()) {
    if (value >= 0) continue;
    if (none.has_value() && *none != value) return std::nullopt;
    none = value;
  }
  return none;
}

}  // namespace

const FieldInfo* LabelField(const std::vector<FieldInfo>& fields) {
  const auto it =
      std::find_if(fields.begin(), fields.end(), [](const FieldInfo& f) { return f.is_label; });
  return it == fields.end() ? nullptr : &*it;
}

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
  LossSpec loss{"cross_entropy", {}};
  if (last == "Softmax") loss.options["logits"] = "probabilities";
  if (last == "LogSoftmax") loss.options["logits"] = "log_probabilities";
  return loss;
}

LossSpec DefaultLoss(const Graph& graph, const std::string& output, const Dataset& data) {
  LossSpec loss = DefaultLoss(graph, output, DistinctClasses(data));
  const std::vector<FieldInfo> fields = data.fields();
  const FieldInfo* label = LabelField(fields);
  if (label == nullptr || !IsClassLoss(loss)) return loss;
  if (const auto none = LabelOfNoClass(*label, data)) {
    loss.options["ignore_index"] = absl::StrCat(*none);
  }
  const ValueType* type = graph.TypeOf(output);
  if (!InferClassAxis(type, label->shape, &loss) &&
      PositionsAreOpen(type, label->shape, data.classes())) {
    loss.options["axis"] = "-1";
  }
  return loss;
}

std::optional<LossSpec> StoredLoss(const Model& model) {
  const std::optional<LossParts> losses = StoredLosses(model);
  if (!losses.has_value() || !losses->parts[0].term.file.empty()) return std::nullopt;
  return losses->parts[0].term.spec;
}

bool InferClassAxis(const ValueType* output, const Shape& label, LossSpec* loss) {
  if (output == nullptr || !output->has_rank || !IsClassLoss(*loss) ||
      loss->options.contains("axis")) {
    return false;
  }
  // [N, C, ...] or [N, ..., C]: the label has all but the class axis.
  if (label.rank() < 1 || output->rank() != label.rank() + 2) return false;
  if (Fits(label, *output, 2) || !Fits(label, *output, 1)) return false;
  loss->options["axis"] = "-1";
  return true;
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
  Scoring scoring;
  scoring.binary = loss.name == "bce";
  scoring.soft_labels = TakesProbabilities(loss);
  scoring.classes_last = WordOf(loss, "axis", "1") == "-1";
  if (WordOf(loss, "logits", "") == "probabilities") scoring.kind = ScoreKind::kProbabilities;
  return scoring;
}

Judging JudgingOf(const LossPart& part, const Graph& graph) {
  Judging judging;
  if (part.labels.size() != 1) return judging;
  judging.output = part.compared[0];
  judging.label = part.labels[0];
  const ValueType* output = graph.TypeOf(judging.output);
  const ValueType* label = graph.TypeOf(judging.label);
  if (!part.term.file.empty()) {
    if (part.compared.size() > 1 || output == nullptr || label == nullptr) return judging;
    return ByTypes(*output, *label, std::move(judging));
  }
  if (JudgesClasses(part.term.spec)) {
    judging.by = JudgedBy::kClasses;
    judging.scoring = ScoringOf(part.term.spec);
    judging.ignored = IgnoredLabel(part.term.spec);
    judging.sequence = IsCrossEntropyOfSequences(part.term.spec, label);
  } else if (output == nullptr || label == nullptr || !output->has_rank || !label->has_rank ||
             output->rank() == label->rank()) {
    judging.by = JudgedBy::kNumbers;
  }
  return judging;
}

absl::StatusOr<std::optional<Judge::Answers>> Judge::Add(const TensorMap& values,
                                                         const TensorMap& feeds) {
  if (judging_.by == JudgedBy::kLossAlone) return std::nullopt;
  const auto scores = values.find(judging_.output);
  const auto labels = feeds.find(judging_.label);
  if (scores == values.end() || labels == feeds.end()) return std::nullopt;
  if (judging_.by == JudgedBy::kNumbers) {
    if (scores->second.elements() != labels->second.elements()) return std::nullopt;
    ONWARD_RETURN_IF_ERROR(regression_.Add(scores->second, labels->second));
    return std::nullopt;
  }
  Answers answers;
  ONWARD_ASSIGN_OR_RETURN(answers.predictions, Predict(scores->second, judging_.scoring));
  ONWARD_ASSIGN_OR_RETURN(answers.actual, ClassLabels(labels->second, judging_.scoring));
  // A data set may lack classes that the model knows: its output says how many there are.
  if (!classification_.has_value()) {
    classification_.emplace(std::max(classes_, ClassesOf(scores->second.shape(), judging_.scoring)),
                            judging_.ignored);
  }
  ONWARD_RETURN_IF_ERROR(classification_->Add(answers.predictions, answers.actual));
  return answers;
}

void Judge::Fill(PartEvaluation* evaluation) const {
  if (classification_.has_value()) {
    evaluation->accuracy = classification_->accuracy();
    evaluation->confusion = classification_->confusion();
    evaluation->calibration = classification_->calibration();
    evaluation->judged = classification_->total();
    evaluation->wrong_total = classification_->total() - classification_->correct();
  } else if (regression_.total() > 0) {
    evaluation->mae = regression_.mae();
    evaluation->rmse = regression_.rmse();
    evaluation->r2 = regression_.r2();
    evaluation->pairs = regression_.pairs();
  }
}

}  // namespace onward
