// SPDX-License-Identifier: Apache-2.0
#include "data/tables/fit.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/base/status.h"
#include "data/text/unicode.h"

namespace onward {
namespace {

// Whole-number labels up to this count as classes unless told otherwise.
constexpr double kLargestGuessedClass = 9999;
constexpr size_t kMostListed = 8;

struct Choices {
  MissingRule missing;
  bool standardise_inputs = false, standardise_target = false;
};

Choices Choose(const TableOptions& options, bool made_for_data) {
  using Kind = MissingRule::Kind;
  return {.missing =
              options.missing.value_or(MissingRule{made_for_data ? Kind::kMedian : Kind::kRefuse}),
          .standardise_inputs = options.standardise_inputs.value_or(made_for_data),
          .standardise_target = options.standardise_target.value_or(made_for_data)};
}

std::optional<double> FillOf(const MissingRule& rule, const NumberSummary& numbers,
                             bool takes_number) {
  if (!rule.fills()) return std::nullopt;
  if (rule.kind == MissingRule::Kind::kNumber && takes_number) return rule.number;
  return rule.kind == MissingRule::Kind::kMean ? numbers.mean() : numbers.median();
}

void FitText(const ColumnSummary& summary, const TableOptions& options, const MissingRule& missing,
             ColumnPreparation* column) {
  column->form = options.text;
  const int64_t rare = options.rare.value_or(1);
  column->categories = summary.Categories(options.most_categories, rare, &column->other);
  column->other |= rare > 1;
  if (!missing.fills()) return;
  if (summary.missing() > 0) {
    column->categories.insert(column->categories.begin(), "");
  } else if (const std::string most = summary.MostFrequent();
             std::count(column->categories.begin(), column->categories.end(), most) > 0) {
    column->fill_text = most;
  }
}

ColumnPreparation FitColumn(const ColumnSummary& summary, const TableOptions& options,
                            const Choices& choices, DateOrder order) {
  ColumnPreparation column;
  column.kind = summary.kind();
  if (column.kind == ColumnKind::kText) {
    FitText(summary, options, choices.missing, &column);
    return column;
  }
  if (column.kind == ColumnKind::kNumber) {
    column.fill = FillOf(choices.missing, summary.numbers(), /*takes_number=*/true);
    column.scale = {choices.standardise_inputs ? summary.numbers().standard() : Standard()};
    return column;
  }
  const DateSummary& dates = summary.dates(order);
  column.times = dates.times;
  column.fill = FillOf(choices.missing, dates.seconds, /*takes_number=*/false);
  if (column.fill) column.fill = std::round(*column.fill);
  for (int64_t i = 0; i < column.width(); ++i) {
    column.scale.push_back(choices.standardise_inputs ? dates.parts[i].standard() : Standard());
  }
  return column;
}

// --- What was chosen, in words

std::string Listed(const std::vector<std::string>& names) {
  const size_t count = std::min(names.size(), kMostListed);
  std::string text =
      absl::StrJoin(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(count), ", ");
  if (names.size() > count) absl::StrAppend(&text, " and ", names.size() - count, " more");
  return text;
}

std::string HowFilled(const MissingRule& rule) {
  switch (rule.kind) {
    case MissingRule::Kind::kMean: return "the mean";
    case MissingRule::Kind::kMedian: return "the median";
    default: return absl::StrCat(rule.number);
  }
}

class Note {
 public:
  Note(const Table& table, const Choices& choices) : table_(table), choices_(choices) {}

  void Took(size_t place, const ColumnPreparation& column, const ColumnSummary& summary) {
    if (column.kind == ColumnKind::kText) {
      const int64_t names = column.width() - (column.other ? 1 : 0);
      texts_.push_back(absl::StrCat(table_.ShortName(place), " (", names,
                                    column.other ? " and other" : "", ")"));
      codes_ |= column.form == TextForm::kCodes;
    } else {
      ++(column.kind == ColumnKind::kNumber ? numbers_ : dates_);
      ordered_ |= column.kind == ColumnKind::kDate && summary.needs_order();
    }
    if (summary.missing() > 0 && choices_.missing.fills()) {
      filled_.push_back(absl::StrCat(table_.ShortName(place), " (", summary.missing(), ")"));
    }
  }
  void LeftOut(size_t place, absl::string_view why) {
    left_out_.push_back(absl::StrCat(table_.ShortName(place), " (", why, ")"));
  }
  void CountsRows(size_t place) { counting_.push_back(table_.ShortName(place)); }
  std::string LeftOutText() const {
    return left_out_.empty() ? "" : absl::StrCat("left out: ", Listed(left_out_));
  }

