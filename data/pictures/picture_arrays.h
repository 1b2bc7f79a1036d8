// SPDX-License-Identifier: Apache-2.0
// Arrays whose rows are pictures, resized and varied like those from files.
#ifndef ONWARD_DATA_PICTURES_PICTURE_ARRAYS_H_
#define ONWARD_DATA_PICTURES_PICTURE_ARRAYS_H_

#include <optional>

#include "absl/status/statusor.h"
#include "data/arrays/rows.h"
#include "data/pictures/picture_options.h"

namespace onward {

// How the pixels of an example are arranged.
struct PictureLayout {
  PictureInfo info;
  bool planes = false;       // [C, H, W], not [H, W, C]
  bool no_channels = false;  // [H, W]

  int height_axis() const { return planes && !no_channels ? 1 : 0; }
};
// Nothing for what has neither 2 axes nor 3 with 1 or 3 channels first or last.
std::optional<PictureLayout> LayoutOf(const Shape& example);

// Whether rows are bytes or floats [C, H, W], [H, W, C] or [H, W] with 1 or 3 channels.
bool ArePictures(const RowSource& rows);

// The rows in the size, channels and variations that the options ask for; axes stay where
// they are. Floats can be resized and nothing else: what they mean is not known.
absl::StatusOr<Rows> PreparedPictures(const Rows& rows, const PictureOptions& options);

}  // namespace onward

#endif  // ONWARD_DATA_PICTURES_PICTURE_ARRAYS_H_
