// SPDX-License-Identifier: Apache-2.0
// The columns of a table as nodes (raw_export.h).
#include <algorithm>
#include <limits>
#include <utility>

#include "data/tables/encoder.h"
#include "trainer/prepare/raw_export.h"

namespace onward {
namespace {

constexpr char kLearningDomain[] = "ai.onnx.ml";
constexpr int kLearningVersion = 2;  // LabelEncoder in the form that is used here

ValueType InputType(DType dtype, const Dim& batch, int64_t width) {
  ValueType type = ValueType::Unranked(dtype);
  type.has_rank = true;
  type.dims = {batch, Dim{width, ""}};
  return type;
}

Expr FloatRow(const std::vector<float>& values, GraphBuilder& b) {
  return b.Constant(Tensor::FromValues<float>({static_cast<int64_t>(values.size())},
                                              absl::MakeConstSpan(values)));
}

// (x - mean) / deviation, column by column.
Expr Standardised(const Expr& x, const std::vector<Standard>& scale, GraphBuilder& b) {
  if (std::none_of(scale.begin(), scale.end(), [](const Standard& s) { return s.changes(); })) {
    return x;
  }
  std::vector<float> mean, deviation;
  for (const Standard& s : scale) {
    mean.push_back(static_cast<float>(s.mean));
    deviation.push_back(static_cast<float>(s.deviation));
  }
  return (x - FloatRow(mean, b)) / FloatRow(deviation, b);
}

// Numbers [N, columns.size()]; NaN stays where nothing fills it.
Expr Numbers(const Expr& raw, const std::vector<const ColumnPreparation*>& columns,
             GraphBuilder& b) {
  std::vector<float> fill;
  std::vector<Standard> scale;
  bool fills = false;
  for (const ColumnPreparation* c : columns) {
    fills |= c->fill.has_value();
    fill.push_back(c->fill ? static_cast<float>(*c->fill)
                           : std::numeric_limits<float>::quiet_NaN());
    scale.push_back(c->scale[0]);
  }
  const Expr whole = fills ? Where(b.Op("IsNaN", {raw}), FloatRow(fill, b), raw) : raw;
  return Standardised(whole, scale, b);
}

// Codes [N, 1] of names. Empty ones, in whatever word, count as what fills them.
Expr Codes(const Expr& names, const ColumnPreparation& column, int64_t unknown, GraphBuilder& b) {
  std::vector<std::string> keys = column.categories;
  std::vector<int64_t> values;
  for (size_t i = 0; i < keys.size(); ++i) values.push_back(static_cast<int64_t>(i));
  const std::string filling = column.fill_text.value_or("");
  const auto filled = std::find(keys.begin(), keys.end(), filling);
  if (filled != keys.end()) {
    const int64_t code = filled - keys.begin();
    for (const std::string& word : MissingWords()) {
      if (std::count(keys.begin(), keys.end(), word) > 0) continue;
      keys.push_back(word);
      values.push_back(code);
    }
  }
  int& version = b.graph().opsets.try_emplace(kLearningDomain, kLearningVersion).first->second;
  version = std::max(version, kLearningVersion);
  return b.Op(
      "LabelEncoder", {names},
      {{"keys_strings", std::move(keys)},
       {"values_int64s", std::move(values)},
       {"default_int64", column.other ? static_cast<int64_t>(column.categories.size()) : unknown}},
      kLearningDomain);
}

Expr OneHot(const Expr& names, const ColumnPreparation& column, GraphBuilder& b) {
  const int64_t width = column.width();
  // A code that is out of range gives zeros.
  const Expr codes = Codes(names, column, /*unknown=*/width, b);
  return Squeeze(b.Op("OneHot", {codes, b.Ints({width}), FloatRow({0, 1}, b)}, {{"axis", -1}}),
                 {1});
}

Expr DateNumbers(const Expr& raw, const ColumnPreparation& column, GraphBuilder& b) {
  Expr seconds = raw;
  if (column.fill) {
    seconds = Where(Equal(raw, b.Int(kNoDate)), b.Int(static_cast<int64_t>(*column.fill)), raw);
  }
  return Standardised(BuildDateParts(seconds, column.times, b), column.scale, b);
}

class Columns {
 public:
  Columns(const TablePreparation& table, RawForm form, const Dim& batch, std::string matrix,
          GraphBuilder& b)
      : table_(table), form_(form), batch_(batch), matrix_name_(std::move(matrix)), b_(b) {}

