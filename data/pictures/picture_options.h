// SPDX-License-Identifier: Apache-2.0
// Options of a data spec that are about pictures.
#ifndef ONWARD_DATA_PICTURES_PICTURE_OPTIONS_H_
#define ONWARD_DATA_PICTURES_PICTURE_OPTIONS_H_

#include <optional>

#include "core/base/shape.h"
#include "data/pictures/augment.h"
#include "data/pictures/fit.h"

namespace onward {

// What to do about files that hold no whole picture. kFound: what their beginnings and ends
// show is refused before the run, the rest when its batch comes. Otherwise every picture is
// decoded once before the run.
enum class Broken { kFound, kRefuse, kSkip };

struct PictureOptions {
  std::optional<Shape> size;        // height, width
  std::optional<Shape> model_size;  // that the model takes, for messages
  Fit fit = Fit::kStretch;
  int channels = 0;  // 1, 3, or 0 for as found
  Augmentation augment;
  Broken broken = Broken::kFound;

  // Whether pixels do not stay as they are stored.
  bool prepares() const { return size || channels != 0 || !augment.empty(); }
};

// What all pictures of a data set become.
struct PictureRecipe {
  PictureInfo info;
  Fit fit = Fit::kStretch;
  Augmentation augment;
};

// In the channels and size of the recipe, and where there is a key in its variation.
Picture Prepared(const Picture& picture, const PictureRecipe& recipe, const uint64_t* key);

// Pixels [height, width, channels] as planes [channels, height, width], and back.
void ToPlanes(const Picture& picture, uint8_t* planes);
Picture FromPlanes(const uint8_t* planes, const PictureInfo& info);

}  // namespace onward

#endif  // ONWARD_DATA_PICTURES_PICTURE_OPTIONS_H_
