// SPDX-License-Identifier: Apache-2.0
#include "data/pictures/grid.h"

#include <algorithm>

namespace onward {

Picture TilePictures(const std::vector<Picture>& pictures, int64_t columns, int64_t gap) {
  Picture out;
  if (pictures.empty()) return out;
  int64_t height = 1, width = 1;
  int channels = 1;
  for (const Picture& p : pictures) {
    height = std::max(height, p.info.height);
    width = std::max(width, p.info.width);
    channels = std::max(channels, p.info.channels);
  }
  const auto count = static_cast<int64_t>(pictures.size());
  columns = std::clamp<int64_t>(columns, 1, count);
  const int64_t rows = (count + columns - 1) / columns;
  out.info = {rows * (height + gap) - gap, columns * (width + gap) - gap, channels};
  out.pixels.assign(static_cast<size_t>(out.info.height * out.info.width * channels), 255);
  for (int64_t i = 0; i < count; ++i) {
    const Picture p = ToChannels(pictures[i], channels);
    const int64_t top = i / columns * (height + gap) + (height - p.info.height) / 2;
    const int64_t left = i % columns * (width + gap) + (width - p.info.width) / 2;
    for (int64_t y = 0; y < p.info.height; ++y) {
      std::copy_n(p.pixels.begin() + y * p.info.width * channels, p.info.width * channels,
                  out.pixels.begin() + ((top + y) * out.info.width + left) * channels);
    }
  }
  return out;
}

}  // namespace onward
