// SPDX-License-Identifier: Apache-2.0
#include "data/tables/summary.h"

#include <algorithm>
#include <cmath>

namespace onward {
namespace {

constexpr size_t kMostCountedNumbers = 1000;  // a column of more different numbers holds numbers
constexpr size_t kMostCounted = 200000;
constexpr int64_t kFewestNames = 10;  // fewer may all differ by chance
// Words may be so small a part of a column of numbers.
constexpr double kMistakes = 0.1;

}  // namespace

void NumberSummary::Add(double value) {
  ++count_;
  const double before = value - mean_;
  mean_ += before / static_cast<double>(count_);
  spread_ += before * (value - mean_);
  if ((count_ - 1) % stride_ != 0) return;
  kept_.push_back(value);
  if (kept_.size() < kMostKept) return;
  for (size_t i = 0; 2 * i < kept_.size(); ++i) kept_[i] = kept_[2 * i];
  kept_.resize(kept_.size() / 2);
  stride_ *= 2;
}

double NumberSummary::median() const {
  if (kept_.empty()) return 0;
  std::vector<double> sorted = kept_;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  if (sorted.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(sorted.begin(), middle)) / 2;
}

Standard NumberSummary::standard() const {
  const double deviation = count_ == 0 ? 0 : std::sqrt(spread_ / static_cast<double>(count_));
  const bool varies = deviation > 1e-7 * std::fabs(mean_) && static_cast<float>(deviation) > 0;
  return {mean_, varies ? deviation : 1};
}

void DateSummary::Add(int64_t date) {
  seconds.Add(static_cast<double>(date));
  times |= date % kDaySeconds != 0;
  const std::vector<float> values = PartsOfDate(date, /*times=*/true);
  for (size_t i = 0; i < values.size(); ++i) parts[i].Add(values[i]);
}

void ColumnSummary::Add(const Cell& cell, int64_t row) {
  if (IsMissing(cell.text)) {
    ++missing_;
    return;
  }
  const std::optional<double> number = as_text_ ? std::nullopt : NumberIn(cell);
  if (number) {
    numbers_.Add(*number);
    running_.Add(*number, row);
  } else {
    ++words_;
    if (!as_text_) AddDate(cell.text);
  }
  Count(cell.text);
}

void ColumnSummary::AddDate(absl::string_view text) {
  if (const std::optional<int64_t> plain = ParseDate(text)) {
    day_first_.Add(*plain);
    month_first_.Add(*plain);
    return;
  }
  const std::optional<int64_t> by_day = ParseDate(text, DateOrder::kDayFirst);
  const std::optional<int64_t> by_month = ParseDate(text, DateOrder::kMonthFirst);
  if (by_day) day_first_.Add(*by_day);
  if (by_month) month_first_.Add(*by_month);
  if ((by_day || by_month) && unordered_.empty()) unordered_ = std::string(text);
}

void ColumnSummary::Count(absl::string_view text) {
  if (uncounted_) return;
  ++counts_[text];
  uncounted_ = counts_.size() > (words_ == 0 ? kMostCountedNumbers : kMostCounted);
  if (uncounted_) counts_.clear();
}

ColumnKind ColumnSummary::kind() const {
  if (as_text_) return ColumnKind::kText;
  if (words_ == 0) return ColumnKind::kNumber;
  if (numbers_.count() == 0) {
    const bool dates = fits(DateOrder::kDayFirst) || fits(DateOrder::kMonthFirst);
    return dates ? ColumnKind::kDate : ColumnKind::kText;
  }
  const double all = static_cast<double>(words_ + numbers_.count());
  return static_cast<double>(words_) > kMistakes * all ? ColumnKind::kText : ColumnKind::kNumber;
}

bool ColumnSummary::is_identifier(int64_t most_categories) const {
  if (as_text_) return false;
  const int64_t different = static_cast<int64_t>(counts_.size());
  const int64_t all = words_ + numbers_.count();
  return uncounted_ || (different == all && all >= kFewestNames) ||
         (different > most_categories && 2 * different > all);
}

std::vector<std::string> ColumnSummary::Categories(int64_t most, int64_t rare, bool* others) const {
  std::vector<std::pair<int64_t, std::string>> ordered;  // the most frequent first
  for (const auto& [name, count] : counts_) {
    if (count >= rare) ordered.emplace_back(-count, name);
  }
  std::sort(ordered.begin(), ordered.end());
  if (static_cast<int64_t>(ordered.size()) > most) ordered.resize(static_cast<size_t>(most));
  *others = ordered.size() < counts_.size();
  std::vector<std::string> names;
  for (auto& [count, name] : ordered) names.push_back(std::move(name));
  std::sort(names.begin(), names.end());
  return names;
}

std::string ColumnSummary::MostFrequent() const {
  std::pair<int64_t, std::string> best = {0, ""};
  for (const auto& [name, count] : counts_) best = std::min(best, {-count, name});
  return best.second;
}

}  // namespace onward
