// SPDX-License-Identifier: Apache-2.0
// Tables: every column but the label is a number of the input.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status.h"
#include "data/csv.h"
#include "data/file_bytes.h"
#include "data/readers.h"

namespace onward {
namespace {

// Whole-number labels up to this count as classes unless told otherwise.
constexpr int64_t kLargestGuessedClass = 9999;

struct Layout {
  bool header = false;
  std::vector<std::string> names;        // of the columns, or empty
  std::vector<std::string> class_names;  // where the header gives them
  size_t columns = 0;
  int64_t rows = 0;  // without the header
};

// scikit-learn's tables begin with "examples,features,class,class,...".
bool IsScikitHeader(const CsvRow& first, size_t columns, int64_t rows) {
  if (first.fields.size() < 3 || first.fields[0] != absl::StrCat(rows) ||
      first.fields[1] != absl::StrCat(columns - 1)) {
    return false;
  }
  return std::none_of(first.fields.begin() + 2, first.fields.end(),
                      [](absl::string_view f) { return CsvNumber(f).has_value(); });
}

// A header has a word where the row below has a number, or names the label.
bool IsHeader(const CsvRow& first, const CsvRow& second, const DataOptions& options) {
  for (size_t i = 0; i < first.fields.size(); ++i) {
    const bool word = !CsvNumber(first.fields[i]) && !IsMissing(first.fields[i]);
    if (!word) continue;
    if (options.label && first.fields[i] == *options.label) return true;
    if (i < second.fields.size() && CsvNumber(second.fields[i])) return true;
  }
  return false;
}

absl::StatusOr<Layout> FindLayout(CsvText* text, const DataOptions& options) {
  Layout layout;
  CsvRow first, second, row;
  ONWARD_ASSIGN_OR_RETURN(bool more, text->Next(&first));
  if (!more) return absl::InvalidArgumentError("the file is empty");
  ONWARD_ASSIGN_OR_RETURN(more, text->Next(&second));
  int64_t rows = 1;
  for (bool next = more; next; ++rows) {
    ONWARD_ASSIGN_OR_RETURN(next, text->Next(&row));
  }
  text->Rewind();
  layout.columns = first.fields.size();
  if (more && IsScikitHeader(first, second.fields.size(), rows - 1)) {
    layout.header = true;
    layout.columns = second.fields.size();
    for (size_t i = 2; i < first.fields.size(); ++i) {
      layout.class_names.emplace_back(first.fields[i]);
    }
  } else if (IsHeader(first, second, options)) {
    layout.header = true;
    for (absl::string_view field : first.fields) layout.names.emplace_back(field);
  }
  layout.rows = rows - layout.header;
  return layout;
}

std::string ColumnName(const Layout& layout, size_t column) {
  return column < layout.names.size() ? absl::StrCat("column '", layout.names[column], "'")
                                      : absl::StrCat("column ", column);
}

std::string ColumnList(const Layout& layout) {
  if (layout.names.empty()) {
    return absl::StrCat("columns 0 to ", layout.columns - 1, ", without names");
  }
  if (layout.names.size() > 40) {
    return absl::StrCat(layout.names.size(), " columns, the last is '", layout.names.back(), "'");
  }
  return absl::StrCat("columns ", absl::StrJoin(layout.names, ", "));
}

// By name, or by number from 0 (from -1 at the end).
absl::StatusOr<size_t> FindColumn(const Layout& layout, const std::string& which) {
  const auto it = std::find(layout.names.begin(), layout.names.end(), which);
  if (it != layout.names.end()) {
    if (std::find(it + 1, layout.names.end(), which) != layout.names.end()) {
      return absl::InvalidArgumentError(absl::StrCat("two columns are named '", which, "'"));
    }
    return static_cast<size_t>(it - layout.names.begin());
  }
  const int64_t columns = static_cast<int64_t>(layout.columns);
  int64_t index = 0;
  if (absl::SimpleAtoi(which, &index) && index >= -columns && index < columns) {
    return static_cast<size_t>(index < 0 ? index + columns : index);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no column '", which, "'; the file has ", ColumnList(layout)));
}

class Table {
 public:
  Table(const DataOptions& options, Layout layout)
      : options_(options), layout_(std::move(layout)) {}

  absl::Status ChooseColumns() {
    if (!options_.label && layout_.class_names.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "which column is the label? Add ?label=NAME or ?label=-1 for the last; the file has ",
          ColumnList(layout_)));
    }
    ONWARD_ASSIGN_OR_RETURN(label_, FindColumn(layout_, options_.label.value_or("-1")));
    std::set<size_t> out = {label_};
    for (const std::string& name : options_.drop) {
      ONWARD_ASSIGN_OR_RETURN(const size_t column, FindColumn(layout_, name));
      if (column == label_) {
        return absl::InvalidArgumentError(absl::StrCat("drop=", name, " names the label"));
      }
      out.insert(column);
    }
    for (size_t c = 0; c < layout_.columns; ++c) {
      if (!out.contains(c)) inputs_.push_back(c);
    }
    if (inputs_.empty()) return absl::InvalidArgumentError("no column is left as input");
    return absl::OkStatus();
  }

