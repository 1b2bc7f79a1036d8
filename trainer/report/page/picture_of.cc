// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "trainer/report/page/report.h"

namespace onward {
namespace {

absl::StatusOr<PictureInfo> PictureShape(const Shape& shape, bool* channels_last) {
  const int rank = shape.rank() - 1;
  *channels_last = false;
  const auto small = [](int64_t c) { return c == 1 || c == 3; };
  if (rank == 3 && small(shape[1])) {
    return PictureInfo{shape[2], shape[3], static_cast<int>(shape[1])};
  }
  if (rank == 3 && small(shape[3])) {
    *channels_last = true;
    return PictureInfo{shape[1], shape[2], static_cast<int>(shape[3])};
  }
  if (rank == 2) return PictureInfo{shape[1], shape[2], 1};
  if (rank == 1) {
    const int64_t side = std::llround(std::sqrt(static_cast<double>(shape[1])));
    if (side * side == shape[1] && side >= 8) return PictureInfo{side, side, 1};
  }
  return absl::InvalidArgumentError(
      absl::StrCat("examples of shape ", shape.ToString(), " are not pictures"));
}

}  // namespace

absl::StatusOr<Picture> PictureOf(const Tensor& batch, int64_t row) {
  const Shape& shape = batch.shape();
  if (shape.rank() < 2 || row < 0 || row >= shape[0]) {
    return absl::InvalidArgumentError(
        absl::StrCat("no example ", row, " in a batch of shape ", shape.ToString()));
  }
  Picture out;
  bool channels_last = false;
  ONWARD_ASSIGN_OR_RETURN(out.info, PictureShape(shape, &channels_last));
  const int64_t count = shape.elements(1, shape.rank()), area = out.info.height * out.info.width;
  if (count < 1 || area > (1 << 24)) {
    return absl::InvalidArgumentError("the examples are empty or too large");
  }
  const size_t item = DTypeBits(batch.dtype()) / 8;
  if (item == 0 || batch.dtype() == DType::kString) {
    return absl::InvalidArgumentError("the examples are not numbers");
  }
  const Tensor one(batch.dtype(), {count},
                   const_cast<char*>(batch.data<char>()) + row * count * item, nullptr);
  ONWARD_ASSIGN_OR_RETURN(std::vector<double> values, ToDoubles(one));
  double low = HUGE_VAL, high = -HUGE_VAL;
  for (double& v : values) {
    if (!std::isfinite(v)) v = 0;
    low = std::min(low, v);
    high = std::max(high, v);
  }
  if (low >= 0 && high <= 255) {
    low = 0;
    high = high <= 1 ? 1 : 255;
  }
  const double scale = high > low ? 255 / (high - low) : 0;
  out.pixels.resize(static_cast<size_t>(count));
  const int channels = out.info.channels;
  for (int64_t i = 0; i < area; ++i) {
    for (int c = 0; c < channels; ++c) {
      const double v = values[channels_last ? i * channels + c : c * area + i];
      out.pixels[i * channels + c] = static_cast<uint8_t>(std::lround((v - low) * scale));
    }
  }
  return out;
}

}  // namespace onward
