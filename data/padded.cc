// SPDX-License-Identifier: Apache-2.0
#include "data/padded.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace onward {
namespace {

class PaddedDataset : public Dataset {
 public:
  PaddedDataset(std::vector<PaddedField> fields, PaddedOptions options)
      : fields_(std::move(fields)), options_(std::move(options)) {
    std::stable_partition(fields_.begin(), fields_.end(),
                          [](const PaddedField& f) { return !f.is_label; });
  }

  int64_t size() const override { return options_.size; }
  std::vector<FieldInfo> fields() const override {
    std::vector<FieldInfo> infos;
    for (const PaddedField& f : fields_) {
      infos.push_back({f.name, f.dtype, {options_.longest}, f.is_label, /*varies=*/true});
    }
    return infos;
  }
  bool rows_are_independent() const override { return false; }
  int64_t classes() const override { return options_.classes; }
  std::vector<std::string> class_names() const override { return options_.class_names; }
  bool names_classes() const override { return !options_.class_names.empty(); }
  std::string source() const override { return options_.source; }

  absl::Status Fill(absl::Span<const int64_t> indices, std::vector<Tensor>* batch) const override {
    std::vector<std::vector<Tensor>> examples(fields_.size());
    int64_t length = 0;
    for (int64_t i : indices) {
      if (i < 0 || i >= size()) {
        return absl::OutOfRangeError(absl::StrCat("example ", i, " of a data set of ", size()));
      }
      for (size_t k = 0; k < fields_.size(); ++k) {
        ONWARD_ASSIGN_OR_RETURN(examples[k].emplace_back(), fields_[k].read(i));
        ONWARD_RETURN_IF_ERROR(CheckExample(i, k, examples[k].back(), examples[0].back()));
        length = std::max(length, examples[k].back().elements());
      }
    }
    const int64_t multiple = options_.multiple;
    length =
        std::clamp<int64_t>((length + multiple - 1) / multiple * multiple, 1, options_.longest);
    batch->resize(fields_.size());
    for (size_t k = 0; k < fields_.size(); ++k) Pad(fields_[k], examples[k], length, &(*batch)[k]);
    return absl::OkStatus();
  }

 private:
  absl::Status CheckExample(int64_t i, size_t k, const Tensor& values, const Tensor& first) const {
    if (values.dtype() == fields_[k].dtype && values.elements() == first.elements()) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        absl::StrCat(place(i), ": '", fields_[k].name, "' is ", DTypeName(values.dtype()), " [",
                     values.elements(), "], expected ", DTypeName(fields_[k].dtype), " [",
                     first.elements(), "]"));
  }

  static void Pad(const PaddedField& field, const std::vector<Tensor>& examples, int64_t length,
                  Tensor* out) {
    const Shape shape{static_cast<int64_t>(examples.size()), length};
    if (out->dtype() != field.dtype || out->shape() != shape) *out = Tensor(field.dtype, shape);
    const size_t item = DTypeBits(field.dtype) / 8;
    const Tensor padding = ScalarOf(field.dtype, field.padding);
    char* to = out->data<char>();
    for (const Tensor& example : examples) {
      const int64_t taken = std::min(example.elements(), length);
      std::memcpy(to, example.raw(), static_cast<size_t>(taken) * item);
      to += static_cast<size_t>(taken) * item;
      for (int64_t i = taken; i < length; ++i, to += item) std::memcpy(to, padding.raw(), item);
    }
  }

  std::vector<PaddedField> fields_;
  PaddedOptions options_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Dataset>> MakePaddedDataset(std::vector<PaddedField> fields,
                                                           const PaddedOptions& options) {
  if (options.size < 1 || options.longest < 1 || options.multiple < 1 || fields.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        options.source, ": needs examples, fields and a length from 1; has ", options.size,
        " examples of ", fields.size(), " fields up to ", options.longest, " long"));
  }
  for (const PaddedField& f : fields) {
    if (f.dtype == DType::kString || DTypeBits(f.dtype) % 8 != 0) {
      return absl::InvalidArgumentError(absl::StrCat(options.source, ": '", f.name, "' is ",
                                                     DTypeName(f.dtype), ", expected numbers"));
    }
  }
  return std::make_unique<PaddedDataset>(std::move(fields), options);
}

}  // namespace onward