  PreparedColumns Build() {
    const auto is_number = [](const ColumnPreparation& c) { return c.kind == ColumnKind::kNumber; };
    const int64_t numbers = std::count_if(table_.columns.begin(), table_.columns.end(), is_number);
    if (form_ == RawForm::kMatrix && numbers > 0) {
      matrix_ = b_.Input(matrix_name_, InputType(DType::kFloat, batch_, numbers));
    }
    std::vector<Expr> x, codes;
    for (size_t i = 0; i < table_.columns.size();) {
      const ColumnPreparation& c = table_.columns[i];
      if (c.kind == ColumnKind::kNumber) {
        std::vector<const ColumnPreparation*> run;
        for (; i < table_.columns.size() && is_number(table_.columns[i]); ++i) {
          run.push_back(&table_.columns[i]);
        }
        x.push_back(Numbers(RawNumbers(run, numbers), run, b_));
        continue;
      }
      const DType dtype = c.kind == ColumnKind::kText ? DType::kString : DType::kInt64;
      const Expr raw = b_.Input(c.input_name(), InputType(dtype, batch_, 1));
      if (c.is_code()) {
        codes.push_back(Codes(raw, c, /*unknown=*/0, b_));
      } else {
        x.push_back(c.kind == ColumnKind::kText ? OneHot(raw, c, b_) : DateNumbers(raw, c, b_));
      }
      ++i;
    }
    return {Joined(std::move(x)), Joined(std::move(codes))};
  }

 private:
  static Expr Joined(std::vector<Expr> parts) {
    if (parts.empty()) return Expr();
    return parts.size() == 1 ? parts[0] : Concat(std::move(parts), 1);
  }

  // Columns next to each other, as they come.
  Expr RawNumbers(const std::vector<const ColumnPreparation*>& run, int64_t numbers) {
    const int64_t count = static_cast<int64_t>(run.size());
    if (form_ == RawForm::kMatrix) {
      const int64_t begin = std::exchange(taken_, taken_ + count);
      if (count == numbers) return matrix_;
      return Slice(matrix_, b_.Ints({begin}), b_.Ints({begin + count}), b_.Ints({1}));
    }
    std::vector<Expr> each;
    for (const ColumnPreparation* c : run) {
      each.push_back(b_.Input(c->input_name(), InputType(DType::kFloat, batch_, 1)));
    }
    return Joined(std::move(each));
  }

  const TablePreparation& table_;
  RawForm form_;
  Dim batch_;
  std::string matrix_name_;
  GraphBuilder& b_;
  Expr matrix_;
  int64_t taken_ = 0;  // columns of the matrix
};

}  // namespace

PreparedColumns BuildColumns(const TablePreparation& table, RawForm form, const Dim& batch,
                             const std::string& matrix_name, GraphBuilder& b) {
  return Columns(table, form, batch, matrix_name, b).Build();
}

// The arithmetic of PartsOfDate on int64, where all is positive and Div rounds down.
Expr BuildDateParts(const Expr& seconds, bool times, GraphBuilder& b) {
  const auto n = [&](int64_t value) { return b.Int(value); };
  const auto mod = [&](const Expr& x, int64_t y) { return b.Op("Mod", {x, n(y)}); };
  const Expr since = seconds + n(kCalendarDays * kDaySeconds);
  const Expr days = since / n(kDaySeconds), of_cycle = mod(days, kCycleDays);
  const Expr year_of_cycle =
      (of_cycle - of_cycle / n(1460) + of_cycle / n(36524) - of_cycle / n(146096)) / n(365);
  const Expr of_year =
      of_cycle - (n(365) * year_of_cycle + year_of_cycle / n(4) - year_of_cycle / n(100));
  const Expr from_march = (n(5) * of_year + n(2)) / n(153);
  const Expr day = of_year - (n(153) * from_march + n(2)) / n(5) + n(1);
  const Expr month = Where(Less(from_march, n(10)), from_march + n(3), from_march - n(9));
  const Expr year =
      year_of_cycle + days / n(kCycleDays) * n(400) + Cast(LessOrEqual(month, n(2)), DType::kInt64);
  const Expr parts = Cast(Concat({year, month, day, mod(days + n(2), 7)}, 1), DType::kFloat);
  if (!times) return parts;
  const Expr hour =
      Cast(mod(since, kDaySeconds), DType::kFloat) / b.Constant(Tensor::Scalar<float>(3600.0f));
  return Concat({parts, hour}, 1);
}

}  // namespace onward
