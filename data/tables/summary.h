// SPDX-License-Identifier: Apache-2.0
// What the cells of a column have in common, found by looking at each once, in memory that does
// not grow with their number.
#ifndef ONWARD_DATA_TABLES_SUMMARY_H_
#define ONWARD_DATA_TABLES_SUMMARY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "data/preparation.h"
#include "data/tables/row.h"
#include "data/tables/running_numbers.h"

namespace onward {

// Mean and deviation by Welford's way, and the median: exact up to so many values, that of
// evenly spaced ones beyond.
class NumberSummary {
 public:
  void Add(double value);
  int64_t count() const { return count_; }
  double mean() const { return mean_; }
  double median() const;
  // A deviation of 1 where all values are one.
  Standard standard() const;

 private:
  static constexpr size_t kMostKept = 1 << 17;
  int64_t count_ = 0, stride_ = 1;
  double mean_ = 0, spread_ = 0;
  std::vector<double> kept_;
};

// The dates of a column, read in one order of day and month.
struct DateSummary {
  NumberSummary seconds;
  std::vector<NumberSummary> parts = std::vector<NumberSummary>(kDaysAndHours);
  bool times = false;

  void Add(int64_t date);
};

class ColumnSummary {
 public:
  explicit ColumnSummary(bool as_text) : as_text_(as_text) {}
  void Add(const Cell& cell, int64_t row);

  // A column is of the kind that its cells have in common. A few words among numbers are
  // mistakes: they are found when the column is read as numbers.
  ColumnKind kind() const;
  bool empty() const { return numbers_.count() + words_ == 0; }
  int64_t missing() const { return missing_; }
  // Almost every cell differs from the others, as names and identifiers do.
  bool is_identifier(int64_t most_categories) const;
  // Whether there are too many different names to count them.
  bool uncounted() const { return uncounted_; }

  const NumberSummary& numbers() const { return numbers_; }
  const RunningNumbers& running() const { return running_; }
  // Of a column of dates: whether some need an order of day and month, one that does, whether all
  // are dates in this order, and what they are then.
  bool needs_order() const { return !unordered_.empty(); }
  const std::string& unordered_date() const { return unordered_; }
  bool fits(DateOrder order) const { return dates(order).seconds.count() == words_; }
  const DateSummary& dates(DateOrder order) const {
    return order == DateOrder::kMonthFirst ? month_first_ : day_first_;
  }
  // Names that were seen at least `rare` times, at most `most` of them, sorted; whether others
  // are left.
  std::vector<std::string> Categories(int64_t most, int64_t rare, bool* others) const;
  std::string MostFrequent() const;

 private:
  void AddDate(absl::string_view text);
  void Count(absl::string_view text);

  bool as_text_;
  int64_t missing_ = 0, words_ = 0;
  bool uncounted_ = false;
  NumberSummary numbers_;
  RunningNumbers running_;
  DateSummary day_first_, month_first_;  // those whose order is plain are in both
  std::string unordered_;                // the first of the others
  absl::flat_hash_map<std::string, int64_t> counts_;
};

}  // namespace onward

#endif  // ONWARD_DATA_TABLES_SUMMARY_H_
