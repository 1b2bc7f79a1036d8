// SPDX-License-Identifier: Apache-2.0
// One field of a data set: rows as they are stored, and what the spec's options make of them.
#ifndef ONWARD_DATA_ARRAYS_FIELD_H_
#define ONWARD_DATA_ARRAYS_FIELD_H_

#include <array>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "data/arrays/array_dataset.h"

namespace onward {

class Field {
 public:
  Field() = default;
  // `inputs` is how many arrays are not labels.
  static absl::StatusOr<Field> Create(const LoadedArray& array, const DataOptions& options,
                                      int inputs, absl::string_view source);

  const FieldInfo& info() const { return info_; }
  RowCost cost() const { return rows_->cost(); }

  // Rows `rows` of the array to *out, [rows.size(), ...]; it is made anew unless it has this
  // type and shape. `keys` are those of Dataset::FillVaried, or none.
  absl::Status Fill(absl::Span<const int64_t> rows, absl::Span<const uint64_t> keys,
                    Tensor* out) const;

  // Token ids must not be scaled with the images beside them; a lone input is what the user
  // means, whatever its type.
  static bool TakesScaling(const LoadedArray& array, int inputs);

 private:
  // value = stored * factor + offset, with one pair per channel.
  struct Affine {
    std::vector<double> factor, offset;
    int64_t channel_stride = 1;  // elements between channels within an example
    int64_t channels() const { return static_cast<int64_t>(factor.size()); }
  };

  absl::Status Rearrange(const LoadedArray& array, const DataOptions& options, int inputs,
                         absl::string_view source);
  absl::Status MakeAffine(const DataOptions& options, double default_scale,
                          absl::string_view source);
  absl::Status FillRow(int64_t row, const uint64_t* key, void* scratch, int64_t to_row,
                       Tensor* out) const;
  void Put(const void* from, int64_t to_row, Tensor* out) const;
  template <typename From, typename To>
  void MapRow(const From* from, To* to) const;

  FieldInfo info_;
  Rows rows_;
  int64_t elements_ = 0;  // per example
  bool affine_ = false;
  Affine map_;
  std::vector<std::array<float, 256>> table_;  // per channel, where bytes are stored
};

}  // namespace onward

#endif  // ONWARD_DATA_ARRAYS_FIELD_H_
