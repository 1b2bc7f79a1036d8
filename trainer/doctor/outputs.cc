// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "trainer/doctor/checks.h"

namespace onward {
namespace {

constexpr double kSumsToOne = 1e-3;  // the largest |sum - 1| of probabilities
constexpr double kSame = 1e-6;       // deviation over examples against the rms

// How far the scores of an example are from probabilities: the largest |sum - 1|, or infinity
// where a score is none.
double DistanceToProbabilities(const std::vector<double>& scores, const Shape& shape, int axis) {
  const int64_t classes = shape[axis];
  const int64_t inner = shape.elements(axis + 1, shape.rank());
  const int64_t outer = shape.elements(0, axis);
  double distance = 0;
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      double sum = 0;
      for (int64_t c = 0; c < classes; ++c) {
        const double score = scores[(o * classes + c) * inner + i];
        if (!(score >= 0 && score <= 1)) return std::numeric_limits<double>::infinity();
        sum += score;
      }
      distance = std::max(distance, std::abs(sum - 1));
    }
  }
  return distance;
}

std::string OutputPlace(const LossPart& part) {
  return absl::StrCat("output '", part.term.outputs[0], "'");
}

DoctorFindings OfProbabilities(const Tensor& output, const LossPart& part,
                               const std::string& last_operator) {
  const LossSpec& loss = part.term.spec;
  const std::string logits = WordOf(loss, "logits", "logits");
  const std::string takes = absl::StrCat("--loss ", loss.name, ":logits=");
  if (loss.name == "bce") {
    if (logits != "logits" || last_operator != "Sigmoid") return {};
    return {{"probabilities-as-logits", OutputPlace(part), 1,
             "it ends in a Sigmoid, and bce applies sigmoid to it again", takes + "probabilities"}};
  }
  const auto scores = ToDoubles(output);
  if (loss.name != "cross_entropy" || output.shape().rank() < 2 || !scores.ok()) return {};
  const int axis = WordOf(loss, "axis", "1") == "-1" ? output.shape().rank() - 1 : 1;
  const double distance = DistanceToProbabilities(*scores, output.shape(), axis);
  const bool probable = distance <= kSumsToOne && output.shape()[axis] > 1;
  if (probable && logits == "logits") {
    return {{"probabilities-as-logits", OutputPlace(part), distance,
             absl::StrFormat("its scores are probabilities already (from 0 to 1, and their sum is "
                             "1 within %.2g), and cross_entropy applies softmax to them again",
                             distance),
             takes + "probabilities"}};
  }
  if (!probable && logits == "probabilities") {
    const auto [low, high] = std::minmax_element(scores->begin(), scores->end());
    return {{"logits-as-probabilities", OutputPlace(part), *low < 0 ? *low : *high,
             absl::StrFormat("its scores are from %.4g to %.4g, no probabilities of classes, which "
                             "is what the loss takes them for",
                             *low, *high),
             takes + "logits"}};
  }
  return {};
}

// Whatever the example, the answer is the same, also after training on the batch.
DoctorFindings Constant(const Tensor& output, const LossPart& part) {
  const auto values = ToDoubles(output);
  if (!values.ok() || output.shape().rank() == 0 || output.shape()[0] < 2) return {};
  std::vector<Spread> columns(values->size() / static_cast<size_t>(output.shape()[0]));
  if (columns.empty()) return {};
  AddColumns(*values, &columns);
  double deviation = 0, rms = 0;
  for (const Spread& column : columns) {
    if (column.not_finite() > 0) return {};
    deviation = std::max(deviation, column.deviation());
    rms = std::max(rms, column.rms());
  }
  if (deviation > kSame * rms) return {};
  return {{"constant-output", OutputPlace(part), deviation,
           absl::StrFormat("it is the same for all %d examples of a batch (deviation %.2g), also "
                           "after training on it",
                           output.shape()[0], deviation),
           "what is wrong lies before it: see the findings on inputs, units and gradients; "
           "--initialize draws the weights anew"}};
}

}  // namespace

DoctorFindings OutputFindings(const Probe& before, const Probe& after, const LossPart& part,
                              const std::string& last_operator) {
  if (!before.output.defined() || !part.term.file.empty()) return {};
  DoctorFindings findings = OfProbabilities(before.output, part, last_operator);
  if (!after.output.defined()) return findings;
  for (DoctorFinding& finding : Constant(after.output, part)) {
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace onward
