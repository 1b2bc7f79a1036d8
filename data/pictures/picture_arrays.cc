// SPDX-License-Identifier: Apache-2.0
#include "data/pictures/picture_arrays.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace onward {
namespace {

Shape ShapeOf(const PictureLayout& layout) {
  const auto [height, width, channels] = layout.info;
  if (layout.no_channels && channels == 1) return {height, width};
  return layout.planes ? Shape{channels, height, width} : Shape{height, width, channels};
}

// Reads a row of another source, in place where it is in memory.
class RowBytes {
 public:
  absl::Status Read(const RowSource& rows, int64_t row) {
    data_ = static_cast<const char*>(rows.View(row));
    if (data_ != nullptr) return absl::OkStatus();
    scratch_.resize(rows.row_bytes());
    data_ = scratch_.data();
    return rows.Read(row, 1, scratch_.data());
  }
  const char* data() const { return data_; }

 private:
  std::vector<char> scratch_;
  const char* data_ = nullptr;
};

class ByteArrays : public RowSource {
 public:
  ByteArrays(Rows rows, const PictureLayout& from, const PictureLayout& to, PictureRecipe recipe)
      : RowSource(rows->count(), DType::kUint8, ShapeOf(to)),
        rows_(std::move(rows)),
        from_(from),
        to_(to),
        recipe_(std::move(recipe)) {}

  absl::Status Read(int64_t first, int64_t count, void* to) const override {
    for (int64_t i = 0; i < count; ++i) {
      ONWARD_RETURN_IF_ERROR(
          ReadOne(first + i, nullptr, static_cast<uint8_t*>(to) + i * elements()));
    }
    return absl::OkStatus();
  }
  absl::Status ReadVaried(int64_t row, uint64_t key, void* to) const override {
    return ReadOne(row, &key, static_cast<uint8_t*>(to));
  }
  RowCost cost() const override { return RowCost::kDecoding; }

 private:
  absl::Status ReadOne(int64_t row, const uint64_t* key, uint8_t* to) const {
    RowBytes bytes;
    ONWARD_RETURN_IF_ERROR(bytes.Read(*rows_, row));
    const auto* from = reinterpret_cast<const uint8_t*>(bytes.data());
    const Picture picture =
        from_.planes ? FromPlanes(from, from_.info)
                     : Picture{from_.info, std::vector<uint8_t>(from, from + rows_->elements())};
    const Picture out = Prepared(picture, recipe_, key);
    if (to_.planes) {
      ToPlanes(out, to);
    } else {
      std::memcpy(to, out.pixels.data(), out.pixels.size());
    }
    return absl::OkStatus();
  }

  Rows rows_;
  PictureLayout from_, to_;
  PictureRecipe recipe_;
};

class FloatArrays : public RowSource {
 public:
  FloatArrays(Rows rows, const PictureLayout& from, const PictureLayout& to, Fit fit)
      : RowSource(rows->count(), DType::kFloat, ShapeOf(to)),
        rows_(std::move(rows)),
        from_(from),
        to_(to),
        fit_(fit) {}

  absl::Status Read(int64_t first, int64_t count, void* to) const override {
    for (int64_t i = 0; i < count; ++i) {
      ONWARD_RETURN_IF_ERROR(ReadOne(first + i, static_cast<float*>(to) + i * elements()));
    }
    return absl::OkStatus();
  }
  RowCost cost() const override { return RowCost::kDecoding; }

 private:
  // Planes are pictures of one channel each.
  absl::Status ReadOne(int64_t row, float* to) const {
    RowBytes bytes;
    ONWARD_RETURN_IF_ERROR(bytes.Read(*rows_, row));
    const auto* from = reinterpret_cast<const float*>(bytes.data());
    PictureInfo part = from_.info;
    if (from_.planes) part.channels = 1;
    const int64_t pixels = part.height * part.width * part.channels;
    for (int64_t at = 0; at < rows_->elements(); at += pixels) {
      const std::vector<float> fitted = FitPixels(std::vector<float>(from + at, from + at + pixels),
                                                  part, to_.info.height, to_.info.width, fit_);
      to = std::copy(fitted.begin(), fitted.end(), to);
    }
    return absl::OkStatus();
  }

  Rows rows_;
  PictureLayout from_, to_;
  Fit fit_;
};

bool HasPixels(DType dtype) { return dtype == DType::kUint8 || dtype == DType::kFloat; }

}  // namespace

// Where both ends could be channels, the first are.
std::optional<PictureLayout> LayoutOf(const Shape& shape) {
  const auto few = [](int64_t dim) { return dim == 1 || dim == 3; };
  for (int64_t dim : shape) {
    if (dim < 1 || dim > 16384) return std::nullopt;
  }
  if (shape.rank() == 2) return PictureLayout{{shape[0], shape[1], 1}, true, true};
  if (shape.rank() != 3) return std::nullopt;
  if (few(shape[0])) return PictureLayout{{shape[1], shape[2], static_cast<int>(shape[0])}, true};
  if (few(shape[2])) return PictureLayout{{shape[0], shape[1], static_cast<int>(shape[2])}, false};
  return std::nullopt;
}

bool ArePictures(const RowSource& rows) {
  return HasPixels(rows.dtype()) && LayoutOf(rows.shape()).has_value();
}

absl::StatusOr<Rows> PreparedPictures(const Rows& rows, const PictureOptions& options) {
  const std::optional<PictureLayout> from = LayoutOf(rows->shape());
  if (!from || !HasPixels(rows->dtype())) {
    return absl::InvalidArgumentError(
        absl::StrCat("size, fit, channels and augment are for pictures, uint8 or float [1 or 3, "
                     "height, width]; it is ",
                     DTypeName(rows->dtype()), " ", rows->shape().ToString()));
  }
  PictureLayout to = *from;
  if (options.size) {
    to.info.height = (*options.size)[0];
    to.info.width = (*options.size)[1];
  }
  if (rows->dtype() == DType::kFloat) {
    if (options.channels != 0 || !options.augment.empty()) {
      return absl::InvalidArgumentError(
          "channels and augment are for pictures of bytes (uint8), and it is float; store the "
          "pictures as bytes");
    }
    return Rows(std::make_shared<FloatArrays>(rows, *from, to, options.fit));
  }
  if (options.channels != 0) to.info.channels = options.channels;
  PictureRecipe recipe{to.info, options.fit, options.augment};
  return Rows(std::make_shared<ByteArrays>(rows, *from, to, std::move(recipe)));
}

}  // namespace onward
