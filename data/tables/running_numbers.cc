// SPDX-License-Identifier: Apache-2.0
#include "data/tables/running_numbers.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace onward {
namespace {

constexpr double kLargestWhole = 9007199254740992;  // 2^53
// Letters and digits of such names. "": a column that pandas wrote its index to.
constexpr absl::string_view kNames[] = {
    "",      "id",       "ids", "idx", "index",  "key",      "rowid",     "rownumber", "rownum",
    "rowno", "rowindex", "row", "nr",  "serial", "unnamed0", "unnamed01", "recordid",  "sno"};

}  // namespace

void RunningNumbers::Add(double value, int64_t row) {
  if (!whole_) return;
  whole_ = std::fabs(value) < kLargestWhole && value == std::floor(value);
  if (!whole_) return seen_.clear();
  const auto number = static_cast<int64_t>(value);
  const int64_t from = number - row;
  if (count_ == 0) {
    from_ = from == 0 || from == 1 ? from : -1;
  } else {
    rising_ &= number > last_;
    if (from != from_) from_ = -1;
  }
  ++count_;
  last_ = number;
  if (!different_) return;
  // Of more numbers than can be kept, only those that rise are known to differ.
  different_ = seen_.size() < kMostKept && seen_.insert(number).second;
  if (!different_) seen_ = {};
}

bool IsNameOfIdentifier(absl::string_view column) {
  std::string plain;
  std::copy_if(column.begin(), column.end(), std::back_inserter(plain), absl::ascii_isalnum);
  const std::string lower = absl::AsciiStrToLower(plain);
  if (std::find(std::begin(kNames), std::end(kNames), lower) != std::end(kNames)) return true;
  // userId, USER_ID, user-id and "user id", but neither "paid" nor "GRID".
  if (!absl::EndsWithIgnoreCase(column, "id") || column.size() < 3) return false;
  const char before = column[column.size() - 3], first = column[column.size() - 2];
  return !absl::ascii_isalnum(before) || (absl::ascii_islower(before) && first == 'I');
}

}  // namespace onward
