// SPDX-License-Identifier: Apache-2.0
#include "data/preparation.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace onward {
namespace {

bool IsLeapYear(int64_t y) { return (y % 4 == 0 && y % 100 != 0) || y % 400 == 0; }

int64_t DaysOfMonth(int64_t year, int64_t month) {
  constexpr int kDaysOf[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return kDaysOf[month - 1] + (month == 2 && IsLeapYear(year) ? 1 : 0);
}

// Days since 1970-01-01, with years that begin in March.
int64_t DaysOf(int64_t year, int64_t month, int64_t day) {
  const int64_t y = month <= 2 ? year - 1 : year;
  const int64_t of_cycle = y % 400;
  const int64_t of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
  return y / 400 * kCycleDays + of_cycle * 365 + of_cycle / 4 - of_cycle / 100 + of_year -
         kCalendarDays;
}

// `digits` digits at the front of the text.
bool TakeDigits(size_t digits, absl::string_view* text, int64_t* value) {
  const absl::string_view front = text->substr(0, digits);
  if (front.size() != digits || !std::all_of(front.begin(), front.end(), absl::ascii_isdigit)) {
    return false;
  }
  text->remove_prefix(digits);
  return absl::SimpleAtoi(front, value);
}

bool TakeAny(absl::string_view chars, absl::string_view* text) {
  if (text->empty() || chars.find((*text)[0]) == absl::string_view::npos) return false;
  text->remove_prefix(1);
  return true;
}

// hh:mm, hh:mm:ss or hh:mm:ss.fff (fractions do not count), a Z behind it or not, to the end.
std::optional<int64_t> SecondsOfDay(absl::string_view text) {
  int64_t hour = 0, minute = 0, second = 0;
  if (!TakeDigits(2, &text, &hour) || !TakeAny(":", &text) || !TakeDigits(2, &text, &minute)) {
    return std::nullopt;
  }
  if (TakeAny(":", &text)) {
    if (!TakeDigits(2, &text, &second)) return std::nullopt;
    if (TakeAny(".", &text)) {
      text.remove_prefix(std::min(text.find_first_not_of("0123456789"), text.size()));
    }
  }
  TakeAny("Z", &text);
  if (!text.empty() || hour > 23 || minute > 59 || second > 59) return std::nullopt;
  return hour * 3600 + minute * 60 + second;
}

}  // namespace

std::optional<int64_t> ParseDate(absl::string_view text) {
  int64_t year = 0, month = 0, day = 0;
  if (!TakeDigits(4, &text, &year) || !TakeAny("-", &text) || !TakeDigits(2, &text, &month) ||
      !TakeAny("-", &text) || !TakeDigits(2, &text, &day) || year < 1 || month < 1 || month > 12 ||
      day < 1 || day > DaysOfMonth(year, month)) {
    return std::nullopt;
  }
  const int64_t seconds = DaysOf(year, month, day) * kDaySeconds;
  if (text.empty()) return seconds;
  if (!TakeAny("T ", &text)) return std::nullopt;
  const std::optional<int64_t> of_day = SecondsOfDay(text);
  return of_day ? std::optional<int64_t>(seconds + *of_day) : std::nullopt;
}

// trainer/prepare/raw_columns.cc has the same as ONNX nodes.
std::vector<float> PartsOfDate(int64_t seconds, bool times) {
  const int64_t since = seconds + kCalendarDays * kDaySeconds;  // from year 1 on it is positive
  const int64_t days = since / kDaySeconds, of_cycle = days % kCycleDays;
  const int64_t year_of_cycle =
      (of_cycle - of_cycle / 1460 + of_cycle / 36524 - of_cycle / 146096) / 365;
  const int64_t of_year =
      of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
  const int64_t from_march = (5 * of_year + 2) / 153;
  const int64_t day = of_year - (153 * from_march + 2) / 5 + 1;
  const int64_t month = from_march < 10 ? from_march + 3 : from_march - 9;
  const int64_t year = year_of_cycle + days / kCycleDays * 400 + (month <= 2 ? 1 : 0);
  // 0000-03-01 was a Wednesday.
  std::vector<float> parts = {static_cast<float>(year), static_cast<float>(month),
                              static_cast<float>(day), static_cast<float>((days + 2) % 7)};
  if (times) parts.push_back(static_cast<float>(since % kDaySeconds) / 3600.0f);
  return parts;
}

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
