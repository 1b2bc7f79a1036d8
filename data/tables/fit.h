// SPDX-License-Identifier: Apache-2.0
// How a table is best prepared, from a look at all of its rows.
#ifndef ONWARD_DATA_TABLES_FIT_H_
#define ONWARD_DATA_TABLES_FIT_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "data/data_options.h"
#include "data/preparation.h"
#include "data/tables/summary.h"
#include "data/tables/table.h"

namespace onward {

// Which columns of a file are inputs, and which is the label.
struct TableColumns {
  std::vector<size_t> inputs;
  std::optional<size_t> label;
};

// What the labels are.
class LabelSummary {
 public:
  void Add(const Cell& cell);

  int64_t missing() const { return missing_; }
  bool numeric() const { return numeric_; }
  const NumberSummary& numbers() const { return numbers_; }
  // Whole numbers from 0 on, no more than there are labels, are classes unless the task says
  // otherwise; so are words.
  LabelTask Guess(Task task) const;
  // The words in their order; an error where there are too many to be classes.
  absl::StatusOr<std::vector<std::string>> Words() const;

 private:
  bool numeric_ = true, whole_ = true, uncounted_ = false;
  double lowest_ = 0, highest_ = 0;
  int64_t missing_ = 0;
  NumberSummary numbers_;
  absl::flat_hash_set<std::string> words_;
};

struct TableSummary {
  std::vector<ColumnSummary> inputs;
  LabelSummary label;
};

// Whether a row counts; empty: all do.
using RowFilter = std::function<bool(int64_t row)>;

absl::StatusOr<TableSummary> Summarise(const Table& table, const TableColumns& columns,
                                       const TableOptions& options, const RowFilter& counts);

struct FittedTable {
  TablePreparation preparation;
  std::vector<size_t> places;  // of its columns in the file
  std::string note;            // what was chosen, in one line
};

// What a table's label is, and how its numbers are standardised; columns are none.
TablePreparation FitLabel(const Table& table, std::optional<size_t> label,
                          const LabelSummary& summary, const DataOptions& options,
                          bool made_for_data);

// An error where text of a column that is to be kept is no UTF-8.
absl::Status CheckUtf8(const Table& table, size_t column, absl::string_view text);

// What day and month mean in the dates of these columns: as the options say, or as dates tell
// that can be read in one way only. An error where nothing tells, or the columns disagree.
absl::StatusOr<DateOrder> FindDateOrder(const Table& table, const TableColumns& columns,
                                        const TableSummary& summary, DateOrder asked);

// `made_for_data`: see TableOptions.
absl::StatusOr<FittedTable> FitTable(const Table& table, const TableColumns& columns,
                                     const TableSummary& summary, const DataOptions& options,
                                     bool made_for_data);

}  // namespace onward

#endif  // ONWARD_DATA_TABLES_FIT_H_
