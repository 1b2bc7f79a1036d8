// SPDX-License-Identifier: Apache-2.0
#include "data/tables/csv.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/status.h"
#include "data/tables/decimals.h"

namespace onward {
namespace {

constexpr absl::string_view kSeparators = ",;\t|";

// One row from a position on.
class RowParser {
 public:
  RowParser(absl::string_view text, char separator, TableRow* row)
      : text_(text), separator_(separator), row_(row) {}

  absl::StatusOr<RowSpan> Parse() {
    span_.begin = at_;
    while (true) {
      SkipBlanks();
      if (at_ < text_.size() && text_[at_] == '"') {
        ++at_;
        ONWARD_RETURN_IF_ERROR(Quoted());
        SkipBlanks();
      } else {
        const char stops[] = {separator_, '\n', '\r'};
        const size_t end =
            std::min(text_.find_first_of(absl::string_view(stops, 3), at_), text_.size());
        row_->cells.push_back({absl::StripAsciiWhitespace(text_.substr(at_, end - at_))});
        at_ = end;
      }
      if (at_ >= text_.size() || text_[at_] == '\n' || text_[at_] == '\r') break;
      if (text_[at_] != separator_) {
        return absl::InvalidArgumentError("text follows a closing quote");
      }
      ++at_;
    }
    span_.end = at_;
    return span_;
  }

  void SkipEmptyLines() {
    while (at_ < text_.size() && (text_[at_] == '\n' || text_[at_] == '\r')) {
      span_.lines_before += text_[at_] == '\n';
      ++at_;
    }
  }
  bool done() const { return at_ >= text_.size(); }

 private:
  void SkipBlanks() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  // at_ is behind the opening quote; leaves it behind the closing one.
  absl::Status Quoted() {
    std::string& field = row_->made.emplace_back();
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '"') {
        if (at_ >= text_.size() || text_[at_] != '"') {
          row_->cells.push_back({field});
          return absl::OkStatus();
        }
        ++at_;
      }
      span_.lines += c == '\n';
      field.push_back(c);
    }
    return absl::InvalidArgumentError("a quote is not closed");
  }

  absl::string_view text_;
  char separator_;
  TableRow* row_;
  size_t at_ = 0;
  RowSpan span_;
};

}  // namespace

absl::StatusOr<std::optional<RowSpan>> CsvFormat::Take(absl::string_view text, bool last,
                                                       TableRow* row) const {
  RowParser parser(text, separator_, row);
  while (true) {
    row->cells.clear();
    row->made.clear();
    parser.SkipEmptyLines();
    if (parser.done()) return std::nullopt;
    const auto span = parser.Parse();
    // A row that reaches the end of the piece may go on behind it, quotes that are open too.
    if (parser.done() && !last) return std::nullopt;
    if (!span.ok()) return span.status();
    const bool blank = row->cells.size() == 1 && row->cells[0].text.empty() && row->made.empty();
    if (!blank && decimal_comma_) PointDecimals(row);
    if (!blank) return *span;
    if (parser.done()) return std::nullopt;
  }
}

CsvText::CsvText(absl::string_view text) : text_(text), format_(GuessSeparator(text)) {
  absl::ConsumePrefix(&text_, kUtf8Mark);
}

absl::StatusOr<bool> CsvText::Next(CsvRow* row) {
  auto span = format_.Take(text_, /*last=*/true, &row->row);
  if (!span.ok()) return Annotate(span.status(), absl::StrCat("line ", line_ + LinesBefore(text_)));
  if (!*span) return false;
  line_ += (*span)->lines_before;
  row->line = line_;
  line_ += (*span)->lines;
  text_.remove_prefix((*span)->end);
  row->fields.clear();
  for (const Cell& cell : row->row.cells) row->fields.push_back(cell.text);
  return true;
}

char GuessSeparator(absl::string_view text) {
  std::vector<int64_t> counts(kSeparators.size(), 0);
  bool quoted = false;
  int64_t decimals = 0, others = 0;
  const auto is_digit = [&](size_t i) { return i < text.size() && absl::ascii_isdigit(text[i]); };
  for (size_t i = 0; i < text.size() && (quoted || text[i] != '\n'); ++i) {
    if (text[i] == '"') quoted = !quoted;
    const size_t which = quoted ? absl::string_view::npos : kSeparators.find(text[i]);
    if (which == absl::string_view::npos) continue;
    ++counts[which];
    others += text[i] != ',';
    decimals += text[i] == ',' && i > 0 && is_digit(i - 1) && is_digit(i + 1);
  }
  if (others > 0) counts[kSeparators.find(',')] -= decimals;
  return kSeparators[static_cast<size_t>(std::max_element(counts.begin(), counts.end()) -
                                         counts.begin())];
}

}  // namespace onward
