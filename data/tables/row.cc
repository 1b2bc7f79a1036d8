// SPDX-License-Identifier: Apache-2.0
#include "data/tables/row.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

namespace onward {
namespace {

constexpr const char* kMissing[] = {"", "?", "NA", "N/A", "NaN", "null", "none"};

}  // namespace

int64_t LinesBefore(absl::string_view text) {
  const absl::string_view blank = text.substr(0, text.find_first_not_of(" \t\r\n"));
  return std::count(blank.begin(), blank.end(), '\n');
}

std::optional<double> NumberIn(const Cell& cell) {
  double v = 0;
  if (cell.is_text || !absl::SimpleAtod(cell.text, &v) || !std::isfinite(v)) return std::nullopt;
  return v;
}

bool IsWholeNumber(absl::string_view text) {
  if (!absl::ConsumePrefix(&text, "-")) absl::ConsumePrefix(&text, "+");
  return !text.empty() && text.size() <= 18 &&
         std::all_of(text.begin(), text.end(), [](char c) { return absl::ascii_isdigit(c); });
}

bool IsMissing(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  return std::any_of(std::begin(kMissing), std::end(kMissing),
                     [&](const char* word) { return absl::EqualsIgnoreCase(text, word); });
}

std::vector<std::string> MissingWords() {
  std::vector<std::string> words;
  for (const char* word : kMissing) {
    const std::string plain = word, lower = absl::AsciiStrToLower(plain),
                      upper = absl::AsciiStrToUpper(plain);
    for (const std::string& spelling : {plain, lower, upper}) {
      if (std::find(words.begin(), words.end(), spelling) == words.end()) words.push_back(spelling);
    }
  }
  words.push_back("None");
  return words;
}

}  // namespace onward
