// SPDX-License-Identifier: Apache-2.0
#include "data/tables/encoder.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace onward {
namespace {

constexpr size_t kMostShown = 20;
constexpr size_t kLongestShown = 60;

std::string Quoted(absl::string_view text) {
  return absl::StrCat("'", text.substr(0, kLongestShown), "'");
}

std::string Known(const std::vector<std::string>& names) {
  const size_t count = std::min(names.size(), kMostShown);
  std::string text =
      absl::StrJoin(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(count), ", ",
                    [](std::string* out, const std::string& n) { out->append(Quoted(n)); });
  if (names.size() > count) absl::StrAppend(&text, " and ", names.size() - count, " more");
  return text;
}

const char* Empty(const Cell& cell) { return cell.text.empty() ? "is empty" : "has no value"; }

constexpr char kFill[] =
    "fill it in, leave out such rows with missing=skip, or train with missing=mean, median or a "
    "number";
constexpr char kRare[] = "a model trained with rare=N takes unknown names for rare ones";

}  // namespace

std::string WhyNoDate(absl::string_view text, DateOrder order) {
  if (!NeedsDateOrder(text)) return "is no date such as 2024-02-29";
  if (order == DateOrder::kUnknown) {
    return "may have the day or the month first: say dates=dmy or dates=mdy";
  }
  return absl::StrCat("is no date with the ", order == DateOrder::kDayFirst ? "day" : "month",
                      " first");
}

RowEncoder::RowEncoder(const TablePreparation& preparation, std::vector<size_t> places)
    : preparation_(preparation), places_(std::move(places)), codes_(preparation_.columns.size()) {
  for (size_t i = 0; i < codes_.size(); ++i) {
    const std::vector<std::string>& names = preparation_.columns[i].categories;
    for (size_t k = 0; k < names.size(); ++k) codes_[i][names[k]] = static_cast<int64_t>(k);
  }
}

void RowEncoder::Encode(const TableRow& row, float* x, int64_t* codes, Wrong wrong) const {
  for (size_t i = 0; i < places_.size(); ++i) {
    const ColumnPreparation& column = preparation_.columns[i];
    const size_t place = places_[i];
    const Cell& cell = row.cells[place];
    if (column.is_code()) {
      if (codes != nullptr) *codes++ = std::max<int64_t>(0, Code(i, cell, place, wrong));
      continue;
    }
    if (x == nullptr) continue;
    if (column.kind == ColumnKind::kNumber) {
      *x = column.scale[0].Apply(Number(column, cell, place, wrong));
    } else if (column.kind == ColumnKind::kDate) {
      const std::vector<float> parts = PartsOfDate(Date(column, cell, place, wrong), column.times);
      for (size_t k = 0; k < parts.size(); ++k) x[k] = column.scale[k].Apply(parts[k]);
    } else {
      std::fill(x, x + column.width(), 0.0f);
      if (const int64_t code = Code(i, cell, place, wrong); code >= 0) x[code] = 1;
    }
    x += column.width();
  }
}

bool RowEncoder::IsOther(size_t index, const Cell& cell) const {
  return preparation_.columns[index].other && !IsMissing(cell.text) &&
         !codes_[index].contains(cell.text);
}

float RowEncoder::Number(const ColumnPreparation& column, const Cell& cell, size_t place,
                         Wrong wrong) const {
  if (const std::optional<double> v = NumberIn(cell)) {
    const float f = static_cast<float>(*v);
    if (!std::isfinite(f)) wrong(place, absl::StrCat(cell.text, " is too large for a float"), "");
    return f;
  }
  if (!IsMissing(cell.text)) {
    wrong(place, absl::StrCat(Quoted(cell.text), " is not a number"), "");
  } else if (!column.fill) {
    wrong(place, Empty(cell), kFill);
  }
  return static_cast<float>(column.fill.value_or(0));
}

int64_t RowEncoder::Date(const ColumnPreparation& column, const Cell& cell, size_t place,
                         Wrong wrong) const {
  const DateOrder order = preparation_.dates;
  if (const std::optional<int64_t> seconds = ParseDate(cell.text, order)) return *seconds;
  if (!IsMissing(cell.text)) {
    wrong(place, absl::StrCat(Quoted(cell.text), " ", WhyNoDate(cell.text, order)), "");
  } else if (!column.fill) {
    wrong(place, Empty(cell), kFill);
  }
  return static_cast<int64_t>(column.fill.value_or(0));
}

int64_t RowEncoder::Code(size_t index, const Cell& cell, size_t place, Wrong wrong) const {
  const ColumnPreparation& column = preparation_.columns[index];
  const bool missing = IsMissing(cell.text);
  absl::string_view name = missing ? absl::string_view() : cell.text;
  if (missing && column.fill_text) name = *column.fill_text;
  const auto it = codes_[index].find(name);
  if (it != codes_[index].end()) return it->second;
  if (missing && !column.other) {
    wrong(place, Empty(cell), kFill);
    return -1;
  }
  if (column.other) return static_cast<int64_t>(column.categories.size());
  wrong(place,
        absl::StrCat(Quoted(name), " is unknown to the model, which knows ",
                     Known(column.categories)),
        kRare);
  return -1;
}

}  // namespace onward