  absl::Status Read(CsvText* text) {
    // Every field takes at least its separator, so this is in proportion to the file.
    values_.reserve(static_cast<size_t>(layout_.rows) * inputs_.size());
    CsvRow row;
    bool header = layout_.header;
    while (true) {
      ONWARD_ASSIGN_OR_RETURN(const bool more, text->Next(&row));
      if (!more) break;
      if (!header) ONWARD_RETURN_IF_ERROR(Add(row));
      header = false;
    }
    if (labels_.empty()) {
      return absl::InvalidArgumentError(skipped_ > 0 ? "every row has an empty field"
                                                     : "no rows but the header");
    }
    return absl::OkStatus();
  }

  absl::StatusOr<LoadedData> Finish(const std::string& path) {
    LoadedData data;
    data.source = path;
    const int64_t rows = static_cast<int64_t>(labels_.size());
    const int64_t columns = static_cast<int64_t>(inputs_.size());
    data.arrays.push_back(
        {"x", Tensor::FromValues<float>({rows, columns}, absl::MakeConstSpan(values_)), false, 1});
    data.class_names = layout_.class_names;
    ONWARD_RETURN_IF_ERROR(AddLabel(&data));
    data.place = [path, places = std::move(places_)](int64_t row) {
      return absl::StrCat("row ", places[row].row, " (line ", places[row].line, ") of ", path);
    };
    return data;
  }

 private:
  absl::Status At(const CsvRow& row, size_t column, absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat("row ", row_, " (line ", row.line, "), ",
                                                   ColumnName(layout_, column), ": ", what));
  }

  std::string ShortName(size_t column) const {
    return column < layout_.names.size() ? layout_.names[column] : absl::StrCat(column);
  }

  absl::Status Add(const CsvRow& row) {
    ++row_;
    if (row.fields.size() != layout_.columns) {
      return absl::InvalidArgumentError(absl::StrCat("row ", row_, " (line ", row.line, ") has ",
                                                     row.fields.size(), " fields, expected ",
                                                     layout_.columns));
    }
    const auto missing = [&](size_t c) { return IsMissing(row.fields[c]); };
    if (options_.skip_missing &&
        (missing(label_) || std::any_of(inputs_.begin(), inputs_.end(), missing))) {
      ++skipped_;
      return absl::OkStatus();
    }
    for (size_t c : inputs_) {
      const auto v = CsvNumber(row.fields[c]);
      if (!v) return NotANumber(row, c);
      const float f = static_cast<float>(*v);
      if (!std::isfinite(f)) {
        return At(row, c, absl::StrCat(row.fields[c], " is too large for a float"));
      }
      values_.push_back(f);
    }
    if (missing(label_)) return NotANumber(row, label_);
    labels_.emplace_back(row.fields[label_]);
    places_.push_back({row_, row.line});
    return absl::OkStatus();
  }

