// SPDX-License-Identifier: Apache-2.0
// Arrays whose rows are pictures, resized and varied like those from files.
#ifndef ONWARD_DATA_PICTURES_PICTURE_ARRAYS_H_
#define ONWARD_DATA_PICTURES_PICTURE_ARRAYS_H_

#include "absl/status/statusor.h"
#include "data/arrays/rows.h"
#include "data/pictures/picture_options.h"

namespace onward {

// Whether rows are bytes or floats [C, H, W], [H, W, C] or [H, W] with 1 or 3 channels.
bool ArePictures(const RowSource& rows);

// The rows in the size, channels and variations that the options ask for; axes stay where
// they are. Floats can be resized and nothing else: what they mean is not known.
absl::StatusOr<Rows> PreparedPictures(const Rows& rows, const PictureOptions& options);

}  // namespace onward

#endif  // ONWARD_DATA_PICTURES_PICTURE_ARRAYS_H_
