// SPDX-License-Identifier: Apache-2.0
#include "data/tables/table.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/spec.h"
#include "core/base/status.h"
#include "data/tables/csv.h"
#include "data/tables/findings.h"
#include "data/tables/json_lines.h"

namespace onward {
namespace {

constexpr int64_t kTablePiece = int64_t{1} << 22;  // bytes read at a time
constexpr int64_t kLongestRow = int64_t{1} << 28;  // in bytes
constexpr size_t kMostNamedColumns = 40;

// Appends the bytes from `begin` on, `count` of them or what is left.
absl::Status Append(const StoredBytes& file, int64_t begin, int64_t count, std::string* out) {
  count = std::min(count, static_cast<int64_t>(file.size()) - begin);
  if (count <= 0) return absl::OkStatus();
  const size_t before = out->size();
  out->resize(before + static_cast<size_t>(count));
  return file.Read(static_cast<uint64_t>(begin), static_cast<size_t>(count), out->data() + before);
}

// The rows of a file from the first on.
class RowReader {
 public:
  RowReader(const StoredBytes& file, const RowFormat& format, int64_t begin = 0, int64_t line = 1)
      : file_(file), format_(format), begin_(begin), line_(line) {}

  // False at the end.
  absl::StatusOr<bool> Next(TableRow* row) {
    while (true) {
      const absl::string_view left = absl::string_view(piece_).substr(used_);
      const bool last =
          begin_ + static_cast<int64_t>(piece_.size()) >= static_cast<int64_t>(file_.size());
      auto span = format_.Take(left, last, row);
      if (!span.ok())
        return Annotate(span.status(), absl::StrCat("line ", line_ + LinesBefore(left)));
      if (*span) {
        at_ = begin_ + static_cast<int64_t>(used_ + (*span)->begin);
        line_ += (*span)->lines_before;
        row->line = line_;
        line_ += (*span)->lines;
        used_ += (*span)->end;
        return true;
      }
      if (last) return false;
      ONWARD_RETURN_IF_ERROR(More());
    }
  }
  // Where the row that was read last begins and ends.
  int64_t at() const { return at_; }
  int64_t end() const { return begin_ + static_cast<int64_t>(used_); }

 private:
  absl::Status More() {
    piece_.erase(0, used_);
    begin_ += static_cast<int64_t>(used_);
    used_ = 0;
    if (static_cast<int64_t>(piece_.size()) >= kLongestRow) {
      return absl::InvalidArgumentError(absl::StrCat("line ", line_, ": the row takes more than ",
                                                     kLongestRow, " bytes; is a quote open?"));
    }
    // Rows longer than a piece are met with ever larger ones.
    const int64_t more = std::max(kTablePiece, static_cast<int64_t>(piece_.size()));
    return Append(file_, begin_ + static_cast<int64_t>(piece_.size()), more, &piece_);
  }

  const StoredBytes& file_;
  const RowFormat& format_;
  std::string piece_;
  size_t used_ = 0;
  int64_t begin_, line_, at_ = 0;
};

// Rows with another number of cells than the first that was looked at.
class OddRows {
 public:
  void Look(const TableRow& row) {
    if (rows_++ == 0) expected_ = row.cells.size();
    if (row.cells.size() == expected_) return;
    ++count_;
    if (odd_.size() < Findings::kMostKept) odd_.push_back({rows_, row.line, row.cells.size()});
  }
  // `headers` rows come before the first that counts.
  absl::Status status(int64_t headers) const {
    Findings findings;
    for (const Odd& odd : odd_) {
      findings.Add(absl::StrCat("row ", odd.row - headers, " (line ", odd.line, ") has ", odd.cells,
                                " fields, expected ", expected_));
    }
    findings.AddUntold(count_ - static_cast<int64_t>(odd_.size()));
    return findings.status();
  }

