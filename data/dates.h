// SPDX-License-Identifier: Apache-2.0
// Dates as people write them, and the numbers that they become.
#ifndef ONWARD_DATA_DATES_H_
#define ONWARD_DATA_DATES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"

namespace onward {

// Parts of a date that become numbers, in this order; the last one where there are times only.
inline constexpr const char* kDateParts[] = {"year", "month", "day", "weekday", "hour"};
inline constexpr int kDays = 4, kDaysAndHours = 5;
// The calendar: days from 0000-03-01, where the cycles of 400 years begin, to 1970-01-01.
inline constexpr int64_t kDaySeconds = 86400, kCalendarDays = 719468, kCycleDays = 146097;
// Of seconds since 1970-01-01 00:00. Months and days count from 1, weekdays from Monday = 0,
// hours have fractions.
std::vector<float> PartsOfDate(int64_t seconds, bool times);

// Which stands first in "1/2/2024" and "1-2-2024".
enum class DateOrder { kUnknown, kDayFirst, kMonthFirst };

// Seconds as above, for years 1 to 9999. The year first ("2024-02-29", "2024/2/29"), points
// ("29.2.2024"), or, where the order is known, "29/2/2024" and "29-2-2024"; a time may follow
// behind a blank or a T ("23:59", "7:05:30", "11:59 PM").
std::optional<int64_t> ParseDate(absl::string_view text, DateOrder order = DateOrder::kUnknown);
// Whether it is a date in one order at least, and none without an order.
bool NeedsDateOrder(absl::string_view text);

}  // namespace onward

#endif  // ONWARD_DATA_DATES_H_
