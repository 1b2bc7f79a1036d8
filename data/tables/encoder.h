// SPDX-License-Identifier: Apache-2.0
// From the cells of a row to the numbers a model takes.
#ifndef ONWARD_DATA_TABLES_ENCODER_H_
#define ONWARD_DATA_TABLES_ENCODER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "data/preparation.h"
#include "data/tables/row.h"

namespace onward {

// What is wrong with a cell that ParseDate does not take.
std::string WhyNoDate(absl::string_view text, DateOrder order);

class RowEncoder {
 public:
  // `places` are those of the preparation's columns in a row.
  RowEncoder(const TablePreparation& preparation, std::vector<size_t> places);

  // A cell that cannot be taken: which of the row, what is wrong with it, and what helps.
  using Wrong =
      absl::FunctionRef<void(size_t place, const std::string& what, const std::string& remedy)>;

  // Numbers to x, codes to `codes`; each may be null where they are not wanted.
  void Encode(const TableRow& row, float* x, int64_t* codes, Wrong wrong) const;

  // Whether column `index` takes this for one of the names that have none of their own.
  bool IsOther(size_t index, const Cell& cell) const;

  const TablePreparation& preparation() const { return preparation_; }
  const std::vector<size_t>& places() const { return places_; }

 private:
  float Number(const ColumnPreparation& column, const Cell& cell, size_t place, Wrong wrong) const;
  int64_t Date(const ColumnPreparation& column, const Cell& cell, size_t place, Wrong wrong) const;
  int64_t Code(size_t index, const Cell& cell, size_t place, Wrong wrong) const;

  TablePreparation preparation_;
  std::vector<size_t> places_;
  std::vector<absl::flat_hash_map<std::string, int64_t>> codes_;  // of names, per column
};

// The same cells as a model takes that prepares them itself; what is missing is NaN, "" or
// kNoDate.
inline constexpr int64_t kNoDate = INT64_MIN;

}  // namespace onward

#endif  // ONWARD_DATA_TABLES_ENCODER_H_
