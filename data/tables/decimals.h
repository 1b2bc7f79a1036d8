// SPDX-License-Identifier: Apache-2.0
// Commas in numbers: "1,5" is one and a half where fields are not separated by commas.
#ifndef ONWARD_DATA_TABLES_DECIMALS_H_
#define ONWARD_DATA_TABLES_DECIMALS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "data/tables/row.h"

namespace onward {

// What the cells of a file tell of commas and points in its numbers.
class DecimalEvidence {
 public:
  void Look(const TableRow& row);
  // Whether commas are decimal ones. `known` decides where the cells leave it open (as in
  // "1,234"); an error where nothing does.
  absl::StatusOr<bool> Commas(bool known) const;

 private:
  int64_t commas_ = 0;  // that can be nothing but decimal
  int64_t points_ = 0;  // likewise
  int64_t groups_ = 0;  // of thousands, with commas: "1,234,567"
  std::string open_;    // the first that could be either
  int64_t open_line_ = 0;
};

// Numbers with decimal commas get points. Those with points have separators of thousands, which
// are no part of a number: they become text.
void PointDecimals(TableRow* row);

}  // namespace onward

#endif  // ONWARD_DATA_TABLES_DECIMALS_H_
