// SPDX-License-Identifier: Apache-2.0
// The rows of a CSV text: quotes, doubled quotes and line ends inside quotes,
// CR LF, a byte order mark, and ',' ';' '|' or tab between fields; decimal commas as points.
#ifndef ONWARD_DATA_TABLES_CSV_H_
#define ONWARD_DATA_TABLES_CSV_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "data/tables/row.h"

namespace onward {

class CsvFormat : public RowFormat {
 public:
  explicit CsvFormat(char separator, bool decimal_comma = false)
      : separator_(separator), decimal_comma_(decimal_comma) {}
  absl::StatusOr<std::optional<RowSpan>> Take(absl::string_view text, bool last,
                                              TableRow* row) const override;

 private:
  char separator_;
  bool decimal_comma_;
};

struct CsvRow {
  int64_t line = 0;                       // of the text, from 1
  std::vector<absl::string_view> fields;  // valid until it is read into again
  TableRow row;
};

// The rows of a text that is in memory.
class CsvText {
 public:
  explicit CsvText(absl::string_view text);
  // False at the end. An error names the line.
  absl::StatusOr<bool> Next(CsvRow* row);

 private:
  absl::string_view text_;
  CsvFormat format_;
  int64_t line_ = 1;
};

// What stands between the fields of a text that begins so: what its first line has most of.
// Commas between digits are decimal ones where it has others.
char GuessSeparator(absl::string_view text);

}  // namespace onward

#endif  // ONWARD_DATA_TABLES_CSV_H_
