// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "trainer/doctor/checks.h"

namespace onward {
namespace {

constexpr double kLearned = 0.2;  // progress that is enough
constexpr double kWell = 0.5;     // progress for which another rate is recommended
constexpr double kFitted = 0.05;  // a loss that need not fall

constexpr double kUsualRate = 1e-3;
constexpr double kLower[] = {0.1, 0.01, 0.001};
constexpr double kHigher[] = {10, 100, 1e3, 1e4, 1e5};
constexpr double kHighestTried = 10;  // a rate above which none is tried

std::string RateFlag(double rate) { return absl::StrFormat("--lr %.3g", rate); }

std::string Course(const Trial& trial) {
  if (trial.losses.empty()) return "not a single step could be done";
  return absl::StrFormat("on one batch the loss goes from %.4g to %.4g in %d steps%s",
                         trial.first(), trial.last(), trial.losses.size(),
                         trial.broke.empty() ? "" : ", then it is not finite");
}

// With another rate it went better.
DoctorFinding OtherRate(const Trial& first, const Trial& better) {
  const bool high = better.rate < first.rate;
  return {high ? "rate-too-high" : "rate-too-low", "learning rate", first.rate,
          absl::StrFormat("with the rate %.3g %s; with %.3g it goes to %.4g", first.rate,
                          Course(first), better.rate, better.last()),
          RateFlag(better.rate)};
}

bool Learns(const Trial& trial) {
  return !trial.Diverged() && (trial.Progress() >= kLearned || std::abs(trial.last()) <= kFitted);
}

}  // namespace

bool BatchIsLearned(const std::vector<Trial>& trials) {
  return std::any_of(trials.begin(), trials.end(), Learns);
}

bool IsRemedy(const Trial& first, const Trial& other) {
  // A flat loss that another rate hardly moves is not the fault of the rate.
  return !other.Diverged() && other.Progress() >= (first.Diverged() ? kLearned : kWell);
}

std::vector<double> RatesToTry(const Trial& first) {
  if (Learns(first) || first.rate == 0) return {};
  std::vector<double> factors;
  for (double factor : kHigher) {
    if (!first.Diverged() && factor * first.rate <= kHighestTried) factors.push_back(factor);
  }
  factors.insert(factors.end(), std::begin(kLower), std::end(kLower));
  return factors;
}

DoctorFindings LearningFindings(const std::vector<Trial>& trials) {
  if (trials.empty() || Learns(trials[0])) return {};
  const Trial& first = trials[0];
  if (IsRemedy(first, trials.back())) return {OtherRate(first, trials.back())};
  if (first.losses.empty()) {
    return {{"loss-not-finite", "loss", first.first(),
             absl::StrCat("the very first step fails: ", first.broke),
             "look for NaN in the data, for a Log or a division by 0 in the model, and for labels "
             "that do not fit"}};
  }
  if (first.rate == 0) {
    return {{"rate-too-low", "learning rate", 0, "the rate is 0: nothing is learned",
             RateFlag(kUsualRate)}};
  }
  double low = first.rate, high = first.rate;
  for (const Trial& trial : trials) {
    low = std::min(low, trial.rate);
    high = std::max(high, trial.rate);
  }
  return {
      {"loss-stuck", "loss", first.Progress(),
       trials.size() > 1
           ? absl::StrFormat("%s; no rate from %.3g to %.3g makes it fall by %s", Course(first),
                             low, high, first.Diverged() ? "a fifth" : "half")
           : Course(first),
       "not the rate: inputs that do not tell the labels apart, weights that are frozen "
       "(--train PATTERN) or dead, a loss that does not fit (--loss), or a model that is too small "
       "to learn a batch by heart"}};
}

}  // namespace onward
