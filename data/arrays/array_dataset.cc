// SPDX-License-Identifier: Apache-2.0
#include "data/arrays/array_dataset.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "data/arrays/field.h"
#include "data/permutation.h"
#include "data/pictures/picture_arrays.h"

namespace onward {
namespace {

constexpr int64_t kMostClassNames = 1000;

class ArrayDataset : public Dataset {
 public:
  ArrayDataset(std::vector<Field> fields, std::vector<int64_t> rows, bool names_classes,
               LoadedData data, const TrainingHints& hints)
      : fields_(std::move(fields)),
        rows_(std::move(rows)),
        names_classes_(names_classes),
        data_(std::move(data)),
        hints_(hints) {}

  int64_t size() const override { return static_cast<int64_t>(rows_.size()); }

  std::vector<FieldInfo> fields() const override {
    std::vector<FieldInfo> infos;
    for (const Field& f : fields_) infos.push_back(f.info());
    return infos;
  }

  absl::Status Fill(absl::Span<const int64_t> indices, std::vector<Tensor>* batch) const override {
    return FillVaried(indices, {}, batch);
  }

  absl::Status FillVaried(absl::Span<const int64_t> indices, absl::Span<const uint64_t> keys,
                          std::vector<Tensor>* batch) const override {
    std::vector<int64_t> rows;
    rows.reserve(indices.size());
    for (int64_t i : indices) {
      if (i < 0 || i >= size()) {
        return absl::OutOfRangeError(absl::StrCat("example ", i, " of a data set of ", size()));
      }
      rows.push_back(rows_[i]);
    }
    batch->resize(fields_.size());
    for (size_t k = 0; k < fields_.size(); ++k) {
      ONWARD_RETURN_IF_ERROR(fields_[k].Fill(rows, keys, &(*batch)[k]));
    }
    return absl::OkStatus();
  }

  bool reads_slowly() const override {
    return std::any_of(fields_.begin(), fields_.end(),
                       [](const Field& f) { return f.cost() != RowCost::kMemory; });
  }
  bool decodes() const override {
    return std::any_of(fields_.begin(), fields_.end(),
                       [](const Field& f) { return f.cost() == RowCost::kDecoding; });
  }
  TrainingHints hints() const override { return hints_; }
  std::vector<std::string> notes() const override { return data_.notes; }
  const Preparation* preparation() const override { return data_.preparation.get(); }
  Standard target() const override { return data_.target; }

  int64_t classes() const override { return data_.classes; }
  std::vector<std::string> class_names() const override { return data_.class_names; }
  bool names_classes() const override { return names_classes_; }

  Tensor class_labels() const override {
    if (data_.classes == 0 || fields_.empty() || !fields_.back().info().is_label) return Tensor();
    Tensor labels;
    return fields_.back().Fill(rows_, {}, &labels).ok() ? labels : Tensor();
  }

  std::string source() const override { return data_.source; }
  std::string place(int64_t example) const override {
    const int64_t row = rows_[example];
    return data_.place ? data_.place(row) : absl::StrCat("example ", row, " of ", data_.source);
  }

 private:
  std::vector<Field> fields_;
  std::vector<int64_t> rows_;
  bool names_classes_;
  LoadedData data_;  // without its arrays
  TrainingHints hints_;
};

absl::StatusOr<int64_t> CountRows(const LoadedData& data) {
  int64_t count = -1;
  for (const LoadedArray& a : data.arrays) {
    if (a.rows->count() < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          data.source, ": '", a.name, "' is a single number, expected one row per example"));
    }
    const int64_t rows = a.rows->count();
    if (count >= 0 && rows != count) {
      return absl::InvalidArgumentError(absl::StrCat(data.source, ": '", data.arrays[0].name,
                                                     "' has ", count, " examples but '", a.name,
                                                     "' has ", rows));
    }
    count = rows;
  }
  if (count <= 0) {
    return absl::InvalidArgumentError(absl::StrCat(data.source, ": holds no examples"));
  }
  return count;
}

int Inputs(const LoadedData& data) {
  return static_cast<int>(std::count_if(data.arrays.begin(), data.arrays.end(),
                                        [](const LoadedArray& a) { return !a.is_label; }));
}

// Options that would do nothing are mistakes.
absl::Status CheckOptionsApply(const LoadedData& data, const DataOptions& options) {
  bool scaled = false, pictures = false;
  for (const LoadedArray& a : data.arrays) {
    scaled |= Field::TakesScaling(a, Inputs(data));
    pictures |= !a.is_label && (a.pictures_prepared || Inputs(data) == 1 || ArePictures(*a.rows));
  }
  if (options.scales() && !scaled) {
    return absl::InvalidArgumentError(absl::StrCat(
        data.source,
        ": scale, shift, mean and std have nothing to act on: no input is float or uint8"));
  }
  if (options.pictures.prepares() && !pictures) {
    return absl::InvalidArgumentError(
        absl::StrCat(data.source,
                     ": size, fit, channels and augment have nothing to act on: no "
                     "input has the shape of pictures"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<int64_t>> ChooseRows(int64_t count, const DataOptions& options,
                                                absl::string_view source) {
  if (options.offset >= count) {
    return absl::InvalidArgumentError(absl::StrCat(source, ": offset=", options.offset,
                                                   " leaves nothing of ", count, " examples"));
  }
  std::vector<int64_t> rows(count);
  std::iota(rows.begin(), rows.end(), 0);
  if (options.shuffle) rows = Permutation(count, *options.shuffle, 0);
  rows.erase(rows.begin(), rows.begin() + options.offset);
  if (options.limit && *options.limit < static_cast<int64_t>(rows.size())) {
    rows.resize(*options.limit);
  }
  return rows;
}

absl::StatusOr<std::unique_ptr<Dataset>> MakeArrayDataset(LoadedData data,
                                                          const DataOptions& options) {
  std::stable_partition(data.arrays.begin(), data.arrays.end(),
                        [](const LoadedArray& a) { return !a.is_label; });
  ONWARD_ASSIGN_OR_RETURN(const int64_t count, CountRows(data));
  std::vector<int64_t> rows;
  if (data.rows_chosen) {
    rows.resize(count);
    std::iota(rows.begin(), rows.end(), 0);
  } else {
    ONWARD_ASSIGN_OR_RETURN(rows, ChooseRows(count, options, data.source));
  }
  ONWARD_RETURN_IF_ERROR(CheckOptionsApply(data, options));
  std::vector<Field> fields;
  for (LoadedArray& a : data.arrays) {
    ONWARD_ASSIGN_OR_RETURN(fields.emplace_back(),
                            Field::Create(a, options, Inputs(data), data.source));
  }
  const bool names_classes = !data.class_names.empty();
  if (data.class_names.empty() && data.classes <= kMostClassNames) {
    for (int64_t c = 0; c < data.classes; ++c) data.class_names.push_back(absl::StrCat(c));
  }
  for (int64_t c = static_cast<int64_t>(data.class_names.size());
       !data.class_names.empty() && c < data.classes; ++c) {
    data.class_names.push_back(absl::StrCat(c));
  }
  data.arrays.clear();
  return std::make_unique<ArrayDataset>(std::move(fields), std::move(rows), names_classes,
                                        std::move(data), options.hints);
}

}  // namespace onward
