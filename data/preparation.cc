// SPDX-License-Identifier: Apache-2.0
#include "data/preparation.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace onward {

int64_t ColumnPreparation::width() const {
  switch (kind) {
    case ColumnKind::kNumber: return 1;
    case ColumnKind::kDate: return times ? kDaysAndHours : kDays;
    case ColumnKind::kText: break;
  }
  return static_cast<int64_t>(categories.size()) + (other ? 1 : 0);
}

std::string ColumnPreparation::input_name() const {
  return place < 0 ? name : absl::StrCat("column_", place);
}

int64_t TablePreparation::numbers() const {
  int64_t sum = 0;
  for (const ColumnPreparation& c : columns) sum += c.is_code() ? 0 : c.width();
  return sum;
}

int64_t TablePreparation::codes() const {
  return std::count_if(columns.begin(), columns.end(),
                       [](const ColumnPreparation& c) { return c.is_code(); });
}

}  // namespace onward
