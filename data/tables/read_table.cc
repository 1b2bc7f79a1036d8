// SPDX-License-Identifier: Apache-2.0
#include "data/tables/read_table.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status.h"
#include "data/split.h"
#include "data/tables/encoder.h"
#include "data/tables/findings.h"

namespace onward {
namespace {

std::string At(const Table& table, int64_t row, int64_t line, size_t column,
               const std::string& what) {
  return absl::StrCat(table.Place(row, line), ", ", table.ColumnName(column), ": ", what);
}

// Of a cell unlike the others of its column, where these are numbers or dates.
std::string HowToMend(const std::string& column) {
  return absl::StrCat("correct it, leave the column out with drop=", column,
                      ", or read it as text with text_columns=", column);
}

// What encoding makes of rows, when they are asked for. Every row was looked at before.
class EncodedRows : public RowSource {
 public:
  EncodedRows(ChosenTable chosen, std::shared_ptr<const RowEncoder> encoder)
      : RowSource(chosen.size(), DType::kFloat, {encoder->preparation().numbers()}),
        chosen_(std::move(chosen)),
        encoder_(std::move(encoder)) {}

  absl::Status Read(int64_t first, int64_t count, void* to) const override {
    std::string buffer;
    TableRow row;
    const Table& table = *chosen_.table;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t number = chosen_.rows[first + i];
      ONWARD_RETURN_IF_ERROR(table.Read(number, &buffer, &row));
      absl::Status status;
      if (row.cells.size() != table.columns()) return Changed();
      encoder_->Encode(row, static_cast<float*>(to) + i * elements(), nullptr,
                       [&](size_t, const std::string&, const std::string&) { status = Changed(); });
      ONWARD_RETURN_IF_ERROR(status);
    }
    return absl::OkStatus();
  }
  RowCost cost() const override { return RowCost::kFile; }

 private:
  absl::Status Changed() const {
    return absl::DataLossError(absl::StrCat(chosen_.table->path(), ": was changed meanwhile"));
  }

  ChosenTable chosen_;
  std::shared_ptr<const RowEncoder> encoder_;
};

// Names of a table that are others to the model: whoever means one that it knows should hear of it.
class OtherNames {
 public:
  void Look(const ChosenTable& chosen, const RowEncoder& encoder, const TableRow& row,
            int64_t number) {
    others_.resize(encoder.places().size());
    for (size_t i = 0; i < others_.size(); ++i) {
      const Cell& cell = row.cells[encoder.places()[i]];
      if (!encoder.IsOther(i, cell) || others_[i].count++ > 0) continue;
      const Table& table = *chosen.table;
      others_[i].text = absl::StrCat(table.ShortName(encoder.places()[i]), " ('", cell.text,
                                     "' in ", table.Place(number, row.line), ", ");
    }
  }
  void AddNote(const Table& table, LoadedData* data) const {
    std::vector<std::string> texts;
    for (const Other& other : others_) {
      if (other.count == 0) continue;
      texts.push_back(absl::StrCat(other.text, other.count, other.count == 1 ? " row)" : " rows)"));
    }
    if (texts.empty()) return;
    data->notes.push_back(absl::StrCat(
        table.path(), ": taken for 'other', as rare names were: ", absl::StrJoin(texts, ", ")));
  }