  absl::Status NotANumber(const CsvRow& row, size_t column) const {
    if (IsMissing(row.fields[column])) {
      return At(row, column,
                absl::StrCat(row.fields[column].empty() ? "is empty" : "has no value",
                             "; fill it in, or leave out such rows with missing=skip"));
    }
    return At(
        row, column,
        absl::StrCat("'", row.fields[column].substr(0, 60),
                     "' is not a number; turn the column into numbers, or leave it out with drop=",
                     ShortName(column)));
  }

  absl::Status AddLabel(LoadedData* data) {
    const bool whole = std::all_of(labels_.begin(), labels_.end(),
                                   [](const std::string& s) { return IsWholeNumber(s); });
    const bool numeric = std::all_of(labels_.begin(), labels_.end(),
                                     [](const std::string& s) { return CsvNumber(s).has_value(); });
    if (!numeric) return AddTextLabel(data);
    if (!whole && options_.task != Task::kClasses) return AddNumberLabel(data);
    Tensor t(DType::kDouble, {static_cast<int64_t>(labels_.size())});
    double lowest = 0, highest = 0;
    for (size_t i = 0; i < labels_.size(); ++i) {
      const double v = *CsvNumber(labels_[i]);
      t.data<double>()[i] = v;
      lowest = std::min(lowest, v);
      highest = std::max(highest, v);
    }
    const bool guess = lowest >= 0 && highest <= kLargestGuessedClass &&
                       highest < static_cast<double>(labels_.size());
    if (options_.task == Task::kRegression || (options_.task == Task::kAuto && !guess)) {
      return AddNumberLabel(data);
    }
    return AddLabels(std::move(t), Task::kClasses, "y", data);
  }

  // One column, as a model with one output yields it.
  absl::Status AddNumberLabel(LoadedData* data) {
    Tensor t(DType::kFloat, {static_cast<int64_t>(labels_.size()), 1});
    for (size_t i = 0; i < labels_.size(); ++i) {
      t.data<float>()[i] = static_cast<float>(*CsvNumber(labels_[i]));
      if (!std::isfinite(t.data<float>()[i])) {
        return absl::InvalidArgumentError(
            absl::StrCat("label ", labels_[i], " is too large for a float"));
      }
    }
    data->class_names.clear();
    return AddLabels(std::move(t), Task::kRegression, "y", data);
  }

  absl::Status AddTextLabel(LoadedData* data) {
    Tensor words(DType::kString, {static_cast<int64_t>(labels_.size())});
    std::copy(labels_.begin(), labels_.end(), words.data<std::string>());
    return AddLabels(std::move(words), options_.task, "y", data);
  }

  const DataOptions& options_;
  Layout layout_;
  size_t label_ = 0;
  std::vector<size_t> inputs_;
  std::vector<float> values_;
  std::vector<std::string> labels_;
  struct Place {
    int64_t row, line;
  };
  std::vector<Place> places_;  // of labels_
  int64_t row_ = 0, skipped_ = 0;
};

absl::StatusOr<LoadedData> ParseTable(const std::string& path, absl::string_view bytes,
                                      const DataOptions& options) {
  CsvText text(bytes);
  ONWARD_ASSIGN_OR_RETURN(Layout layout, FindLayout(&text, options));
  Table table(options, std::move(layout));
  ONWARD_RETURN_IF_ERROR(table.ChooseColumns());
  ONWARD_RETURN_IF_ERROR(table.Read(&text));
  return table.Finish(path);
}

}  // namespace

absl::StatusOr<LoadedData> ReadCsv(const std::string& path, const DataOptions& options) {
  ONWARD_ASSIGN_OR_RETURN(const std::string bytes, ReadPlainOrGzip(path));
  auto data = ParseTable(path, bytes, options);
  if (!data.ok()) return Annotate(data.status(), path);
  return data;
}

}  // namespace onward
