// SPDX-License-Identifier: Apache-2.0
#include "data/dates.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"

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

// The digits at the front of the text, so many of them.
bool TakeDigits(size_t fewest, size_t most, absl::string_view* text, int64_t* value) {
  const size_t digits = std::min(text->find_first_not_of("0123456789"), text->size());
  if (digits < fewest || digits > most) return false;
  const absl::string_view front = text->substr(0, digits);
  text->remove_prefix(digits);
  return absl::SimpleAtoi(front, value);
}

bool TakeAny(absl::string_view chars, absl::string_view* text) {
  if (text->empty() || chars.find((*text)[0]) == absl::string_view::npos) return false;
  text->remove_prefix(1);
  return true;
}

// An AM or PM at the end, in whatever letters; the hour of 24.
bool TakeHalfOfDay(absl::string_view* text, int64_t* hour) {
  const absl::string_view half = absl::StripAsciiWhitespace(*text);
  const bool pm = absl::EqualsIgnoreCase(half, "pm");
  if (!pm && !absl::EqualsIgnoreCase(half, "am")) return true;
  if (*hour < 1 || *hour > 12) return false;
  *hour = *hour % 12 + (pm ? 12 : 0);
  *text = "";
  return true;
}

// h:mm, h:mm:ss or h:mm:ss.fff (fractions do not count), a Z, AM or PM behind it or not, to the
// end.
std::optional<int64_t> SecondsOfDay(absl::string_view text) {
  int64_t hour = 0, minute = 0, second = 0;
  if (!TakeDigits(1, 2, &text, &hour) || !TakeAny(":", &text) ||
      !TakeDigits(2, 2, &text, &minute)) {
    return std::nullopt;
  }
  if (TakeAny(":", &text)) {
    if (!TakeDigits(2, 2, &text, &second)) return std::nullopt;
    if (TakeAny(".", &text)) {
      text.remove_prefix(std::min(text.find_first_not_of("0123456789"), text.size()));
    }
  }
  if (!TakeAny("Z", &text) && !TakeHalfOfDay(&text, &hour)) return std::nullopt;
  if (!text.empty() || hour > 23 || minute > 59 || second > 59) return std::nullopt;
  return hour * 3600 + minute * 60 + second;
}

struct CalendarDay {
  int64_t year = 0, month = 0, day = 0;
};

// The numbers of a date in their places; what follows stays in the text.
std::optional<CalendarDay> TakeDay(DateOrder order, absl::string_view* text) {
  CalendarDay date;
  absl::string_view rest = *text;
  int64_t first = 0, second = 0;
  if (TakeDigits(4, 4, &rest, &date.year)) {
    const absl::string_view mark = rest.substr(0, 1);
    const size_t fewest = mark == "-" ? 2 : 1;
    if (!TakeAny("-/", &rest) || !TakeDigits(fewest, 2, &rest, &date.month) ||
        !TakeAny(mark, &rest) || !TakeDigits(fewest, 2, &rest, &date.day)) {
      return std::nullopt;
    }
    *text = rest;
    return date;
  }
  if (!TakeDigits(1, 2, &rest, &first)) return std::nullopt;
  const absl::string_view mark = rest.substr(0, 1);
  if (!TakeAny("./-", &rest) || !TakeDigits(1, 2, &rest, &second) || !TakeAny(mark, &rest) ||
      !TakeDigits(4, 4, &rest, &date.year)) {
    return std::nullopt;
  }
  if (mark == ".") order = DateOrder::kDayFirst;
  if (order == DateOrder::kUnknown) return std::nullopt;
  const bool day_first = order == DateOrder::kDayFirst;
  date.day = day_first ? first : second;
  date.month = day_first ? second : first;
  *text = rest;
  return date;
}

}  // namespace

std::optional<int64_t> ParseDate(absl::string_view text, DateOrder order) {
  const std::optional<CalendarDay> date = TakeDay(order, &text);
  if (!date || date->year < 1 || date->month < 1 || date->month > 12 || date->day < 1 ||
      date->day > DaysOfMonth(date->year, date->month)) {
    return std::nullopt;
  }
  const int64_t seconds = DaysOf(date->year, date->month, date->day) * kDaySeconds;
  if (text.empty()) return seconds;
  if (!TakeAny("T ", &text)) return std::nullopt;
  const std::optional<int64_t> of_day = SecondsOfDay(text);
  return of_day ? std::optional<int64_t>(seconds + *of_day) : std::nullopt;
}

bool NeedsDateOrder(absl::string_view text) {
  return !ParseDate(text) &&
         (ParseDate(text, DateOrder::kDayFirst) || ParseDate(text, DateOrder::kMonthFirst));
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

}  // namespace onward
