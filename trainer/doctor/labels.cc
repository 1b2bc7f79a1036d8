// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status.h"
#include "trainer/doctor/checks.h"

namespace onward {
namespace {

constexpr double kOneSided = 0.95;    // share of the largest class
constexpr double kLargeTarget = 100;  // rms of numbers
constexpr int64_t kMostRead = 1024;

struct Counts {
  std::map<int64_t, int64_t> of;  // class -> examples; ignored labels do not count
  int64_t all = 0;
};

Counts Count(const Tensor& labels, std::optional<int64_t> ignored) {
  Counts counts;
  for (int64_t label : labels.values<int64_t>()) {
    if (label < 0 || label == ignored) continue;
    ++counts.of[label];
    ++counts.all;
  }
  return counts;
}

// Labels 1 to N for classes 0 to N-1. As many different ones as classes are taken for names by
// `train`, in their order.
DoctorFindings OutOfRange(const Counts& counts, const LabelFacts& facts, const std::string& place) {
  const int64_t low = counts.of.begin()->first, high = counts.of.rbegin()->first;
  const bool renumbered =
      facts.names.empty() && static_cast<int64_t>(counts.of.size()) == facts.outputs;
  if (facts.outputs == 0 || high < facts.outputs || renumbered) return {};
  const std::string what =
      absl::StrFormat("labels are %d to %d, output '%s' tells %d classes apart, 0 to %d", low, high,
                      facts.output, facts.outputs, facts.outputs - 1);
  if (low >= 1 && high == facts.outputs) {
    return {{"label-shifted", place, static_cast<double>(low), what,
             "count the labels from 0: they are one too high"}};
  }
  return {{"label-range", place, static_cast<double>(high), what,
           absl::StrCat("--head ", std::max<int64_t>(high + 1, 2),
                        " gives the model a classifier for them, or number the labels anew")}};
}

DoctorFindings Classes(const Dataset& data, const LabelFacts& facts, const std::string& place) {
  const Tensor labels = data.class_labels();
  if (labels.dtype() != DType::kInt64) return {};
  const Counts counts = Count(labels, facts.judging.ignored);
  if (counts.all == 0) {
    return {{"label-one-class", place, 0, "no example has a class: all labels mean 'ignore'",
             "label=COLUMN in the data SPEC names the labels"}};
  }
  // Names are matched by name when a run is prepared.
  DoctorFindings findings;
  if (!data.names_classes()) findings = OutOfRange(counts, facts, place);
  const auto largest =
      std::max_element(counts.of.begin(), counts.of.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  const double share = static_cast<double>(largest->second) / static_cast<double>(counts.all);
  if (counts.of.size() == 1) {
    findings.push_back({"label-one-class", place, static_cast<double>(largest->first),
                        absl::StrFormat("all %d labels are %d", counts.all, largest->first),
                        "there is nothing to tell apart: look at label= and limit= of the data "
                        "SPEC (shuffle=1 before a limit)"});
  } else if (share >= kOneSided) {
    findings.push_back({"label-imbalance", place, share,
                        absl::StrFormat("%.1f %% of the labels are %d: to answer that always is "
                                        "right most of the time",
                                        100 * share, largest->first),
                        "balance=1 in the data SPEC"});
  }
  return findings;
}

// The label field of examples from all over the data set.
absl::StatusOr<Spread> ReadNumbersOf(const Dataset& data, size_t field) {
  const int64_t count = std::min(kMostRead, data.size());
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < count; ++i) indices.push_back(i * data.size() / count);
  std::vector<Tensor> batch;
  ONWARD_RETURN_IF_ERROR(data.Fill(indices, &batch));
  ONWARD_ASSIGN_OR_RETURN(const std::vector<double> values, ToDoubles(batch[field]));
  Spread spread;
  spread.Add(values);
  return spread;
}

DoctorFindings Numbers(const Spread& x, const std::string& place) {
  DoctorFindings findings;
  if (x.not_finite() > 0) {
    findings.push_back({"label-not-finite", place, static_cast<double>(x.not_finite()),
                        absl::StrCat(x.not_finite(), " of ", x.count() + x.not_finite(),
                                     " labels are NaN or infinite"),
                        "fill or leave out what is missing in the data"});
  }
  if (x.count() > 1 && x.deviation() == 0) {
    findings.push_back({"label-constant", place, x.mean(),
                        absl::StrFormat("every label is %.4g", x.mean()),
                        "label=COLUMN in the data SPEC names the labels"});
  } else if (x.rms() > kLargeTarget) {
    findings.push_back({"label-scale", place, x.rms(),
                        absl::StrCat(x.ToString(),
                                     ": a model begins near 0 and takes long to get "
                                     "there"),
                        "give the labels in a larger unit, so that they lie around 1"});
  }
  return findings;
}

// Yes and no are 1 and 0.
DoctorFindings Binary(const Spread& x, const std::string& place) {
  if (x.low() >= 0 && x.high() <= 1) return {};
  return {{"label-binary", place, x.low() < 0 ? x.low() : x.high(),
           absl::StrFormat("labels are from %.4g to %.4g, bce takes 0 to 1", x.low(), x.high()),
           "write yes as 1 and no as 0"}};
}

}  // namespace

absl::StatusOr<DoctorFindings> LabelFindings(const Dataset& data, const LabelFacts& facts) {
  const std::vector<FieldInfo> fields = data.fields();
  const auto label =
      std::find_if(fields.begin(), fields.end(), [](const FieldInfo& f) { return f.is_label; });
  if (label == fields.end() || facts.judging.by == JudgedBy::kLossAlone) return DoctorFindings();
  const std::string place = absl::StrCat("labels '", label->name, "' of ", data.source());
  const bool binary = facts.judging.scoring.binary;
  if (facts.judging.by == JudgedBy::kClasses && data.classes() > 0) {
    return Classes(data, facts, place);
  }
  if (facts.judging.by == JudgedBy::kClasses && !binary) return DoctorFindings();
  ONWARD_ASSIGN_OR_RETURN(const Spread x, ReadNumbersOf(data, label - fields.begin()));
  return binary ? Binary(x, place) : Numbers(x, place);
}

}  // namespace onward