 private:
  struct Other {
    std::string text;
    int64_t count = 0;
  };
  std::vector<Other> others_;  // of each column
};

// The numbers and codes of all rows, where they fit into `most_bytes`.
absl::Status Encode(const ChosenTable& chosen, const RowEncoder& encoder, bool fitted,
                    int64_t most_bytes, LoadedData* data) {
  const Table& table = *chosen.table;
  const TablePreparation& p = encoder.preparation();
  const int64_t numbers = p.numbers(), codes = p.codes(), count = chosen.size();
  const bool held = numbers * count * static_cast<int64_t>(sizeof(float)) <= most_bytes;
  Tensor x(DType::kFloat, {held ? count : 1, numbers}), c(DType::kInt64, {count, codes});
  Findings findings;
  OtherNames others;
  ONWARD_RETURN_IF_ERROR(table.ForEach([&](int64_t number, const TableRow& row) {
    const int64_t position = chosen.positions[number];
    if (position < 0) return absl::OkStatus();
    if (!fitted) others.Look(chosen, encoder, row, number);
    const auto wrong = [&](size_t column, const std::string& what, const std::string& remedy) {
      const bool mend = fitted && remedy.empty();
      findings.Add(At(table, number, row.line, column, what),
                   mend ? HowToMend(table.ShortName(column)) : remedy);
    };
    encoder.Encode(row, x.data<float>() + (held ? position * numbers : 0),
                   c.data<int64_t>() + position * codes, wrong);
    return absl::OkStatus();
  }));
  if (findings.count() > 0) return Annotate(findings.status(), table.path());
  others.AddNote(table, data);
  if (numbers > 0 && held) data->arrays.push_back({"x", std::move(x), false, 1});
  if (numbers > 0 && !held) {
    std::shared_ptr<const RowSource> rows =
        std::make_shared<EncodedRows>(chosen, std::make_shared<RowEncoder>(encoder));
    data->arrays.push_back({"x", std::move(rows), false, 1});
  }
  if (codes > 0) data->arrays.push_back({"codes", std::move(c), false, 1});
  return absl::OkStatus();
}

// One cell as a model takes it that prepares it itself.
absl::Status PutRaw(const ColumnPreparation& column, DateOrder order, const Cell& cell, int64_t at,
                    Tensor* out) {
  const bool missing = IsMissing(cell.text);
  if (column.kind == ColumnKind::kText) {
    out->data<std::string>()[at] = missing ? "" : std::string(cell.text);
  } else if (column.kind == ColumnKind::kNumber) {
    const std::optional<double> v = NumberIn(cell);
    if (!v && !missing) return absl::InvalidArgumentError("is not a number");
    out->data<float>()[at] = v ? static_cast<float>(*v) : std::numeric_limits<float>::quiet_NaN();
  } else {
    const std::optional<int64_t> seconds = ParseDate(cell.text, order);
    if (!seconds && !missing) return absl::InvalidArgumentError(WhyNoDate(cell.text, order));
    out->data<int64_t>()[at] = seconds.value_or(kNoDate);
  }
  return absl::OkStatus();
}

// The arrays that columns come into, and where in them.
struct RawArrays {
  struct Target {
    size_t array = 0;
    int64_t column = 0;
  };
  std::vector<LoadedArray> arrays;
  std::vector<Tensor> tensors;
  std::vector<Target> targets;  // of the columns
};

RawArrays MakeRawArrays(const TablePreparation& p, int64_t rows) {
  RawArrays out;
  const auto add = [&](std::string name, DType dtype, int64_t width) {
    out.tensors.emplace_back(dtype, Shape{rows, width});
    out.arrays.push_back({std::move(name), out.tensors.back(), false, 1});
  };
  const auto is_number = [](const ColumnPreparation& c) { return c.kind == ColumnKind::kNumber; };
  const int64_t numbers = std::count_if(p.columns.begin(), p.columns.end(), is_number);
  const bool matrix = p.raw == RawTable::kMatrix && numbers > 0;
  if (matrix) add(kRawNumbers, DType::kFloat, numbers);
  int64_t taken = 0;
  for (const ColumnPreparation& c : p.columns) {
    if (matrix && is_number(c)) {
      out.targets.push_back({0, taken++});
      continue;
    }
    out.targets.push_back({out.tensors.size(), 0});
    add(c.input_name(),
        c.kind == ColumnKind::kText ? DType::kString
        : is_number(c)              ? DType::kFloat
                                    : DType::kInt64,
        1);
  }
  return out;
}

absl::Status ReadRaw(const ChosenTable& chosen, const TablePreparation& p, LoadedData* data) {
  const Table& table = *chosen.table;
  RawArrays raw = MakeRawArrays(p, chosen.size());
  Findings findings;
  ONWARD_RETURN_IF_ERROR(table.ForEach([&](int64_t number, const TableRow& row) {
    const int64_t position = chosen.positions[number];
    for (size_t i = 0; position >= 0 && i < p.columns.size(); ++i) {
      const size_t place = chosen.columns.inputs[i];
      Tensor& tensor = raw.tensors[raw.targets[i].array];
      const int64_t at = position * tensor.shape()[1] + raw.targets[i].column;
      const absl::Status put = PutRaw(p.columns[i], p.dates, row.cells[place], at, &tensor);
      if (!put.ok()) {
        findings.Add(At(table, number, row.line, place,
                        absl::StrCat("'", row.cells[place].text, "' ", put.message())));
      }
    }
    return absl::OkStatus();
  }));
  if (findings.count() > 0) return Annotate(findings.status(), table.path());
  for (LoadedArray& array : raw.arrays) data->arrays.push_back(std::move(array));
  return absl::OkStatus();
}

// What the preparation is found out from: with split= or fold= the part for training alone.
absl::StatusOr<RowFilter> FittingRows(const ChosenTable& chosen, const LoadedData& labelled,
                                      const DataOptions& options) {
  Tensor labels;
  if (!labelled.arrays.empty() && labelled.classes > 0) {
    ONWARD_ASSIGN_OR_RETURN(labels, ReadRows(labelled.arrays[0].rows));
  }
  ONWARD_ASSIGN_OR_RETURN(
      const SplitIndices parts,
      SplitExamples(chosen.size(), labels, options.parts, chosen.table->path()));
  std::vector<bool> counts(static_cast<size_t>(chosen.table->rows()), false);
  for (int64_t i : parts.train) counts[chosen.rows[i]] = true;
  return RowFilter([counts = std::move(counts)](int64_t row) { return counts[row]; });
}

// A name that only the other part has would end a run, however rare it is: where nothing else is
// said, names count from the second time on.
DataOptions ForPart(DataOptions options, const DataContext& context) {
  if (options.parts.any() && context.made_for_data && !options.table.rare) options.table.rare = 2;
  return options;
}

}  // namespace

