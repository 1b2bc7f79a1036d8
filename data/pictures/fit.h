// SPDX-License-Identifier: Apache-2.0
// Pictures in another size.
#ifndef ONWARD_DATA_PICTURES_FIT_H_
#define ONWARD_DATA_PICTURES_FIT_H_

#include <cstdint>
#include <vector>

#include "core/picture/picture.h"

namespace onward {

// Bilinear; when shrinking every pixel counts, as in Pillow.
Picture Resize(const Picture& picture, int64_t height, int64_t width);

// What becomes of a picture whose sides relate otherwise than those asked for.
enum class Fit {
  kStretch,
  kCrop,  // the middle of it fills the size
  kPad,   // all of it, with black at its sides
};

Picture FitPicture(const Picture& picture, int64_t height, int64_t width, Fit fit);
// The same of pixels [height, width, channels] that are numbers of any range.
std::vector<float> FitPixels(const std::vector<float>& pixels, const PictureInfo& info,
                             int64_t height, int64_t width, Fit fit);

}  // namespace onward

#endif  // ONWARD_DATA_PICTURES_FIT_H_
