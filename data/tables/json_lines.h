// SPDX-License-Identifier: Apache-2.0
// Rows that are JSON objects, one per line: {"age": 31, "city": "Oslo", "member": null}.
#ifndef ONWARD_DATA_TABLES_JSON_LINES_H_
#define ONWARD_DATA_TABLES_JSON_LINES_H_

#include "data/tables/row.h"

namespace onward {

// Cells are numbers, strings, true and false (1 and 0), and null for nothing. Objects name
// their cells, so any may be absent.
class JsonLinesFormat : public RowFormat {
 public:
  absl::StatusOr<std::optional<RowSpan>> Take(absl::string_view text, bool last,
                                              TableRow* row) const override;
};

}  // namespace onward

#endif  // ONWARD_DATA_TABLES_JSON_LINES_H_
