// SPDX-License-Identifier: Apache-2.0
#include "core/base/spec.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/status.h"

namespace onward {
namespace {

// Optimal string alignment distance: Levenshtein, and two neighbours swapped
// count as one mistake.
int EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<std::vector<int>> d(a.size() + 1, std::vector<int>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = static_cast<int>(i + j);
        continue;
      }
      d[i][j] =
          std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

bool InRange(const NumberOption& option, double value) {
  if (!std::isfinite(value)) return false;
  if (value < option.low || (option.low_open && value == option.low)) return false;
  if (value > option.high || (option.high_open && value == option.high)) return false;
  // From 2^53 on a double no longer tells integers apart.
  return !option.integer || (value == std::floor(value) && std::abs(value) < 0x1p53);
}

const NumberOption* FindOption(absl::Span<const NumberOption> options, absl::string_view name) {
  for (const NumberOption& option : options) {
    if (option.name == name) return &option;
  }
  return nullptr;
}

absl::Status UnknownOption(absl::string_view kind, absl::string_view name,
                           absl::Span<const NumberOption> options) {
  std::vector<std::string> names;
  for (const NumberOption& option : options) names.emplace_back(option.name);
  return UnknownWord(absl::StrCat("option of ", kind), name, names);
}

}  // namespace

absl::StatusOr<SpecText> ParseSpecText(absl::string_view text) {
  SpecText spec;
  const size_t colon = text.find(':');
  spec.name = std::string(absl::StripAsciiWhitespace(text.substr(0, colon)));
  if (spec.name.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected NAME or NAME:OPTION=VALUE,..., got '", text, "'"));
  }
  if (colon == absl::string_view::npos) return spec;
  for (absl::string_view part : absl::StrSplit(text.substr(colon + 1), ',')) {
    const size_t equals = part.find('=');
    const std::string key(absl::StripAsciiWhitespace(part.substr(0, equals)));
    if (equals == absl::string_view::npos || key.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("expected OPTION=VALUE after '", spec.name, ":', got '", part, "'"));
    }
    const std::string value(absl::StripAsciiWhitespace(part.substr(equals + 1)));
    if (!spec.options.emplace(key, value).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("option '", key, "' is given twice in '", text, "'"));
    }
  }
  return spec;
}

std::string SpecToText(const SpecText& spec) {
  if (spec.options.empty()) return spec.name;
  return absl::StrCat(spec.name, ":", absl::StrJoin(spec.options, ",", absl::PairFormatter("=")));
}

std::string ExactText(double value) {
  char buffer[40];
  const auto result = std::to_chars(buffer, buffer + sizeof(buffer), value);
  return std::string(buffer, result.ptr);
}

std::map<std::string, std::string> NumberTexts(const std::map<std::string, double>& given,
                                               absl::Span<const NumberOption> options) {
  std::map<std::string, std::string> texts;
  for (const auto& [name, value] : given) {
    const NumberOption* option = FindOption(options, name);
    const bool word = option != nullptr && !option->words.empty();
    texts[name] = word ? option->Text(value) : ExactText(value);
  }
  return texts;
}

std::string NumberOption::Text(double value) const {
  if (!words.empty()) return std::string(words.at(static_cast<size_t>(value)));
  return absl::StrCat(value);
}

OptionDescription Describe(const NumberOption& option) {
  return {std::string(option.name), option.Text(option.otherwise),
          option.is_switch() ? "0 or 1" : option.Expects()};
}

absl::Status SpreadLists(absl::string_view kind, absl::Span<const ListOption> lists,
                         std::map<std::string, std::string>* given) {
  for (const ListOption& list : lists) {
    auto it = given->find(list.name);
    if (it == given->end()) continue;
    const std::vector<std::string> values = absl::StrSplit(it->second, '/');
    if (values.size() != list.parts.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat(kind, ": '", list.name, "' has to be ", list.parts.size(),
                       " numbers with '/' between them, got '", it->second, "'"));
    }
    given->erase(it);
    for (size_t i = 0; i < values.size(); ++i) {
      if (!given->emplace(list.parts[i], values[i]).second) {
        return absl::InvalidArgumentError(absl::StrCat(kind, ": '", list.name, "' gives '",
                                                       list.parts[i], "', which is given too"));
      }
    }
  }
  return absl::OkStatus();
}

