// SPDX-License-Identifier: Apache-2.0
#include "data/arrays/array_dataset.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "core/base/parallel.h"
#include "core/base/status.h"
#include "core/tensor/dispatch.h"
#include "data/permutation.h"

namespace onward {
namespace {

constexpr int64_t kMostClassNames = 1000;

// value = stored * factor + offset, with one pair per channel.
struct Affine {
  std::vector<double> factor, offset;
  int64_t channel_stride = 1;  // elements between channels within an example
  int64_t channels() const { return static_cast<int64_t>(factor.size()); }
};

struct Field {
  FieldInfo info;
  Tensor rows;
  int64_t elements = 0;  // per example
  bool affine = false;
  Affine map;
  std::vector<std::array<float, 256>> table;  // per channel, where bytes are stored
};

int64_t Channel(const Affine& map, int64_t element) {
  return map.channels() == 1 ? 0 : element / map.channel_stride % map.channels();
}

template <typename From, typename To>
void MapRow(const Field& f, const From* from, To* to) {
  // Runs of one channel: the whole example, a plane, or (channels last) a single element.
  const int64_t run = f.map.channels() == 1 ? f.elements : f.map.channel_stride;
  for (int64_t begin = 0; begin < f.elements; begin += run) {
    const int64_t c = Channel(f.map, begin);
    if constexpr (std::is_same_v<From, uint8_t> && std::is_same_v<To, float>) {
      const float* table = f.table[c].data();
      for (int64_t i = begin; i < begin + run; ++i) to[i] = table[from[i]];
    } else {
      const double a = f.map.factor[c], b = f.map.offset[c];
      for (int64_t i = begin; i < begin + run; ++i) {
        to[i] = FromDouble<To>(static_cast<double>(from[i]) * a + b);
      }
    }
  }
}

void CopyRow(const Field& f, int64_t row, int64_t to_row, Tensor* out) {
  if (f.affine) {
    DispatchNumeric(f.rows.dtype(), [&]<typename From>() {
      const From* from = f.rows.data<From>() + row * f.elements;
      DispatchFloating(f.info.dtype, [&]<typename To>() {
        MapRow(f, from, out->data<To>() + to_row * f.elements);
      });
    });
  } else if (f.rows.dtype() == DType::kString) {
    const std::string* from = f.rows.data<std::string>() + row * f.elements;
    std::copy(from, from + f.elements, out->data<std::string>() + to_row * f.elements);
  } else {
    const size_t bytes = static_cast<size_t>(f.elements) * DTypeBits(f.rows.dtype()) / 8;
    std::memcpy(out->data<char>() + to_row * bytes, f.rows.data<char>() + row * bytes, bytes);
  }
}

class ArrayDataset : public Dataset {
 public:
  ArrayDataset(std::vector<Field> fields, std::vector<int64_t> rows, bool names_classes,
               LoadedData data)
      : fields_(std::move(fields)),
        rows_(std::move(rows)),
        names_classes_(names_classes),
        data_(std::move(data)) {}

  int64_t size() const override { return static_cast<int64_t>(rows_.size()); }

  std::vector<FieldInfo> fields() const override {
    std::vector<FieldInfo> infos;
    for (const Field& f : fields_) infos.push_back(f.info);
    return infos;
  }

  absl::Status Fill(absl::Span<const int64_t> indices, std::vector<Tensor>* batch) const override {
    for (int64_t i : indices) {
      if (i < 0 || i >= size()) {
        return absl::OutOfRangeError(absl::StrCat("example ", i, " of a data set of ", size()));
      }
    }
    const int64_t count = static_cast<int64_t>(indices.size());
    batch->resize(fields_.size());
    for (size_t k = 0; k < fields_.size(); ++k) {
      const Field& f = fields_[k];
      Shape shape{count};
      for (int64_t d : f.info.shape) shape.push_back(d);
      Tensor& out = (*batch)[k];
      if (out.dtype() != f.info.dtype || out.shape() != shape) out = Tensor(f.info.dtype, shape);
      const int64_t grain = std::max<int64_t>(1, 65536 / std::max<int64_t>(1, f.elements));
      ParallelFor(count, grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) CopyRow(f, rows_[indices[i]], i, &out);
      });
    }
    return absl::OkStatus();
  }

  int64_t classes() const override { return data_.classes; }
  std::vector<std::string> class_names() const override { return data_.class_names; }
  bool names_classes() const override { return names_classes_; }

  Tensor class_labels() const override {
    if (data_.classes == 0 || fields_.empty() || !fields_.back().info.is_label) return Tensor();
    const Field& f = fields_.back();
    Shape shape{size()};
    for (int64_t d : f.info.shape) shape.push_back(d);
    Tensor labels(DType::kInt64, shape);
    for (int64_t i = 0; i < size(); ++i) CopyRow(f, rows_[i], i, &labels);
    return labels;
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
};

// [N, C, H, W] as [N, H, W, C], for elements of any size.
Tensor ChannelsLast(const Tensor& t) {
  const int64_t n = t.shape()[0], c = t.shape()[1], area = t.shape()[2] * t.shape()[3];
  const size_t item = DTypeBits(t.dtype()) / 8;
  Tensor out(t.dtype(), {n, t.shape()[2], t.shape()[3], c});
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t p = 0; p < area; ++p) {
      for (int64_t k = 0; k < c; ++k) {
        std::memcpy(out.data<char>() + ((i * area + p) * c + k) * item,
                    t.data<char>() + ((i * c + k) * area + p) * item, item);
      }
    }
  }
  return out;
}

