// SPDX-License-Identifier: Apache-2.0
// The functions of augment.h that change pixels.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "data/pictures/augment.h"
#include "data/pictures/fit.h"

namespace onward {
namespace {

uint8_t ToByte(double v) { return static_cast<uint8_t>(std::clamp(v + 0.5, 0.0, 255.0)); }

Picture Black(const PictureInfo& info) {
  return {info,
          std::vector<uint8_t>(static_cast<size_t>(info.height * info.width * info.channels))};
}

const uint8_t* At(const Picture& p, int64_t y, int64_t x) {
  return p.pixels.data() + (y * p.info.width + x) * p.info.channels;
}

// ITU-R BT.601 luma.
double Grey(const uint8_t* pixel, int channels) {
  return channels == 1 ? pixel[0] : 0.299 * pixel[0] + 0.587 * pixel[1] + 0.114 * pixel[2];
}

// Copies what of `from`, its corner put at (down, right), lies within `to`.
void Paste(const Picture& from, int64_t down, int64_t right, Picture* to) {
  const int64_t channels = from.info.channels;
  const int64_t begin = std::max<int64_t>(0, right);
  const int64_t end = std::min(to->info.width, right + from.info.width);
  if (begin >= end) return;
  for (int64_t y = std::max<int64_t>(0, down);
       y < std::min(to->info.height, down + from.info.height); ++y) {
    std::memcpy(to->pixels.data() + (y * to->info.width + begin) * channels,
                At(from, y - down, begin - right), static_cast<size_t>((end - begin) * channels));
  }
}

}  // namespace

Picture Mirrored(const Picture& picture) {
  Picture out = picture;
  const int64_t channels = picture.info.channels, width = picture.info.width;
  for (int64_t y = 0; y < picture.info.height; ++y) {
    uint8_t* to = out.pixels.data() + y * width * channels;
    for (int64_t x = width - 1; x >= 0; --x, to += channels) {
      std::copy_n(At(picture, y, x), channels, to);
    }
  }
  return out;
}

Picture UpsideDown(const Picture& picture) {
  Picture out = Black(picture.info);
  const int64_t row = picture.info.width * picture.info.channels;
  for (int64_t y = 0; y < picture.info.height; ++y) {
    std::copy_n(At(picture, picture.info.height - 1 - y, 0), row, out.pixels.data() + y * row);
  }
  return out;
}

Picture Shifted(const Picture& picture, int64_t down, int64_t right) {
  Picture out = Black(picture.info);
  Paste(picture, down, right, &out);
  return out;
}

Picture Rotated(const Picture& picture, double degrees) {
  const auto [height, width, channels] = picture.info;
  const double angle = degrees * std::numbers::pi / 180;
  const double cosine = std::cos(angle), sine = std::sin(angle);
  const double middle_y = (static_cast<double>(height) - 1) / 2;
  const double middle_x = (static_cast<double>(width) - 1) / 2;
  Picture out = Black(picture.info);
  uint8_t* to = out.pixels.data();
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x, to += channels) {
      // Where it was before the turn; rows count downwards.
      const double dy = static_cast<double>(y) - middle_y, dx = static_cast<double>(x) - middle_x;
      const double from_y = middle_y + dx * sine + dy * cosine;
      const double from_x = middle_x + dx * cosine - dy * sine;
      const auto top = static_cast<int64_t>(std::floor(from_y));
      const auto left = static_cast<int64_t>(std::floor(from_x));
      const double below = from_y - static_cast<double>(top);
      const double beside = from_x - static_cast<double>(left);
      double sums[3] = {0, 0, 0};
      for (int64_t i = 0; i < 2; ++i) {
        for (int64_t k = 0; k < 2; ++k) {
          if (top + i < 0 || top + i >= height || left + k < 0 || left + k >= width) continue;
          const double weight = (i == 0 ? 1 - below : below) * (k == 0 ? 1 - beside : beside);
          const uint8_t* from = At(picture, top + i, left + k);
          for (int c = 0; c < channels; ++c) sums[c] += weight * from[c];
        }
      }
      for (int c = 0; c < channels; ++c) to[c] = ToByte(sums[c]);
    }
  }
  return out;
}

Picture Zoomed(const Picture& picture, double factor, double top, double left) {
  const auto scaled = [&](int64_t side) {
    return std::max<int64_t>(1, std::llround(static_cast<double>(side) * factor));
  };
  const int64_t height = scaled(picture.info.height), width = scaled(picture.info.width);
  // A share of the room there is; negative where the picture is larger than the window.
  const auto place = [](int64_t room, double share) {
    return static_cast<int64_t>(std::llround(static_cast<double>(room) * share));
  };
  Picture out = Black(picture.info);
  Paste(Resize(picture, height, width), place(picture.info.height - height, top),
        place(picture.info.width - width, left), &out);
  return out;
}

Picture Coloured(const Picture& picture, double brightness, double contrast, double saturation) {
  Picture out = picture;
  const int channels = picture.info.channels;
  for (uint8_t& v : out.pixels) v = ToByte(v * brightness);
  double mean = 0;
  for (size_t i = 0; i < out.pixels.size(); i += channels) mean += Grey(&out.pixels[i], channels);
  mean /= static_cast<double>(out.pixels.size()) / channels;
  for (uint8_t& v : out.pixels) v = ToByte(mean + (v - mean) * contrast);
  if (channels == 1) return out;
  for (size_t i = 0; i < out.pixels.size(); i += channels) {
    const double grey = Grey(&out.pixels[i], channels);
    for (int c = 0; c < channels; ++c) {
      out.pixels[i + c] = ToByte(grey + (out.pixels[i + c] - grey) * saturation);
    }
  }
  return out;
}

Picture Erased(Picture picture, int64_t top, int64_t left, int64_t height, int64_t width) {
  const int64_t channels = picture.info.channels;
  for (int64_t y = top; y < top + height; ++y) {
    std::memset(picture.pixels.data() + (y * picture.info.width + left) * channels, 0,
                static_cast<size_t>(width * channels));
  }
  return picture;
}

}  // namespace onward
