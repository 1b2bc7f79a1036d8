// SPDX-License-Identifier: Apache-2.0
// Rows of a table as text, and what a cell says.
#ifndef ONWARD_DATA_TABLES_ROW_H_
#define ONWARD_DATA_TABLES_ROW_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace onward {

struct Cell {
  absl::string_view text;
  bool is_text = false;  // not a number, whatever it looks like
};

// Valid as long as the text it was read from.
struct TableRow {
  int64_t line = 0;  // of the file, from 1
  std::vector<Cell> cells;
  std::vector<std::string> keys;  // of the cells, where rows name them; else they go by place
  std::deque<std::string> made;   // what some cells view
};

// Where a row lies in a text, and how many line ends stand before and in it.
struct RowSpan {
  size_t begin = 0, end = 0;
  int64_t lines_before = 0, lines = 0;
};

class RowFormat {
 public:
  virtual ~RowFormat() = default;
  // The first row of `text`, empty lines passed over. Nothing where it does not end in `text`,
  // or where `last` says that nothing follows it and it holds no row. Errors say what, but not
  // where.
  virtual absl::StatusOr<std::optional<RowSpan>> Take(absl::string_view text, bool last,
                                                      TableRow* row) const = 0;
};

// What a file of UTF-8 may begin with.
inline constexpr absl::string_view kUtf8Mark = "\xef\xbb\xbf";

// How many lines end before the first thing in `text` that is not blank.
int64_t LinesBefore(absl::string_view text);

// A finite number that takes the whole cell.
std::optional<double> NumberIn(const Cell& cell);
// Digits with an optional sign: "12" is whole, "12.0" is not.
bool IsWholeNumber(absl::string_view text);
// Empty, or one of the usual words for "not known".
bool IsMissing(absl::string_view text);
// These words, some in several spellings.
std::vector<std::string> MissingWords();

}  // namespace onward

#endif  // ONWARD_DATA_TABLES_ROW_H_
