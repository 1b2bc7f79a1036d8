// SPDX-License-Identifier: Apache-2.0
// Rows and columns of a table that a spec, or a model, asks for (read_table.h).
#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status.h"
#include "data/tables/read_table.h"

namespace onward {
namespace {

// As the model has it; null where it knows nothing.
const TablePreparation* KnownTable(const DataContext& context) {
  const bool knows = context.preparation != nullptr && context.preparation->table;
  return knows ? &*context.preparation->table : nullptr;
}

std::vector<std::string> ExpectedNames(const DataOptions& options, const TablePreparation* known) {
  std::vector<std::string> names = options.table.drop;
  names.insert(names.end(), options.table.keep.begin(), options.table.keep.end());
  if (options.label) names.push_back(*options.label);
  if (known == nullptr || !known->has_names()) return names;
  if (!known->label.empty()) names.push_back(known->label);
  for (const ColumnPreparation& c : known->columns) names.push_back(c.name);
  return names;
}

// The label's column, by the spec or as the model calls it; nothing where it may be missing.
absl::StatusOr<std::optional<size_t>> FindLabel(const Table& table, const DataOptions& options,
                                                const DataContext& context,
                                                const TablePreparation* known) {
  if (options.label) return table.Find(*options.label);
  if (!table.class_names().empty()) return table.columns() - 1;
  if (known != nullptr && !known->label.empty()) {
    const auto& names = table.names();
    if (std::count(names.begin(), names.end(), known->label) > 0) return table.Find(known->label);
  } else if (known != nullptr && known->label_place >= 0 &&
             static_cast<int64_t>(table.columns()) == known->file_columns) {
    return static_cast<size_t>(known->label_place);
  }
  if (context.labels_optional) return std::nullopt;
  return absl::InvalidArgumentError(absl::StrCat(
      "which column is the label? Add ?label=NAME or ?label=-1 for the last; the file has ",
      table.ColumnList()));
}

absl::StatusOr<std::vector<size_t>> AllInputs(const Table& table, const DataOptions& options,
                                              std::optional<size_t> label) {
  std::set<size_t> out;
  if (label) out.insert(*label);
  for (const std::string& name : options.table.drop) {
    ONWARD_ASSIGN_OR_RETURN(const size_t column, table.Find(name));
    if (column == label) {
      return absl::InvalidArgumentError(absl::StrCat("drop=", name, " names the label"));
    }
    out.insert(column);
  }
  std::vector<size_t> inputs;
  for (size_t c = 0; c < table.columns(); ++c) {
    if (!out.contains(c)) inputs.push_back(c);
  }
  if (inputs.empty()) return absl::InvalidArgumentError("no column is left as input");
  return inputs;
}

// The columns that a model takes, in its order.
absl::StatusOr<std::vector<size_t>> KnownInputs(const Table& table, const TablePreparation& known) {
  std::vector<size_t> inputs;
  const int64_t columns = static_cast<int64_t>(table.columns());
  if (!known.has_names()) {
    const bool labelled = columns == known.file_columns;
    if (!labelled && (columns != known.file_columns - 1 || known.label_place < 0)) {
      return absl::InvalidArgumentError(absl::StrCat("has ", columns, " columns, the model takes ",
                                                     known.file_columns, ", the label among them"));
    }
    for (const ColumnPreparation& c : known.columns) {
      inputs.push_back(
          static_cast<size_t>(c.place - (!labelled && c.place > known.label_place ? 1 : 0)));
    }
    return inputs;
  }
  std::vector<std::string> missing;
  for (const ColumnPreparation& c : known.columns) {
    if (std::count(table.names().begin(), table.names().end(), c.name) == 0) {
      missing.push_back(absl::StrCat("'", c.name, "'"));
      continue;
    }
    ONWARD_ASSIGN_OR_RETURN(inputs.emplace_back(), table.Find(c.name));
  }
  if (missing.empty()) return inputs;
  return absl::InvalidArgumentError(absl::StrCat("has no column ", absl::StrJoin(missing, ", "),
                                                 ", which the model takes; it has ",
                                                 table.ColumnList()));
}

// Rows of which every cell that is meant has a value.
absl::StatusOr<std::vector<int64_t>> WholeRows(const Table& table, const TableColumns& columns) {
  std::vector<int64_t> whole;
  const auto missing = [&](const TableRow& row) {
    return (columns.label && IsMissing(row.cells[*columns.label].text)) ||
           std::any_of(columns.inputs.begin(), columns.inputs.end(),
                       [&](size_t c) { return IsMissing(row.cells[c].text); });
  };
  ONWARD_RETURN_IF_ERROR(table.ForEach([&](int64_t number, const TableRow& row) {
    if (!missing(row)) whole.push_back(number);
    return absl::OkStatus();
  }));
  if (whole.empty()) return absl::InvalidArgumentError("every row has an empty field");
  return whole;
}

absl::Status Choose(const DataOptions& options, const DataContext& context, ChosenTable* chosen) {
  const Table& table = *chosen->table;
  const TablePreparation* known = KnownTable(context);
  if (table.rows() == 0) return absl::InvalidArgumentError("no rows but the header");
  ONWARD_ASSIGN_OR_RETURN(chosen->columns.label, FindLabel(table, options, context, known));
  if (known != nullptr) {
    ONWARD_ASSIGN_OR_RETURN(chosen->columns.inputs, KnownInputs(table, *known));
  } else {
    ONWARD_ASSIGN_OR_RETURN(chosen->columns.inputs,
                            AllInputs(table, options, chosen->columns.label));
  }
  std::vector<int64_t> whole;
  const bool skips =
      options.table.missing && options.table.missing->kind == MissingRule::Kind::kSkipRow;
  if (skips) {
    ONWARD_ASSIGN_OR_RETURN(whole, WholeRows(table, chosen->columns));
  }
  const int64_t count = skips ? static_cast<int64_t>(whole.size()) : table.rows();
  ONWARD_ASSIGN_OR_RETURN(chosen->rows, ChooseRows(count, options, table.path()));
  chosen->positions.assign(static_cast<size_t>(table.rows()), -1);
  for (size_t i = 0; i < chosen->rows.size(); ++i) {
    if (skips) chosen->rows[i] = whole[chosen->rows[i]];
    chosen->positions[chosen->rows[i]] = static_cast<int64_t>(i);
  }
  return absl::OkStatus();
}

}  // namespace

std::function<std::string(int64_t)> ChosenTable::PlaceOf() const {
  return [table = table, rows = rows](int64_t example) {
    return absl::StrCat(table->Place(rows[example]), " of ", table->path());
  };
}

absl::StatusOr<ChosenTable> ChooseTable(const std::string& path, TableFile file,
                                        const DataOptions& options, const DataContext& context) {
  ChosenTable chosen;
  const TablePreparation* known = KnownTable(context);
  OpenTableOptions open;
  open.file = file;
  open.header = options.table.header;
  open.names = ExpectedNames(options, known);
  open.decimal_comma = options.table.decimal_comma;
  open.known_decimal_comma = known != nullptr && known->decimal_comma;
  ONWARD_ASSIGN_OR_RETURN(chosen.table, Table::Open(path, open));
  const absl::Status status = Choose(options, context, &chosen);
  if (!status.ok())
    return absl::StartsWith(status.message(), path) ? status : Annotate(status, path);
  return chosen;
}

}  // namespace onward
