// SPDX-License-Identifier: Apache-2.0
// Tables as data sets: which columns and rows are meant, what is found out about them, and the
// arrays that come of it.
#ifndef ONWARD_DATA_TABLES_READ_TABLE_H_
#define ONWARD_DATA_TABLES_READ_TABLE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "data/arrays/array_dataset.h"
#include "data/tables/fit.h"
#include "data/tables/table.h"

namespace onward {

// Rows whose numbers take more than this are read again whenever they are needed.
inline constexpr int64_t kMostTableBytes = int64_t{256} << 20;

// A table with the rows and columns that a spec chooses.
struct ChosenTable {
  std::shared_ptr<const Table> table;
  TableColumns columns;
  std::vector<int64_t> rows;       // in the order of the examples
  std::vector<int64_t> positions;  // of the table's rows among these; -1: left out

  int64_t size() const { return static_cast<int64_t>(rows.size()); }
  RowFilter filter() const {
    return [this](int64_t row) { return positions[row] >= 0; };
  }
  // "row 3 (line 4) of rows.csv".
  std::function<std::string(int64_t)> PlaceOf() const;
};

absl::StatusOr<ChosenTable> ChooseTable(const std::string& path, TableFile file,
                                        const DataOptions& options, const DataContext& context);

// How labels are read: as the spec says, as the model has it (`known`, may be null), or as they
// look.
absl::StatusOr<LabelTask> TaskOf(const ChosenTable& chosen, const LabelSummary& labels, Task asked,
                                 const TablePreparation* known);

// Adds the label "y" if there is one: classes by name or number, or numbers, which `target`
// standardises.
absl::Status AddTableLabels(const ChosenTable& chosen, const LabelSummary& summary, LabelTask task,
                            const Standard& target, LoadedData* data);

// `most_bytes`: kMostTableBytes, but for tests.
absl::StatusOr<LoadedData> ReadTable(const std::string& path, TableFile file,
                                     const DataOptions& options, const DataContext& context,
                                     int64_t most_bytes = kMostTableBytes);

}  // namespace onward

#endif  // ONWARD_DATA_TABLES_READ_TABLE_H_
