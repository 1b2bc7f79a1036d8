// SPDX-License-Identifier: Apache-2.0
#include "data/csv.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/status.h"

namespace onward {
namespace {

char GuessSeparator(absl::string_view text) {
  int64_t commas = 0, semicolons = 0, tabs = 0;
  bool quoted = false;
  for (char c : text) {
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '\n') break;
    commas += c == ',';
    semicolons += c == ';';
    tabs += c == '\t';
  }
  if (semicolons > commas && semicolons >= tabs) return ';';
  return tabs > commas ? '\t' : ',';
}

}  // namespace

CsvText::CsvText(absl::string_view text) : text_(text) {
  absl::ConsumePrefix(&text_, "\xef\xbb\xbf");
  separator_ = GuessSeparator(text_);
}

void CsvText::Rewind() {
  at_ = 0;
  line_ = 1;
}

// at_ is behind the opening quote; leaves it behind the closing one.
absl::Status CsvText::ReadQuoted(CsvRow* row) {
  const int64_t opened = line_;
  std::string& field = row->unquoted.emplace_back();
  while (at_ < text_.size()) {
    const char c = text_[at_++];
    if (c == '"') {
      if (at_ >= text_.size() || text_[at_] != '"') {
        row->fields.push_back(field);
        return absl::OkStatus();
      }
      ++at_;
    }
    line_ += c == '\n';
    field.push_back(c);
  }
  return absl::InvalidArgumentError(absl::StrCat("line ", opened, ": a quote is not closed"));
}

absl::StatusOr<bool> CsvText::Next(CsvRow* row) {
  do {
    while (at_ < text_.size() && (text_[at_] == '\n' || text_[at_] == '\r')) {
      line_ += text_[at_] == '\n';
      ++at_;
    }
    if (at_ >= text_.size()) return false;
    ONWARD_RETURN_IF_ERROR(ReadRow(row));
  } while (row->fields.size() == 1 && row->fields[0].empty() && row->unquoted.empty());
  return true;
}

absl::Status CsvText::ReadRow(CsvRow* row) {
  row->fields.clear();
  row->unquoted.clear();
  row->line = line_;
  while (true) {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    if (at_ < text_.size() && text_[at_] == '"') {
      ++at_;
      ONWARD_RETURN_IF_ERROR(ReadQuoted(row));
      while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    } else {
      const char stops[] = {separator_, '\n', '\r'};
      const size_t end =
          std::min(text_.find_first_of(absl::string_view(stops, 3), at_), text_.size());
      row->fields.push_back(absl::StripAsciiWhitespace(text_.substr(at_, end - at_)));
      at_ = end;
    }
    if (at_ >= text_.size() || text_[at_] == '\n' || text_[at_] == '\r') return absl::OkStatus();
    if (text_[at_] != separator_) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", line_, ": text follows a closing quote"));
    }
    ++at_;
  }
}

std::optional<double> CsvNumber(absl::string_view field) {
  double v = 0;
  if (!absl::SimpleAtod(field, &v) || !std::isfinite(v)) return std::nullopt;
  return v;
}

bool IsWholeNumber(absl::string_view field) {
  if (!absl::ConsumePrefix(&field, "-")) absl::ConsumePrefix(&field, "+");
  return !field.empty() && field.size() <= 18 &&
         std::all_of(field.begin(), field.end(), [](char c) { return absl::ascii_isdigit(c); });
}

bool IsMissing(absl::string_view field) {
  field = absl::StripAsciiWhitespace(field);
  for (absl::string_view word : {"", "?", "NA", "N/A", "NaN", "null", "none"}) {
    if (absl::EqualsIgnoreCase(field, word)) return true;
  }
  return false;
}

}  // namespace onward