absl::StatusOr<LabelTask> TaskOf(const ChosenTable& chosen, const LabelSummary& labels, Task asked,
                                 const TablePreparation* known) {
  const bool as_model = known != nullptr && asked == Task::kAuto;
  const LabelTask task = as_model ? known->task : labels.Guess(asked);
  if (!chosen.columns.label || labels.numeric()) return task;
  if (asked != Task::kRegression && task == LabelTask::kClasses) return task;
  return absl::InvalidArgumentError(absl::StrCat(
      chosen.table->path(), ": labels of ", chosen.table->ColumnName(*chosen.columns.label),
      " are words, which ", as_model ? "a model of numbers" : "task=regression", " cannot use"));
}

absl::Status AddTableLabels(const ChosenTable& chosen, const LabelSummary& summary, LabelTask task,
                            const Standard& target, LoadedData* data) {
  if (!chosen.columns.label) return absl::OkStatus();
  const Table& table = *chosen.table;
  const size_t column = *chosen.columns.label;
  absl::flat_hash_map<std::string, int64_t> codes;
  data->class_names = table.class_names();
  if (!summary.numeric()) {
    auto words = summary.Words();
    if (!words.ok()) return Annotate(words.status(), table.path());
    for (const std::string& word : *words) {
      ONWARD_RETURN_IF_ERROR(CheckUtf8(table, column, word));
    }
    for (size_t i = 0; i < words->size(); ++i) codes[(*words)[i]] = static_cast<int64_t>(i);
    data->class_names = *std::move(words);
  }
  const bool regression = task == LabelTask::kNumber;
  Tensor labels(regression ? DType::kFloat : DType::kDouble,
                regression ? Shape{chosen.size(), 1} : Shape{chosen.size()});
  Findings findings;
  ONWARD_RETURN_IF_ERROR(table.ForEach([&](int64_t number, const TableRow& row) {
    const int64_t position = chosen.positions[number];
    if (position < 0) return absl::OkStatus();
    const Cell& cell = row.cells[column];
    const double value =
        codes.empty() ? NumberIn(cell).value_or(0)
                      : static_cast<double>(codes.contains(cell.text) ? codes.at(cell.text) : 0);
    if (IsMissing(cell.text)) {
      findings.Add(
          At(table, number, row.line, column, cell.text.empty() ? "is empty" : "has no value"),
          "fill it in, or leave out such rows with missing=skip");
    } else if (!std::isfinite(static_cast<float>(value))) {
      findings.Add(At(table, number, row.line, column,
                      absl::StrCat(cell.text, " is too large for a float")));
    }
    if (regression) {
      labels.data<float>()[position] = target.Apply(static_cast<float>(value));
    } else {
      labels.data<double>()[position] = value;
    }
    return absl::OkStatus();
  }));
  if (findings.count() > 0) return Annotate(findings.status(), table.path());
  if (regression) data->class_names.clear();
  return AddLabels(std::move(labels), regression ? Task::kRegression : Task::kClasses, "y", data);
}

