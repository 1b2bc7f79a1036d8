// SPDX-License-Identifier: Apache-2.0
#include "core/ops/elementwise/text_number.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/ops/cpu/scalar_math.h"

namespace onward {
namespace {

// Positional from 1e-4 up to `limit`, which numpy chooses by the type.
template <typename T>
std::string Shortest(T value, double limit) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  const double magnitude = std::fabs(static_cast<double>(value));
  const bool positional = magnitude == 0 || (magnitude >= 1e-4 && magnitude < limit);
  char buffer[64];
  const auto end =
      std::to_chars(buffer, buffer + sizeof(buffer), value,
                    positional ? std::chars_format::fixed : std::chars_format::scientific);
  std::string text(buffer, end.ptr);
  if (positional && !absl::StrContains(text, ".")) text += ".0";
  return text;
}

// The decimal with the fewest digits that rounds to this 16-bit float.
template <typename T>
std::string ShortestHalf(T value) {
  constexpr double kLimit = 1e3;
  constexpr int kEnoughDigits = 6;
  const float exact = value;
  if (!std::isfinite(exact)) return Shortest(exact, kLimit);
  for (int digits = 1; digits < kEnoughDigits; ++digits) {
    char buffer[32];
    std::snprintf(buffer, sizeof(buffer), "%.*e", digits - 1, static_cast<double>(exact));
    const double decimal = std::strtod(buffer, nullptr);
    if (T(static_cast<float>(decimal)).bits == value.bits) return Shortest(decimal, kLimit);
  }
  return Shortest(exact, kLimit);
}

}  // namespace

std::string NumberText(bool value) { return value ? "True" : "False"; }
std::string NumberText(int64_t value) { return absl::StrCat(value); }
std::string NumberText(uint64_t value) { return absl::StrCat(value); }
std::string NumberText(float value) { return Shortest(value, 1e6); }
std::string NumberText(double value) { return Shortest(value, 1e16); }
std::string NumberText(Float16 value) { return ShortestHalf(value); }
std::string NumberText(BFloat16 value) { return ShortestHalf(value); }

std::optional<double> ParseDouble(const std::string& text) {
  double value;
  if (!absl::SimpleAtod(text, &value)) return std::nullopt;
  return value;
}

std::optional<float> ParseFloat(const std::string& text) {
  float value;
  if (!absl::SimpleAtof(text, &value)) return std::nullopt;
  return value;
}

template <typename T>
std::optional<T> ParseInteger(const std::string& text) {
  T value;
  if (absl::SimpleAtoi(text, &value)) return value;
  const std::optional<double> number = ParseDouble(text);
  if (!number.has_value()) return std::nullopt;
  return Convert<T>(*number);
}
template std::optional<int64_t> ParseInteger(const std::string& text);
template std::optional<uint64_t> ParseInteger(const std::string& text);

std::optional<bool> ParseBool(const std::string& text) {
  const absl::string_view word = absl::StripAsciiWhitespace(text);
  if (absl::EqualsIgnoreCase(word, "true")) return true;
  if (absl::EqualsIgnoreCase(word, "false")) return false;
  const std::optional<double> number = ParseDouble(text);
  if (!number.has_value()) return std::nullopt;
  return *number != 0;
}

}  // namespace onward