std::string NumberOption::Expects() const {
  if (!words.empty()) return absl::StrCat("one of ", absl::StrJoin(words, ", "));
  const std::string kind = integer ? "an integer" : "a number";
  const bool has_low = std::isfinite(low), has_high = std::isfinite(high);
  const auto text = [&](double bound) {
    return integer ? absl::StrCat(static_cast<int64_t>(bound)) : absl::StrCat(bound);
  };
  if (has_low && has_high) {
    return absl::StrCat(kind, " in ", low_open ? "(" : "[", text(low), ", ", text(high),
                        high_open ? ")" : "]");
  }
  if (has_low) return absl::StrCat(kind, low_open ? " > " : " >= ", text(low));
  if (has_high) return absl::StrCat(kind, high_open ? " < " : " <= ", text(high));
  return integer ? kind : "a finite number";
}

absl::Status CheckNumber(const NumberOption& option, double value) {
  // Integers never become attributes as floats, and may exceed float's 24 bits.
  if (InRange(option, value) && (option.integer || InRange(option, static_cast<float>(value)))) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", option.name, "' has to be ", option.Expects(), ", got ", value));
}

absl::StatusOr<double> ParseNumber(const NumberOption& option, absl::string_view text) {
  if (option.is_switch() && text == "true") return 1.0;
  if (option.is_switch() && text == "false") return 0.0;
  for (size_t i = 0; i < option.words.size(); ++i) {
    if (option.words[i] == text) return static_cast<double>(i);
  }
  double value = 0;
  if (!option.words.empty() || !absl::SimpleAtod(text, &value)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", option.name, "' has to be ", option.Expects(), ", got '", text, "'"));
  }
  ONWARD_RETURN_IF_ERROR(CheckNumber(option, value));
  return value;
}

absl::StatusOr<std::map<std::string, double>> ParseNumbers(
    absl::string_view kind, const std::map<std::string, std::string>& given,
    absl::Span<const NumberOption> options) {
  std::map<std::string, double> values;
  for (const auto& [name, text] : given) {
    const NumberOption* option = FindOption(options, name);
    if (option == nullptr) return UnknownOption(kind, name, options);
    const absl::StatusOr<double> value = ParseNumber(*option, text);
    if (!value.ok()) return Annotate(value.status(), kind);
    values[name] = *value;
  }
  return values;
}

absl::Status CheckNumbers(absl::string_view kind, const std::map<std::string, double>& given,
                          absl::Span<const NumberOption> options) {
  for (const auto& [name, value] : given) {
    const NumberOption* option = FindOption(options, name);
    if (option == nullptr) return UnknownOption(kind, name, options);
    ONWARD_RETURN_IF_ERROR(Annotate(CheckNumber(*option, value), kind));
  }
  return absl::OkStatus();
}

double ValueOf(const std::map<std::string, double>& given, absl::Span<const NumberOption> options,
               absl::string_view name) {
  if (auto it = given.find(std::string(name)); it != given.end()) return it->second;
  const NumberOption* option = FindOption(options, name);
  return option == nullptr ? 0 : option->otherwise;
}

std::string Nearest(absl::string_view word, absl::Span<const std::string> candidates) {
  // A third of the letters wrong is still a typo; more is another word.
  int best = std::max<int>(1, static_cast<int>(word.size()) / 3) + 1;
  std::string nearest;
  for (const std::string& candidate : candidates) {
    const int distance = EditDistance(word, candidate);
    if (distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

absl::Status UnknownWord(absl::string_view kind, absl::string_view word,
                         absl::Span<const std::string> candidates) {
  const std::string nearest = Nearest(word, candidates);
  std::string message = absl::StrCat("unknown ", kind, " '", word, "'");
  if (!nearest.empty()) absl::StrAppend(&message, ": did you mean '", nearest, "'?");
  absl::StrAppend(
      &message, nearest.empty() ? "; " : " ",
      candidates.empty() ? "there are none" : "valid: ", absl::StrJoin(candidates, ", "));
  return absl::InvalidArgumentError(message);
}

}  // namespace onward
