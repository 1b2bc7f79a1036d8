// SPDX-License-Identifier: Apache-2.0
// Columns of numbers that tell rows apart and say nothing of them: PassengerId.
#ifndef ONWARD_DATA_TABLES_RUNNING_NUMBERS_H_
#define ONWARD_DATA_TABLES_RUNNING_NUMBERS_H_

#include <cstdint>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"

namespace onward {

// Looks at the numbers of a column, in memory that has a limit.
class RunningNumbers {
 public:
  void Add(double value, int64_t row);

  // Whole numbers of which no two are alike.
  bool all_different() const { return count_ > 1 && whole_ && (rising_ || different_); }
  // Each is the number of its row, counted from 0 or from 1.
  bool counts_rows() const { return count_ >= kFewest && whole_ && from_ >= 0; }
  // What rows are counted from, where they are.
  int64_t from() const { return from_; }

 private:
  static constexpr int64_t kFewest = 10;  // fewer may be like that by chance
  static constexpr size_t kMostKept = size_t{1} << 17;

  int64_t count_ = 0, last_ = 0, from_ = 0;
  bool whole_ = true, rising_ = true, different_ = true;
  absl::flat_hash_set<int64_t> seen_;
};

// Whether a column is called like an identifier: "id", "PassengerId", "row_id", "index", "".
bool IsNameOfIdentifier(absl::string_view column);

}  // namespace onward

#endif  // ONWARD_DATA_TABLES_RUNNING_NUMBERS_H_
