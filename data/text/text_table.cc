// SPDX-License-Identifier: Apache-2.0
// Tables with a column of text (read_text.h).
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "data/tables/findings.h"
#include "data/tables/read_table.h"
#include "data/text/read_text.h"
#include "data/text/sequences.h"

namespace onward {
namespace {

constexpr char kFirst[] = "[CLS]", kLast[] = "[SEP]";

absl::StatusOr<size_t> TextColumn(const ChosenTable& chosen, const std::string& named) {
  if (!named.empty()) return chosen.table->Find(named);
  if (chosen.columns.inputs.size() == 1) return chosen.columns.inputs[0];
  return absl::InvalidArgumentError(absl::StrCat(
      "which column holds the text? Add column=NAME; the file has ", chosen.table->ColumnList()));
}

// [CLS] tokens [SEP], where the vocabulary has these.
absl::StatusOr<std::vector<int64_t>> Framed(const Tokenizer& tokenizer, absl::string_view text,
                                            int64_t length) {
  ONWARD_ASSIGN_OR_RETURN(std::vector<int64_t> tokens, tokenizer.All(text));
  const int64_t first = tokenizer.Find(kFirst), last = tokenizer.Find(kLast);
  const size_t frame = (first >= 0 ? 1 : 0) + (last >= 0 ? 1 : 0);
  const size_t room = static_cast<size_t>(length) - std::min(frame, static_cast<size_t>(length));
  tokens.resize(std::min(tokens.size(), room));
  if (first >= 0) tokens.insert(tokens.begin(), first);
  if (last >= 0) tokens.push_back(last);
  tokens.resize(std::min(tokens.size(), static_cast<size_t>(length)));
  return tokens;
}

// Every text can be cut, so that nothing is met later in the middle of a run.
absl::Status CheckTexts(const ChosenTable& chosen, size_t column, const Tokenizer& tokenizer) {
  Findings findings;
  ONWARD_RETURN_IF_ERROR(chosen.table->ForEach([&](int64_t number, const TableRow& row) {
    if (chosen.positions[number] < 0) return absl::OkStatus();
    const auto tokens = tokenizer.All(row.cells[column].text);
    if (!tokens.ok()) {
      findings.Add(absl::StrCat(chosen.table->Place(number, row.line), ", ",
                                chosen.table->ColumnName(column), ": ", tokens.status().message()));
    }
    return absl::OkStatus();
  }));
  return findings.status();
}

absl::StatusOr<TextLabels> ReadLabels(const ChosenTable& chosen, const LabelSummary& summary,
                                      LabelTask task, const Standard& target) {
  LoadedData data;
  data.source = chosen.table->path();
  ONWARD_RETURN_IF_ERROR(AddTableLabels(chosen, summary, task, target, &data));
  TextLabels labels;
  if (data.arrays.empty()) return labels;
  ONWARD_ASSIGN_OR_RETURN(labels.labels, ReadRows(data.arrays[0].rows));
  labels.classes = data.classes;
  labels.class_names = std::move(data.class_names);
  labels.target = target;
  return labels;
}

absl::StatusOr<std::unique_ptr<Dataset>> Read(ChosenTable chosen, const DataOptions& options,
                                              const DataContext& context) {
  const Preparation* known = context.preparation;
  Preparation preparation;
  ONWARD_ASSIGN_OR_RETURN(preparation.text, PrepareText(options, context, nullptr));
  const std::string named =
      options.text.column.empty() ? preparation.text->column : options.text.column;
  ONWARD_ASSIGN_OR_RETURN(const size_t column, TextColumn(chosen, named));
  preparation.text->column = chosen.table->ShortName(column);
  ONWARD_ASSIGN_OR_RETURN(const std::shared_ptr<const Tokenizer> tokenizer,
                          Tokenizer::Create(*preparation.text));
  ONWARD_RETURN_IF_ERROR(CheckTexts(chosen, column, *tokenizer));
  TableColumns labels_only;
  labels_only.label = chosen.columns.label;
  ONWARD_ASSIGN_OR_RETURN(const TableSummary summary,
                          Summarise(*chosen.table, labels_only, options.table, chosen.filter()));
  const bool has_table = known != nullptr && known->table.has_value();
  preparation.table = has_table ? *known->table
                                : FitLabel(*chosen.table, chosen.columns.label, summary.label,
                                           options, context.made_for_data);
  if (context.labels_optional && summary.label.missing() > 0) chosen.columns.label.reset();
  ONWARD_ASSIGN_OR_RETURN(const LabelTask task, TaskOf(chosen, summary.label, options.task,
                                                       has_table ? &*preparation.table : nullptr));
  ONWARD_ASSIGN_OR_RETURN(TextLabels labels,
                          ReadLabels(chosen, summary.label, task, preparation.table->target));
  Sequences s;
  s.source = chosen.table->path();
  s.hints = options.hints;
  s.count = chosen.size();
  s.pad = std::max<int64_t>(0, tokenizer->Find(kPadToken));
  s.place = chosen.PlaceOf();
  s.tokens = [chosen, column, tokenizer, length = preparation.text->length](
                 int64_t i) -> absl::StatusOr<std::vector<int64_t>> {
    std::string buffer;
    TableRow row;
    ONWARD_RETURN_IF_ERROR(chosen.table->Read(chosen.rows[i], &buffer, &row));
    if (column >= row.cells.size()) {
      return absl::DataLossError(absl::StrCat(chosen.table->path(), ": was changed meanwhile"));
    }
    return Framed(*tokenizer, row.cells[column].text, length);
  };
  s.preparation = std::make_shared<const Preparation>(std::move(preparation));
  return LabelledTexts(std::move(s), std::move(labels));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Dataset>> OpenTextTable(const std::string& path, TableFile file,
                                                       const DataOptions& options,
                                                       const DataContext& context) {
  ONWARD_ASSIGN_OR_RETURN(ChosenTable chosen, ChooseTable(path, file, options, context));
  auto data = Read(std::move(chosen), options, context);
  if (data.ok() || absl::StartsWith(data.status().message(), path)) return data;
  return Annotate(data.status(), path);
}

}  // namespace onward