absl::StatusOr<LoadedData> ReadTable(const std::string& path, TableFile file,
                                     const DataOptions& options, const DataContext& context,
                                     int64_t most_bytes) {
  ONWARD_ASSIGN_OR_RETURN(ChosenTable chosen, ChooseTable(path, file, options, context));
  const bool known = context.preparation != nullptr && context.preparation->table.has_value();
  // One look at all rows tells all, unless only some of them count for the inputs.
  const bool at_once = !known && !options.parts.any();
  TableColumns looked_at = chosen.columns;
  if (!at_once) looked_at.inputs.clear();
  ONWARD_ASSIGN_OR_RETURN(TableSummary summary,
                          Summarise(*chosen.table, looked_at, options.table, chosen.filter()));
  const LabelSummary labels = summary.label;
  Preparation preparation;
  if (known) preparation = *context.preparation;
  if (known && options.table.dates != DateOrder::kUnknown) {
    preparation.table->dates = options.table.dates;
  }
  if (context.labels_optional && labels.missing() > 0) chosen.columns.label.reset();
  ONWARD_ASSIGN_OR_RETURN(const LabelTask task, TaskOf(chosen, labels, options.task,
                                                       known ? &*preparation.table : nullptr));
  LoadedData data;
  data.source = path;
  data.rows_chosen = true;
  const bool classes = task == LabelTask::kClasses;
  if (classes) ONWARD_RETURN_IF_ERROR(AddTableLabels(chosen, labels, task, {}, &data));
  if (!known) {
    if (!at_once) {
      ONWARD_ASSIGN_OR_RETURN(const RowFilter rows, FittingRows(chosen, data, options));
      ONWARD_ASSIGN_OR_RETURN(summary,
                              Summarise(*chosen.table, chosen.columns, options.table, rows));
    }
    ONWARD_ASSIGN_OR_RETURN(FittedTable fitted,
                            FitTable(*chosen.table, chosen.columns, summary,
                                     ForPart(options, context), context.made_for_data));
    preparation.table = std::move(fitted.preparation);
    preparation.table->task = task;
    chosen.columns.inputs = std::move(fitted.places);
    data.notes.push_back(std::move(fitted.note));
  }
  const TablePreparation& p = *preparation.table;
  if (p.raw != RawTable::kNone) {
    ONWARD_RETURN_IF_ERROR(ReadRaw(chosen, p, &data));
  } else {
    ONWARD_RETURN_IF_ERROR(
        Encode(chosen, RowEncoder(p, chosen.columns.inputs), !known, most_bytes, &data));
  }
  data.target = p.target;
  if (!classes) {
    ONWARD_RETURN_IF_ERROR(AddTableLabels(chosen, labels, task, p.target, &data));
  }
  data.place = chosen.PlaceOf();
  data.preparation = std::make_shared<const Preparation>(std::move(preparation));
  return data;
}

}  // namespace onward
