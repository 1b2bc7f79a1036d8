// SPDX-License-Identifier: Apache-2.0
#include "data/tables/decimals.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace onward {
namespace {

constexpr size_t kGroup = 3;  // digits between separators of thousands

// What a mark between digits can be.
enum class MarkUse { kNoNumber, kDecimal, kEither, kThousands };

size_t TakeRun(absl::string_view* text) {
  const size_t digits = std::min(text->find_first_not_of("0123456789"), text->size());
  text->remove_prefix(digits);
  return digits;
}

bool IsExponent(absl::string_view text) {
  if (!absl::ConsumePrefix(&text, "e") && !absl::ConsumePrefix(&text, "E")) return false;
  return IsWholeNumber(text);
}

// Digits, the mark, digits, once or several times, with a sign in front or not; an exponent
// behind a decimal mark.
MarkUse UseOfMark(absl::string_view text, char mark) {
  if (!absl::ConsumePrefix(&text, "-")) absl::ConsumePrefix(&text, "+");
  const bool zero = absl::StartsWith(text, "0");
  const size_t before = TakeRun(&text);
  size_t marks = 0, after = 0;
  bool groups = before >= 1 && before <= kGroup && !zero;
  while (!text.empty() && text[0] == mark) {
    text.remove_prefix(1);
    after = TakeRun(&text);
    groups &= after == kGroup;
    ++marks;
  }
  if (marks == 0 || before + after == 0) return MarkUse::kNoNumber;
  if (marks > 1) return groups && text.empty() ? MarkUse::kThousands : MarkUse::kNoNumber;
  if (!text.empty()) return IsExponent(text) ? MarkUse::kDecimal : MarkUse::kNoNumber;
  return groups ? MarkUse::kEither : MarkUse::kDecimal;
}

}  // namespace

void DecimalEvidence::Look(const TableRow& row) {
  for (const Cell& cell : row.cells) {
    if (cell.text.empty() || absl::ascii_isalpha(cell.text[0])) continue;
    const MarkUse comma = UseOfMark(cell.text, ',');
    commas_ += comma == MarkUse::kDecimal;
    groups_ += comma == MarkUse::kThousands;
    points_ += UseOfMark(cell.text, '.') == MarkUse::kDecimal;
    if (comma != MarkUse::kEither || !open_.empty()) continue;
    open_ = std::string(cell.text);
    open_line_ = row.line;
  }
}

absl::StatusOr<bool> DecimalEvidence::Commas(bool known) const {
  if (points_ > 0 || groups_ > 0) return false;
  if (commas_ > 0 || open_.empty()) return commas_ > 0;
  if (known) return true;
  return absl::InvalidArgumentError(absl::StrCat(
      "line ", open_line_, ": the comma of ", open_,
      " may be a decimal one or separate thousands, and no other number of the file tells: "
      "decimal=comma takes it for a decimal one, decimal=point for no number"));
}

void PointDecimals(TableRow* row) {
  for (Cell& cell : row->cells) {
    const MarkUse comma = UseOfMark(cell.text, ',');
    if (comma == MarkUse::kDecimal || comma == MarkUse::kEither) {
      std::string& pointed = row->made.emplace_back(cell.text);
      std::replace(pointed.begin(), pointed.end(), ',', '.');
      cell.text = pointed;
    } else if (UseOfMark(cell.text, '.') != MarkUse::kNoNumber) {
      cell.is_text = true;
    }
  }
}

}  // namespace onward
