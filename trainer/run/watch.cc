// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/watch.h"

#include <cmath>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "core/base/spec.h"

namespace onward {
namespace {

// Less than this is what evaluations differ by anyway: of an accuracy, and as a share of the rest.
constexpr double kSameAccuracy = 0.005, kSameShare = 0.02;

std::string Written(Metric metric, double value) {
  return metric == Metric::kAccuracy ? absl::StrFormat("%.2f %%", 100 * value)
                                     : absl::StrFormat("%.4g", value);
}

}  // namespace

double Plateau::Start() const {
  const double infinity = std::numeric_limits<double>::infinity();
  return Maximizes() ? -infinity : infinity;
}

absl::Status Plateau::Resume(const std::string& state) {
  const std::vector<std::string> parts = absl::StrSplit(state, ' ');
  if (parts.size() == 3 && absl::SimpleAtod(parts[0], &best_) &&
      absl::SimpleAtoi(parts[1], &bad_) && absl::SimpleAtoi(parts[2], &cooldown_)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("metadata ", kMetaPlateau, " is '", state, "', expected BEST BAD COOLDOWN"));
}

std::string Plateau::State() const {
  return absl::StrCat(ExactText(best_), " ", bad_, " ", cooldown_);
}

bool Plateau::IsBetter(double value) const {
  const double threshold = OptionOf(schedule_, "threshold");
  const bool relative = OptionOf(schedule_, "threshold_mode") == 0;
  if (Maximizes()) return value > (relative ? best_ * (1 + threshold) : best_ + threshold);
  return value < (relative ? best_ * (1 - threshold) : best_ - threshold);
}

bool Plateau::Observe(double value, double* factor) {
  if (IsBetter(value)) {
    best_ = value;
    bad_ = 0;
  } else {
    ++bad_;
  }
  if (cooldown_ > 0) {
    --cooldown_;
    bad_ = 0;
  }
  if (bad_ <= static_cast<int64_t>(OptionOf(schedule_, "patience"))) return false;
  cooldown_ = static_cast<int64_t>(OptionOf(schedule_, "cooldown"));
  bad_ = 0;
  const double rate = base_rate_ * *factor, lowest = OptionOf(schedule_, "min_lr");
  double reduced = *factor * OptionOf(schedule_, "factor");
  if (base_rate_ * reduced < lowest) reduced = lowest / base_rate_;
  if (!(rate - base_rate_ * reduced > OptionOf(schedule_, "eps"))) return false;
  *factor = reduced;
  return true;
}

absl::Status Patience::Resume(const std::string& state) {
  const std::vector<std::string> parts = absl::StrSplit(state, ' ');
  double best = 0;
  if (parts.size() != 2 || !absl::SimpleAtod(parts[0], &best) ||
      !absl::SimpleAtoi(parts[1], &worse_)) {
    return absl::InvalidArgumentError(
        absl::StrCat("metadata ", kMetaPatience, " is '", state, "', expected BEST WORSE"));
  }
  best_ = best;
  return absl::OkStatus();
}

std::string Patience::State() const {
  return best_.has_value() ? absl::StrCat(ExactText(*best_), " ", worse_) : "";
}

bool Patience::Observe(double value) {
  const bool better = !best_.has_value() || (higher_is_better_ ? value > *best_ : value < *best_);
  if (better && !std::isnan(value)) {
    best_ = value;
    worse_ = 0;
  } else {
    ++worse_;
  }
  return worse_ >= limit_;
}

void BestSeen::Observe(int64_t step, double value) {
  last_ = value;
  const bool better =
      !best_.has_value() || (HigherIsBetter(metric_) ? value > *best_ : value < *best_);
  if (!better || std::isnan(value)) return;
  best_ = value;
  best_step_ = step;
}

std::string BestSeen::Hint(const std::string& best_file) const {
  if (!best_.has_value() || std::isnan(*last_)) return "";
  const double lost = std::fabs(*last_ - *best_);
  if (lost <= (metric_ == Metric::kAccuracy ? kSameAccuracy : kSameShare * std::fabs(*best_))) {
    return "";
  }
  return absl::StrCat(
      "the ", MetricName(metric_), " in evaluation was best after step ", best_step_, ", ",
      Written(metric_, *best_), ", and is ", Written(metric_, *last_), " at the end; ",
      best_file.empty() ? "--best FILE keeps the best of a run, --patience N ends it in time"
                        : absl::StrCat("'", best_file, "' holds the best"));
}

}  // namespace onward