 private:
  struct Odd {
    int64_t row, line;
    size_t cells;
  };
  std::vector<Odd> odd_;
  int64_t count_ = 0, rows_ = 0;
  size_t expected_ = 0;
};

// What other programs write where a table is expected.
absl::Status CheckIsText(absl::string_view start) {
  constexpr std::pair<absl::string_view, absl::string_view> kOthers[] = {
      {"PK\x03\x04", "a zip archive or an Excel workbook; save the sheet as CSV"},
      {"\xd0\xcf\x11\xe0", "an Excel workbook; save the sheet as CSV"},
      {"PAR1", "a Parquet file; write it as CSV (pandas: read_parquet, then to_csv(index=False))"},
      {"\x93NUMPY", "a NumPy array, which npy: reads"},
      {"\xff\xfe", "UTF-16; convert it: iconv -f UTF-16 -t UTF-8"},
      {"\xfe\xff", "UTF-16; convert it: iconv -f UTF-16 -t UTF-8"},
  };
  for (const auto& [begin, what] : kOthers) {
    if (absl::StartsWith(start, begin)) {
      return absl::InvalidArgumentError(absl::StrCat("is no table of text but ", what));
    }
  }
  if (absl::StrContains(start, '\0')) {
    return absl::InvalidArgumentError("holds zero bytes, so it is no table of text");
  }
  return absl::OkStatus();
}

bool HoldsWord(const Cell& cell) { return !NumberIn(cell) && !IsMissing(cell.text); }

// scikit-learn's tables begin with "examples,features,class,class,...".
bool IsScikitHeader(const TableRow& first, size_t columns, int64_t rows) {
  return first.cells.size() >= 3 && first.cells[0].text == absl::StrCat(rows) &&
         first.cells[1].text == absl::StrCat(columns - 1) &&
         std::all_of(first.cells.begin() + 2, first.cells.end(),
                     [](const Cell& c) { return !NumberIn(c); });
}

// A header has a word where the row below has a number, or a name that is expected.
bool IsHeader(const TableRow& first, const TableRow& second, const OpenTableOptions& options) {
  if (options.header) return *options.header;
  for (size_t i = 0; i < first.cells.size(); ++i) {
    if (!HoldsWord(first.cells[i])) continue;
    const auto& names = options.names;
    if (std::find(names.begin(), names.end(), first.cells[i].text) != names.end()) return true;
    if (i < second.cells.size() && NumberIn(second.cells[i])) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Table>> Table::Open(const std::string& path,
                                                         const OpenTableOptions& options) {
  std::shared_ptr<Table> table(new Table);
  ONWARD_ASSIGN_OR_RETURN(table->file_, StoredBytes::OpenPlainOrGzip(path));
  std::string start;
  ONWARD_RETURN_IF_ERROR(Append(table->file_, 0, kTablePiece, &start));
  if (const absl::Status text = CheckIsText(start); !text.ok()) return Annotate(text, path);
  if (options.file == TableFile::kCsv) {
    table->separator_ = GuessSeparator(start);
    table->format_ = std::make_unique<CsvFormat>(table->separator_);
  } else {
    table->format_ = std::make_unique<JsonLinesFormat>();
  }
  const absl::Status indexed = table->Index(options);
  if (!indexed.ok()) return Annotate(indexed, path);
  return table;
}

absl::Status Table::Index(const OpenTableOptions& options) {
  std::string start;
  ONWARD_RETURN_IF_ERROR(Append(file_, 0, static_cast<int64_t>(kUtf8Mark.size()), &start));
  RowReader reader(file_, *format_,
                   start == kUtf8Mark ? static_cast<int64_t>(kUtf8Mark.size()) : 0);
  const bool keyed = options.file == TableFile::kJsonLines;
  TableRow row;
  int64_t end = 0;
  OddRows unlike_first, unlike_second;
  DecimalEvidence decimals;
  while (true) {
    ONWARD_ASSIGN_OR_RETURN(const bool more, reader.Next(&row));
    if (!more) break;
    begins_.push_back(reader.at());
    end = reader.end();
    if (begins_.size() == 1) first_line_ = row.line;
    if (keyed) {
      Learn(row);
      continue;
    }
    if (separator_ != ',') decimals.Look(row);
    unlike_first.Look(row);
    if (begins_.size() > 1) unlike_second.Look(row);
  }
  if (begins_.empty()) return absl::InvalidArgumentError("the file is empty");
  begins_.push_back(end);
  if (keyed) return absl::OkStatus();
  ONWARD_RETURN_IF_ERROR(ChooseDecimals(options, decimals));
  ONWARD_RETURN_IF_ERROR(TakeHeader(options));
  return class_names_.empty() ? unlike_first.status(names_.empty() ? 0 : 1)
                              : unlike_second.status(0);
}

absl::Status Table::ChooseDecimals(const OpenTableOptions& options,
                                   const DecimalEvidence& evidence) {
  if (separator_ == ',' && options.decimal_comma.value_or(false)) {
    return absl::InvalidArgumentError(
        "decimal=comma: the file has commas between its fields, so they cannot be in numbers");
  }
  if (options.decimal_comma) {
    decimal_comma_ = *options.decimal_comma;
  } else {
    ONWARD_ASSIGN_OR_RETURN(decimal_comma_, evidence.Commas(options.known_decimal_comma));
  }
  format_ = std::make_unique<CsvFormat>(separator_, decimal_comma_);
  return absl::OkStatus();
}

absl::Status Table::TakeHeader(const OpenTableOptions& options) {
  TableRow first, second;
  std::string first_bytes, second_bytes;
  ONWARD_RETURN_IF_ERROR(Read(0, &first_bytes, &first));
  if (rows() > 1) ONWARD_RETURN_IF_ERROR(Read(1, &second_bytes, &second));
  columns_ = first.cells.size();
  if (rows() > 1 && !options.header && IsScikitHeader(first, second.cells.size(), rows() - 1)) {
    columns_ = second.cells.size();
    for (size_t i = 2; i < first.cells.size(); ++i) {
      class_names_.emplace_back(first.cells[i].text);
    }
  } else if (IsHeader(first, second, options)) {
    for (const Cell& cell : first.cells) names_.emplace_back(cell.text);
  } else {
    return absl::OkStatus();
  }
  begins_.erase(begins_.begin());
  // Line ends of the header itself count too.
  first_line_ += std::count(first_bytes.begin(), first_bytes.end(), '\n');
  return absl::OkStatus();
}

void Table::Learn(const TableRow& row) {
  for (const std::string& key : row.keys) {
    if (places_.emplace(key, names_.size()).second) names_.push_back(key);
  }
  columns_ = names_.size();
}

void Table::Arrange(TableRow* row) const {
  if (places_.empty()) return;
  std::vector<Cell> cells(columns_);
  for (size_t i = 0; i < row->keys.size(); ++i) {
    const auto place = places_.find(row->keys[i]);
    if (place != places_.end()) cells[place->second] = row->cells[i];
  }
  row->cells = std::move(cells);
}

absl::Status Table::ForEach(
    const std::function<absl::Status(int64_t, const TableRow&)>& visit) const {
  RowReader reader(file_, *format_, begins_[0], first_line_);
  TableRow row;
  for (int64_t number = 0; number < rows(); ++number) {
    auto more = reader.Next(&row);
    if (!more.ok()) return Annotate(more.status(), path());
    if (!*more) return absl::DataLossError(absl::StrCat(path(), ": was changed meanwhile"));
    Arrange(&row);
    ONWARD_RETURN_IF_ERROR(visit(number, row));
  }
  return absl::OkStatus();
}

absl::Status Table::Read(int64_t row, std::string* buffer, TableRow* out) const {
  buffer->clear();
  ONWARD_RETURN_IF_ERROR(Append(file_, begins_[row], begins_[row + 1] - begins_[row], buffer));
  auto span = format_->Take(*buffer, /*last=*/true, out);
  if (!span.ok()) return Annotate(span.status(), absl::StrCat(path(), ": row ", row + 1));
  if (!*span) return absl::DataLossError(absl::StrCat(path(), ": was changed meanwhile"));
  Arrange(out);
  return absl::OkStatus();
}

std::string Table::Place(int64_t row, int64_t line) const {
  if (line == 0) {
    line = first_line_;
    std::string piece;
    for (int64_t at = begins_[0]; at < begins_[row]; at += kTablePiece) {
      piece.clear();
      if (!Append(file_, at, std::min(kTablePiece, begins_[row] - at), &piece).ok()) break;
      line += std::count(piece.begin(), piece.end(), '\n');
    }
  }
  return absl::StrCat("row ", row + 1, " (line ", line, ")");
}

std::string Table::ColumnName(size_t c) const {
  const bool named = c < names_.size() && !names_[c].empty();
  return named ? absl::StrCat("column '", names_[c], "'") : absl::StrCat("column ", c);
}

std::string Table::ShortName(size_t c) const {
  return c < names_.size() && !names_[c].empty() ? names_[c] : absl::StrCat(c);
}

std::string Table::ColumnList() const {
  if (names_.empty()) return absl::StrCat("columns 0 to ", columns_ - 1, ", without names");
  if (names_.size() > kMostNamedColumns) {
    return absl::StrCat(names_.size(), " columns, the last is '", names_.back(), "'");
  }
  return absl::StrCat("columns ", absl::StrJoin(names_, ", "));
}

absl::StatusOr<size_t> Table::Find(const std::string& which) const {
  const auto it = std::find(names_.begin(), names_.end(), which);
  if (it != names_.end()) {
    if (std::find(it + 1, names_.end(), which) != names_.end()) {
      return absl::InvalidArgumentError(absl::StrCat("two columns are named '", which, "'"));
    }
    return static_cast<size_t>(it - names_.begin());
  }
  const int64_t columns = static_cast<int64_t>(columns_);
  int64_t index = 0;
  if (absl::SimpleAtoi(which, &index) && index >= -columns && index < columns) {
    return static_cast<size_t>(index < 0 ? index + columns : index);
  }
  const std::string near = Nearest(which, names_);
  return absl::InvalidArgumentError(
      absl::StrCat("no column '", which, "'; the file has ", ColumnList(),
                   near.empty() ? "" : absl::StrCat("; did you mean '", near, "'?")));
}

}  // namespace onward
