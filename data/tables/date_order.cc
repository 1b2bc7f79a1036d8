// SPDX-License-Identifier: Apache-2.0
// Whether day or month comes first in a file (fit.h).
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "data/tables/fit.h"

namespace onward {
namespace {

absl::Status Disagree(const Table& table, const std::vector<size_t>& by_day,
                      const std::vector<size_t>& by_month) {
  return absl::InvalidArgumentError(
      absl::StrCat(table.path(), ": ", table.ColumnName(by_day[0]), " has the day first and ",
                   table.ColumnName(by_month[0]), " the month; leave one out with drop=",
                   table.ShortName(by_month[0]), ", or read it as text with text_columns="));
}

absl::Status NothingTells(const Table& table, const std::vector<std::string>& open) {
  return absl::InvalidArgumentError(absl::StrCat(
      table.path(), ": dates of ", absl::StrJoin(open, " and "),
      " may have the day or the month first, and none of the file tells: say dates=dmy or "
      "dates=mdy"));
}

}  // namespace

absl::StatusOr<DateOrder> FindDateOrder(const Table& table, const TableColumns& columns,
                                        const TableSummary& summary, DateOrder asked) {
  if (asked != DateOrder::kUnknown) return asked;
  std::vector<size_t> by_day, by_month;  // columns that can be read in one way only
  std::vector<std::string> open;
  for (size_t i = 0; i < columns.inputs.size(); ++i) {
    const ColumnSummary& column = summary.inputs[i];
    if (column.kind() != ColumnKind::kDate || !column.needs_order()) continue;
    const size_t place = columns.inputs[i];
    if (!column.fits(DateOrder::kMonthFirst)) {
      by_day.push_back(place);
    } else if (!column.fits(DateOrder::kDayFirst)) {
      by_month.push_back(place);
    } else {
      open.push_back(absl::StrCat(table.ColumnName(place), " (", column.unordered_date(), ")"));
    }
  }
  if (!by_day.empty() && !by_month.empty()) return Disagree(table, by_day, by_month);
  if (!by_day.empty()) return DateOrder::kDayFirst;
  if (!by_month.empty()) return DateOrder::kMonthFirst;
  if (!open.empty()) return NothingTells(table, open);
  return DateOrder::kUnknown;
}

}  // namespace onward