  std::string Text(const TablePreparation& p) const {
    std::vector<std::string> parts;
    const char* scaled = choices_.standardise_inputs ? " standardised" : " as they are";
    if (numbers_ > 0) {
      parts.push_back(absl::StrCat(Count(numbers_, "number"),
                                   p.decimal_comma ? " with decimal commas" : "", scaled));
    }
    if (dates_ > 0) {
      parts.push_back(
          absl::StrCat(Count(dates_, "date"), ordered_ ? First(p.dates) : "", " in parts", scaled));
    }
    if (!texts_.empty()) {
      parts.push_back(absl::StrCat("text ", codes_ ? "as codes: " : "one-hot: ", Listed(texts_)));
    }
    if (!filled_.empty()) {
      parts.push_back(absl::StrCat("empty fields filled with ", HowFilled(choices_.missing),
                                   texts_.empty() ? "" : " or a name of their own", ": ",
                                   Listed(filled_)));
    }
    if (!left_out_.empty()) parts.push_back(LeftOutText());
    if (!counting_.empty()) {
      parts.push_back(absl::StrCat(Listed(counting_), " only ",
                                   counting_.size() == 1 ? "counts" : "count",
                                   " the rows (drop=", absl::StrJoin(counting_, ","), "?)"));
    }
    if (p.target.changes()) {
      parts.push_back(absl::StrFormat("label standardised (mean %.6g, deviation %.6g)",
                                      p.target.mean, p.target.deviation));
    }
    return absl::StrCat(table_.path(), ": ", absl::StrJoin(parts, "; "));
  }

 private:
  static std::string Count(int64_t n, const char* what) {
    return absl::StrCat(n, " ", what, n == 1 ? "" : "s");
  }
  static const char* First(DateOrder order) {
    return order == DateOrder::kDayFirst ? " (day/month/year)" : " (month/day/year)";
  }

  const Table& table_;
  const Choices& choices_;
  int64_t numbers_ = 0, dates_ = 0;
  bool codes_ = false, ordered_ = false;
  std::vector<std::string> texts_, filled_, left_out_, counting_;
};

// What a model keeps of a column is found by its name.
absl::Status CheckOnlyOne(const Table& table, size_t place, const TablePreparation& p) {
  if (table.names().empty()) return absl::OkStatus();
  const std::string& name = table.names()[place];
  const bool there = std::any_of(p.columns.begin(), p.columns.end(),
                                 [&](const ColumnPreparation& c) { return c.name == name; });
  if (!there && name != p.label) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      table.path(), ": two columns are named '", name,
      "': give one another name, or leave one out by its number, counted from 0: drop=", place));
}

void PlaceColumn(const Table& table, size_t place, ColumnPreparation* column) {
  if (table.names().empty()) {
    column->place = static_cast<int64_t>(place);
  } else {
    column->name = table.names()[place];
  }
}

}  // namespace

void LabelSummary::Add(const Cell& cell) {
  if (IsMissing(cell.text)) {
    ++missing_;
    return;
  }
  const std::optional<double> number = NumberIn(cell);
  if (number) {
    numbers_.Add(*number);
    lowest_ = std::min(lowest_, *number);
    highest_ = std::max(highest_, *number);
  }
  numeric_ &= number.has_value();
  whole_ &= number.has_value() && IsWholeNumber(cell.text);
  if (uncounted_) return;
  words_.emplace(cell.text);
  uncounted_ = words_.size() > kMostTextClasses;
}

LabelTask LabelSummary::Guess(Task task) const {
  if (!numeric_) return LabelTask::kClasses;
  if (task != Task::kAuto) {
    return task == Task::kClasses ? LabelTask::kClasses : LabelTask::kNumber;
  }
  const bool classes = whole_ && lowest_ >= 0 && highest_ <= kLargestGuessedClass &&
                       highest_ < static_cast<double>(numbers_.count());
  return classes ? LabelTask::kClasses : LabelTask::kNumber;
}

absl::StatusOr<std::vector<std::string>> LabelSummary::Words() const {
  if (uncounted_) {
    return absl::InvalidArgumentError(absl::StrCat("the labels are more than ", kMostTextClasses,
                                                   " different words; are they the labels?"));
  }
  std::vector<std::string> words(words_.begin(), words_.end());
  std::sort(words.begin(), words.end());
  return words;
}

absl::StatusOr<TableSummary> Summarise(const Table& table, const TableColumns& columns,
                                       const TableOptions& options, const RowFilter& counts) {
  std::vector<bool> as_text(table.columns(), false);
  for (const std::string& name : options.text_columns) {
    ONWARD_ASSIGN_OR_RETURN(const size_t column, table.Find(name));
    as_text[column] = true;
  }
  TableSummary summary;
  for (size_t c : columns.inputs) summary.inputs.emplace_back(as_text[c]);
  ONWARD_RETURN_IF_ERROR(table.ForEach([&](int64_t number, const TableRow& row) {
    if (counts && !counts(number)) return absl::OkStatus();
    for (size_t i = 0; i < columns.inputs.size(); ++i) {
      summary.inputs[i].Add(row.cells[columns.inputs[i]], number);
    }
    if (columns.label) summary.label.Add(row.cells[*columns.label]);
    return absl::OkStatus();
  }));
  return summary;
}

