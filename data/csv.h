// SPDX-License-Identifier: Apache-2.0
// The rows of a CSV text: quotes, doubled quotes and line ends inside quotes,
// CR LF, a byte order mark, and ',' ';' or tab between fields.
#ifndef ONWARD_DATA_CSV_H_
#define ONWARD_DATA_CSV_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace onward {

struct CsvRow {
  int64_t line = 0;  // of the text, from 1
  std::vector<absl::string_view> fields;
  std::deque<std::string> unquoted;  // what some fields view
};

class CsvText {
 public:
  // Views `text`; guesses the separator from the first line.
  explicit CsvText(absl::string_view text);

  // False at the end. Empty lines are passed over. `row` is valid until the text
  // goes away or it is read into again. An error for a quote that is not closed.
  absl::StatusOr<bool> Next(CsvRow* row);
  // Starts again with the first row.
  void Rewind();

 private:
  absl::Status ReadRow(CsvRow* row);
  absl::Status ReadQuoted(CsvRow* row);

  absl::string_view text_;
  char separator_ = ',';
  size_t at_ = 0;
  int64_t line_ = 1;
};

// A finite number that takes the whole field, blanks around it aside.
std::optional<double> CsvNumber(absl::string_view field);
// Digits with an optional sign: "12" is whole, "12.0" is not.
bool IsWholeNumber(absl::string_view field);
// Empty, or one of the usual words for "not known".
bool IsMissing(absl::string_view field);

}  // namespace onward

#endif  // ONWARD_DATA_CSV_H_