absl::Status MakeAffine(const DataOptions& o, double default_scale, absl::string_view source,
                        Field* f) {
  const Shape& shape = f->info.shape;
  const int axis = o.channels_last ? shape.rank() - 1 : 0;
  const int64_t channels = shape.rank() == 0 ? 1 : shape[axis];
  const size_t given = std::max<size_t>({o.mean.size(), o.std.size(), 1});
  for (const auto* list : {&o.mean, &o.std}) {
    if (list->size() > 1 && static_cast<int64_t>(list->size()) != channels) {
      return absl::InvalidArgumentError(
          absl::StrCat(source, ": mean and std take one number or one per channel; '", f->info.name,
                       "' has shape ", shape.ToString(), ", so ", channels, " channels, but ",
                       list->size(), " numbers are given"));
    }
  }
  const auto pick = [](const std::vector<double>& list, size_t c, double otherwise) {
    return list.empty() ? otherwise : list.size() == 1 ? list[0] : list[c];
  };
  const double scale = o.scale.value_or(default_scale), shift = o.shift.value_or(0);
  for (size_t c = 0; c < given; ++c) {
    const double divide = pick(o.std, c, 1);
    f->map.factor.push_back(scale / divide);
    f->map.offset.push_back((shift - pick(o.mean, c, 0)) / divide);
  }
  if (given > 1) f->map.channel_stride = shape.elements(axis + 1, shape.rank());
  f->affine = true;
  if (!IsFloating(f->rows.dtype())) f->info.dtype = DType::kFloat;
  if (f->rows.dtype() == DType::kUint8) {
    for (size_t c = 0; c < given; ++c) {
      auto& table = f->table.emplace_back();
      for (int v = 0; v < 256; ++v) {
        table[v] = static_cast<float>(v * f->map.factor[c] + f->map.offset[c]);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Rearrange(const DataOptions& o, absl::string_view source, Field* f) {
  if (o.shape) {
    if (o.shape->elements() != f->elements) {
      return absl::InvalidArgumentError(absl::StrCat(
          source, ": shape=", o.shape->ToString(), " has ", o.shape->elements(), " elements, but '",
          f->info.name, "' has ", f->elements, " per example, shape ", f->info.shape.ToString()));
    }
    f->info.shape = *o.shape;
    Shape all{f->rows.shape()[0]};
    for (int64_t d : *o.shape) all.push_back(d);
    f->rows = f->rows.Reshaped(std::move(all));
  }
  if (o.channels_last) {
    if (f->info.shape.rank() != 3 || f->rows.dtype() == DType::kString) {
      return absl::InvalidArgumentError(
          absl::StrCat(source, ": layout=nhwc needs examples of shape [channels, height, width]; '",
                       f->info.name, "' has ", f->info.shape.ToString()));
    }
    f->rows = ChannelsLast(f->rows);
    f->info.shape = {f->info.shape[1], f->info.shape[2], f->info.shape[0]};
  }
  return absl::OkStatus();
}

// Token ids must not be scaled with the images beside them; a lone input is what
// the user means, whatever its type.
bool TakesScaling(const LoadedArray& a, int inputs) {
  if (a.is_label || a.rows.dtype() == DType::kString) return false;
  return inputs == 1 || IsFloating(a.rows.dtype()) || a.rows.dtype() == DType::kUint8;
}

absl::StatusOr<Field> MakeField(const LoadedArray& a, const DataOptions& o, int inputs,
                                absl::string_view source) {
  Field f;
  f.rows = a.rows;
  const Shape& all = a.rows.shape();
  f.info = {a.name, a.rows.dtype(), Shape(all.dims().subspan(1)), a.is_label};
  f.elements = f.info.shape.elements();
  if (a.is_label) return f;
  if (DTypeBits(f.rows.dtype()) % 8 != 0) {
    return absl::UnimplementedError(absl::StrCat(source, ": '", a.name, "' has a packed type"));
  }
  if (o.shape && inputs > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(source, ": shape= needs a single input, but there are ", inputs));
  }
  ONWARD_RETURN_IF_ERROR(Rearrange(o, source, &f));
  if ((o.scales() || a.default_scale != 1) && TakesScaling(a, inputs)) {
    bool numeric = DispatchNumeric(f.rows.dtype(), []<typename T>() {});
    if (!numeric) {
      return absl::InvalidArgumentError(absl::StrCat(
          source, ": '", a.name, "' is ", DTypeName(f.rows.dtype()), " and cannot be scaled"));
    }
    ONWARD_RETURN_IF_ERROR(MakeAffine(o, a.default_scale, source, &f));
  }
  return f;
}

absl::StatusOr<int64_t> CountRows(const LoadedData& data) {
  int64_t count = -1;
  for (const LoadedArray& a : data.arrays) {
    if (a.rows.shape().rank() == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          data.source, ": '", a.name, "' is a single number, expected one row per example"));
    }
    const int64_t rows = a.rows.shape()[0];
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
  int inputs = 0;
  bool scaled = false;
  for (const LoadedArray& a : data.arrays) inputs += !a.is_label;
  for (const LoadedArray& a : data.arrays) scaled |= TakesScaling(a, inputs);
  if (options.scales() && !scaled) {
    return absl::InvalidArgumentError(absl::StrCat(
        data.source,
        ": scale, shift, mean and std have nothing to act on: no input is float or uint8"));
  }
  std::vector<Field> fields;
  for (LoadedArray& a : data.arrays) {
    ONWARD_ASSIGN_OR_RETURN(Field f, MakeField(a, options, inputs, data.source));
    a.rows = Tensor();
    fields.push_back(std::move(f));
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
                                        std::move(data));
}

}  // namespace onward
