// SPDX-License-Identifier: Apache-2.0
#include "data/pictures/picture_options.h"

#include <utility>

namespace onward {

Picture Prepared(const Picture& picture, const PictureRecipe& recipe, const uint64_t* key) {
  const auto [height, width, channels] = recipe.info;
  Picture out = picture.info.channels == channels
                    ? FitPicture(picture, height, width, recipe.fit)
                    : FitPicture(ToChannels(picture, channels), height, width, recipe.fit);
  return key == nullptr ? out : Augmented(std::move(out), recipe.augment, *key);
}

void ToPlanes(const Picture& p, uint8_t* planes) {
  const int64_t area = p.info.height * p.info.width, channels = p.info.channels;
  for (int64_t c = 0; c < channels; ++c) {
    const uint8_t* from = p.pixels.data() + c;
    uint8_t* to = planes + c * area;
    for (int64_t i = 0; i < area; ++i) to[i] = from[i * channels];
  }
}

Picture FromPlanes(const uint8_t* planes, const PictureInfo& info) {
  const int64_t area = info.height * info.width, channels = info.channels;
  Picture p{info, std::vector<uint8_t>(static_cast<size_t>(area * channels))};
  for (int64_t c = 0; c < channels; ++c) {
    const uint8_t* from = planes + c * area;
    uint8_t* to = p.pixels.data() + c;
    for (int64_t i = 0; i < area; ++i) to[i * channels] = from[i];
  }
  return p;
}

}  // namespace onward
