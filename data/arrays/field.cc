// SPDX-License-Identifier: Apache-2.0
#include "data/arrays/field.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "absl/strings/str_cat.h"
#include "core/base/parallel.h"
#include "core/base/status.h"
#include "core/tensor/dispatch.h"
#include "data/pictures/picture_arrays.h"

namespace onward {
namespace {

// How many elements are worth a thread of their own where they are only copied.
constexpr int64_t kCopyGrain = 65536;

}  // namespace

template <typename From, typename To>
void Field::MapRow(const From* from, To* to) const {
  // Runs of one channel: the whole example, a plane, or (channels last) a single element.
  const int64_t run = map_.channels() == 1 ? elements_ : map_.channel_stride;
  for (int64_t begin = 0; begin < elements_; begin += run) {
    const int64_t c = map_.channels() == 1 ? 0 : begin / map_.channel_stride % map_.channels();
    if constexpr (std::is_same_v<From, uint8_t> && std::is_same_v<To, float>) {
      const float* table = table_[c].data();
      for (int64_t i = begin; i < begin + run; ++i) to[i] = table[from[i]];
    } else {
      const double a = map_.factor[c], b = map_.offset[c];
      for (int64_t i = begin; i < begin + run; ++i) {
        to[i] = FromDouble<To>(static_cast<double>(from[i]) * a + b);
      }
    }
  }
}

void Field::Put(const void* from, int64_t to_row, Tensor* out) const {
  if (affine_) {
    DispatchNumeric(rows_->dtype(), [&]<typename From>() {
      DispatchFloating(info_.dtype, [&]<typename To>() {
        MapRow(static_cast<const From*>(from), out->data<To>() + to_row * elements_);
      });
    });
  } else if (rows_->dtype() == DType::kString) {
    const auto* text = static_cast<const std::string*>(from);
    std::copy(text, text + elements_, out->data<std::string>() + to_row * elements_);
  } else {
    const size_t bytes = rows_->row_bytes();
    std::memcpy(out->data<char>() + static_cast<size_t>(to_row) * bytes, from, bytes);
  }
}

absl::Status Field::FillRow(int64_t row, const uint64_t* key, void* scratch, int64_t to_row,
                            Tensor* out) const {
  const void* view = rows_->View(row);
  if (view != nullptr) {
    Put(view, to_row, out);
    return absl::OkStatus();
  }
  void* to =
      affine_ ? scratch : out->data<char>() + static_cast<size_t>(to_row) * rows_->row_bytes();
  ONWARD_RETURN_IF_ERROR(key == nullptr ? rows_->Read(row, 1, to)
                                        : rows_->ReadVaried(row, *key, to));
  if (affine_) Put(scratch, to_row, out);
  return absl::OkStatus();
}

absl::Status Field::Fill(absl::Span<const int64_t> rows, absl::Span<const uint64_t> keys,
                         Tensor* out) const {
  const int64_t count = static_cast<int64_t>(rows.size());
  const Shape shape = BatchShape(count, info_.shape);
  if (out->dtype() != info_.dtype || out->shape() != shape) *out = Tensor(info_.dtype, shape);
  const int64_t grain = rows_->cost() == RowCost::kDecoding
                            ? 1
                            : std::max<int64_t>(1, kCopyGrain / std::max<int64_t>(1, elements_));
  const bool reads = !rows_.in_memory();
  std::vector<absl::Status> results(reads ? rows.size() : 0);
  ParallelFor(count, grain, [&](int64_t begin, int64_t end) {
    std::vector<char> scratch;
    for (int64_t i = begin; i < end; ++i) {
      if (!reads) {
        Put(rows_->View(rows[i]), i, out);
        continue;
      }
      try {
        if (affine_) scratch.resize(rows_->row_bytes());
        results[i] = FillRow(rows[i], keys.empty() ? nullptr : &keys[i], scratch.data(), i, out);
      } catch (const std::bad_alloc&) {
        results[i] = absl::ResourceExhaustedError("out of memory while reading examples");
      }
    }
  });
  for (const absl::Status& result : results) ONWARD_RETURN_IF_ERROR(result);
  return absl::OkStatus();
}

absl::Status Field::MakeAffine(const DataOptions& o, double default_scale,
                               absl::string_view source) {
  const Shape& shape = info_.shape;
  const int axis = o.channels_last ? shape.rank() - 1 : 0;
  const int64_t channels = shape.rank() == 0 ? 1 : shape[axis];
  const size_t given = std::max<size_t>({o.mean.size(), o.std.size(), 1});
  for (const auto* list : {&o.mean, &o.std}) {
    if (list->size() > 1 && static_cast<int64_t>(list->size()) != channels) {
      return absl::InvalidArgumentError(
          absl::StrCat(source, ": mean and std take one number or one per channel; '", info_.name,
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
    map_.factor.push_back(scale / divide);
    map_.offset.push_back((shift - pick(o.mean, c, 0)) / divide);
  }
  if (given > 1) map_.channel_stride = shape.elements(axis + 1, shape.rank());
  affine_ = true;
  if (!IsFloating(rows_->dtype())) info_.dtype = DType::kFloat;
  if (rows_->dtype() == DType::kUint8) {
    for (size_t c = 0; c < given; ++c) {
      auto& table = table_.emplace_back();
      for (int v = 0; v < 256; ++v) {
        table[v] = static_cast<float>(v * map_.factor[c] + map_.offset[c]);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Field::Rearrange(const LoadedArray& array, const DataOptions& o, int inputs,
                              absl::string_view source) {
  if (o.shape) {
    if (o.shape->elements() != rows_->elements()) {
      return absl::InvalidArgumentError(
          absl::StrCat(source, ": shape=", o.shape->ToString(), " has ", o.shape->elements(),
                       " elements, but '", info_.name, "' has ", rows_->elements(),
                       " per example, shape ", rows_->shape().ToString()));
    }
    rows_ = ReshapedRows(rows_, *o.shape);
  }
  if (!array.pictures_prepared && o.pictures.prepares() && (inputs == 1 || ArePictures(*rows_))) {
    auto prepared = PreparedPictures(rows_, o.pictures);
    if (!prepared.ok()) {
      return Annotate(prepared.status(), absl::StrCat(source, ": '", info_.name, "'"));
    }
    rows_ = *std::move(prepared);
  }
  if (o.channels_last) {
    if (rows_->shape().rank() != 3 || rows_->dtype() == DType::kString) {
      return absl::InvalidArgumentError(
          absl::StrCat(source, ": layout=nhwc needs examples of shape [channels, height, width]; '",
                       info_.name, "' has ", rows_->shape().ToString()));
    }
    rows_ = ChannelsLastRows(rows_);
  }
  info_.shape = rows_->shape();
  elements_ = rows_->elements();
  return absl::OkStatus();
}

bool Field::TakesScaling(const LoadedArray& a, int inputs) {
  if (a.is_label || a.rows->dtype() == DType::kString) return false;
  return inputs == 1 || IsFloating(a.rows->dtype()) || a.rows->dtype() == DType::kUint8;
}

absl::StatusOr<Field> Field::Create(const LoadedArray& a, const DataOptions& o, int inputs,
                                    absl::string_view source) {
  Field f;
  f.rows_ = a.rows;
  f.info_ = {a.name, a.rows->dtype(), a.rows->shape(), a.is_label};
  f.elements_ = a.rows->elements();
  if (a.is_label) return f;
  if (DTypeBits(a.rows->dtype()) % 8 != 0) {
    return absl::UnimplementedError(absl::StrCat(source, ": '", a.name, "' has a packed type"));
  }
  if (o.shape && inputs > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(source, ": shape= needs a single input, but there are ", inputs));
  }
  ONWARD_RETURN_IF_ERROR(f.Rearrange(a, o, inputs, source));
  if ((o.scales() || a.default_scale != 1) && TakesScaling(a, inputs)) {
    const bool numeric = DispatchNumeric(a.rows->dtype(), []<typename T>() {});
    if (!numeric) {
      return absl::InvalidArgumentError(absl::StrCat(
          source, ": '", a.name, "' is ", DTypeName(a.rows->dtype()), " and cannot be scaled"));
    }
    ONWARD_RETURN_IF_ERROR(f.MakeAffine(o, a.default_scale, source));
  }
  return f;
}

}  // namespace onward
