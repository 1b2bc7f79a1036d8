// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/data_loss.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace onward {
namespace {

bool IsMeanOverLabels(const LossPart& part) {
  return part.term.file.empty() && IsClassLoss(part.term.spec) &&
         WordOf(part.term.spec, "reduction", "mean") == "mean";
}

}  // namespace

DataLoss::DataLoss(const LossPart& part, const Judging& judging, bool alone)
    : weight_(alone ? part.term.weight : 1),
      by_labels_(IsMeanOverLabels(part)),
      ignored_(judging.ignored) {
  const std::string weights = WordOf(part.term.spec, "weight", "");
  for (absl::string_view text : absl::StrSplit(weights, '/', absl::SkipEmpty())) {
    double weight = 1;
    if (absl::SimpleAtod(text, &weight)) class_weights_.push_back(weight);
  }
}

double DataLoss::Counted(const Tensor& labels) const {
  double counted = 0;
  const auto classes = ToInts(labels);
  if (!classes.ok()) return counted;
  for (const int64_t c : *classes) {
    if (c < 0 || c == ignored_) continue;
    counted += c < static_cast<int64_t>(class_weights_.size()) ? class_weights_[c] : 1;
  }
  return counted;
}

void DataLoss::Add(double value, const std::optional<Judge::Answers>& answers, int64_t examples) {
  const double counted =
      by_labels_ && answers.has_value() ? Counted(answers->actual) : static_cast<double>(examples);
  // The mean over no label is not a number.
  if (counted > 0) mean_.Add(value, counted);
}

}  // namespace onward
