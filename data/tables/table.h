// SPDX-License-Identifier: Apache-2.0
// A table in a file, read row by row: its columns and where its rows begin are known once it is
// open, what the rows hold is read when it is asked for.
#ifndef ONWARD_DATA_TABLES_TABLE_H_
#define ONWARD_DATA_TABLES_TABLE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/stored_bytes.h"
#include "data/tables/decimals.h"
#include "data/tables/row.h"

namespace onward {

enum class TableFile { kCsv, kJsonLines };

struct OpenTableOptions {
  TableFile file = TableFile::kCsv;
  std::optional<bool> header;      // of a csv file; nullopt: found out
  std::vector<std::string> names;  // of columns that are expected: a row that has one is a header
  // Whether numbers of a csv file have decimal commas; nullopt: found out. What the model's own
  // files have decides where this one leaves it open.
  std::optional<bool> decimal_comma;
  bool known_decimal_comma = false;
};

class Table {
 public:
  // Reads the file once. Rows with another number of fields than the first are errors, all of
  // them told at once.
  static absl::StatusOr<std::shared_ptr<const Table>> Open(const std::string& path,
                                                           const OpenTableOptions& options);

  const std::string& path() const { return file_.name(); }
  int64_t rows() const { return static_cast<int64_t>(begins_.size()) - 1; }
  size_t columns() const { return columns_; }
  // Of the columns; none where there is no header.
  const std::vector<std::string>& names() const { return names_; }
  // What the labels are called, where the header tells (as scikit-learn's tables do).
  const std::vector<std::string>& class_names() const { return class_names_; }
  char separator() const { return separator_; }
  bool decimal_comma() const { return decimal_comma_; }

  // By name, or by number from 0 (from -1 at the end).
  absl::StatusOr<size_t> Find(const std::string& which) const;
  std::string ColumnList() const;          // for messages
  std::string ColumnName(size_t c) const;  // "column 'age'", "column 3"
  std::string ShortName(size_t c) const;   // "age", "3"

  // Every row in order, its cells in the order of the columns.
  absl::Status ForEach(const std::function<absl::Status(int64_t, const TableRow&)>& visit) const;
  // One row. `buffer` is what it views.
  absl::Status Read(int64_t row, std::string* buffer, TableRow* out) const;
  // "row 3 (line 4)"; counts lines from the start of the file where `line` is 0.
  std::string Place(int64_t row, int64_t line = 0) const;

 private:
  Table() = default;
  absl::Status Index(const OpenTableOptions& options);
  absl::Status ChooseDecimals(const OpenTableOptions& options, const DecimalEvidence& evidence);
  absl::Status TakeHeader(const OpenTableOptions& options);
  // Cells that go by key into the order of the columns.
  void Arrange(TableRow* row) const;
  void Learn(const TableRow& row);

  StoredBytes file_;
  std::unique_ptr<const RowFormat> format_;
  char separator_ = ',';
  bool decimal_comma_ = false;
  size_t columns_ = 0;
  std::vector<std::string> names_, class_names_;
  absl::flat_hash_map<std::string, size_t> places_;  // of names, where rows name their cells
  std::vector<int64_t> begins_;                      // of rows, and where the last one ends
  int64_t first_line_ = 1;                           // where the first row begins
};

}  // namespace onward

#endif  // ONWARD_DATA_TABLES_TABLE_H_