absl::Status CheckUtf8(const Table& table, size_t column, absl::string_view text) {
  for (absl::string_view rest = text; !rest.empty();) {
    const size_t bytes = FirstCharacter(rest).bytes;
    if (bytes == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          table.path(), ": column ", column + 1, " has text that is no UTF-8 ('",
          absl::CHexEscape(text), "'); convert the file: iconv -f WINDOWS-1252 -t UTF-8 ",
          table.path(), " > utf8.csv"));
    }
    rest.remove_prefix(bytes);
  }
  return absl::OkStatus();
}

TablePreparation FitLabel(const Table& table, std::optional<size_t> label,
                          const LabelSummary& summary, const DataOptions& options,
                          bool made_for_data) {
  TablePreparation p;
  p.decimal_comma = table.decimal_comma();
  const bool named = !table.names().empty();
  if (!named) p.file_columns = static_cast<int64_t>(table.columns());
  if (!label) return p;
  if (named) {
    p.label = table.names()[*label];
  } else {
    p.label_place = static_cast<int64_t>(*label);
  }
  p.task = summary.Guess(options.task);
  if (p.task == LabelTask::kNumber && Choose(options.table, made_for_data).standardise_target) {
    p.target = summary.numbers().standard();
  }
  return p;
}

namespace {

// Why a column is no input; "": it is one.
std::string WhyLeftOut(const Table& table, size_t place, const ColumnSummary& column,
                       const DataOptions& options, const std::set<size_t>& kept) {
  if (column.empty()) return "empty";
  if (kept.contains(place)) return "";
  if (column.kind() == ColumnKind::kText && column.is_identifier(options.table.most_categories)) {
    return "almost all different";
  }
  const bool numbers_rows = column.kind() == ColumnKind::kNumber &&
                            column.running().all_different() && !table.names().empty() &&
                            IsNameOfIdentifier(table.names()[place]);
  return numbers_rows
             ? absl::StrCat("a number for each row; keep=", table.ShortName(place), " takes it")
             : "";
}

}  // namespace

absl::StatusOr<FittedTable> FitTable(const Table& table, const TableColumns& columns,
                                     const TableSummary& summary, const DataOptions& options,
                                     bool made_for_data) {
  FittedTable fitted;
  fitted.preparation = FitLabel(table, columns.label, summary.label, options, made_for_data);
  ONWARD_ASSIGN_OR_RETURN(fitted.preparation.dates,
                          FindDateOrder(table, columns, summary, options.table.dates));
  const Choices choices = Choose(options.table, made_for_data);
  std::set<size_t> kept;
  for (const std::string& name : options.table.keep) {
    ONWARD_ASSIGN_OR_RETURN(const size_t place, table.Find(name));
    kept.insert(place);
  }
  Note note(table, choices);
  for (size_t i = 0; i < columns.inputs.size(); ++i) {
    const ColumnSummary& column = summary.inputs[i];
    const size_t place = columns.inputs[i];
    if (const std::string why = WhyLeftOut(table, place, column, options, kept); !why.empty()) {
      note.LeftOut(place, why);
      continue;
    }
    if (column.kind() == ColumnKind::kText && column.uncounted()) {
      return absl::InvalidArgumentError(absl::StrCat(
          table.path(), ": ", table.ColumnName(place),
          " holds too many different names; leave it out with drop=", table.ShortName(place)));
    }
    ColumnPreparation prepared =
        FitColumn(column, options.table, choices, fitted.preparation.dates);
    ONWARD_RETURN_IF_ERROR(CheckUtf8(table, place, table.ShortName(place)));
    for (const std::string& name : prepared.categories) {
      ONWARD_RETURN_IF_ERROR(CheckUtf8(table, place, name));
    }
    ONWARD_RETURN_IF_ERROR(CheckOnlyOne(table, place, fitted.preparation));
    PlaceColumn(table, place, &prepared);
    note.Took(place, prepared, column);
    if (column.kind() == ColumnKind::kNumber && column.running().counts_rows() &&
        columns.inputs.size() > 1 && !kept.contains(place)) {
      note.CountsRows(place);
    }
    fitted.preparation.columns.push_back(std::move(prepared));
    fitted.places.push_back(place);
  }
  if (fitted.places.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(table.path(), ": no column is left as input; ",
                                                   note.LeftOutText(),
                                                   "; keep=NAME takes a column all the same"));
  }
  fitted.note = note.Text(fitted.preparation);
  return fitted;
}

}  // namespace onward
