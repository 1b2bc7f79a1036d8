// SPDX-License-Identifier: Apache-2.0
#include "data/pictures/fit.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace onward {
namespace {

// Output position i is the sum of weights[k] * input[begin + k].
struct Window {
  int64_t begin = 0;
  std::vector<float> weights;
};

std::vector<Window> TriangleWindows(int64_t from, int64_t to) {
  const double step = static_cast<double>(from) / static_cast<double>(to);
  const double support = std::max(step, 1.0);
  std::vector<Window> windows(to);
  for (int64_t i = 0; i < to; ++i) {
    const double center = (static_cast<double>(i) + 0.5) * step;
    Window& w = windows[i];
    w.begin = std::max<int64_t>(0, static_cast<int64_t>(center - support + 0.5));
    const int64_t end = std::min<int64_t>(from, static_cast<int64_t>(center + support + 0.5));
    double sum = 0;
    for (int64_t k = w.begin; k < end; ++k) {
      const double distance = std::fabs((static_cast<double>(k) + 0.5 - center) / support);
      w.weights.push_back(static_cast<float>(std::max(0.0, 1 - distance)));
      sum += w.weights.back();
    }
    for (float& v : w.weights) v = static_cast<float>(v / sum);
  }
  return windows;
}

template <typename T>
struct View {
  PictureInfo info;
  const T* pixels;  // [height, width, channels]
};

template <typename T>
struct Raster {
  PictureInfo info;
  std::vector<T> pixels;
  View<T> view() const { return {info, pixels.data()}; }
};

template <typename T>
T ToPixel(float v) {
  if constexpr (std::is_same_v<T, uint8_t>) {
    return static_cast<uint8_t>(std::clamp(v + 0.5f, 0.0f, 255.0f));
  } else {
    return v;
  }
}

// Rows of pixels in another width.
template <typename T>
std::vector<float> ResizeAcross(const View<T>& picture, int64_t width) {
  const auto [height, from_width, channels] = picture.info;
  const std::vector<Window> windows = TriangleWindows(from_width, width);
  std::vector<float> rows(static_cast<size_t>(height * width * channels));
  float* to = rows.data();
  for (int64_t y = 0; y < height; ++y) {
    const T* row = picture.pixels + y * from_width * channels;
    for (const Window& w : windows) {
      for (int c = 0; c < channels; ++c) {
        const T* from = row + w.begin * channels + c;
        float sum = 0;
        for (const float weight : w.weights) {
          sum += weight * static_cast<float>(*from);
          from += channels;
        }
        *to++ = sum;
      }
    }
  }
  return rows;
}

template <typename T>
Raster<T> Resized(const View<T>& picture, int64_t height, int64_t width) {
  const auto [from_height, from_width, channels] = picture.info;
  if (from_height == height && from_width == width) {
    return {picture.info, {picture.pixels, picture.pixels + height * width * channels}};
  }
  const std::vector<float> rows = ResizeAcross(picture, width);
  Raster<T> out;
  out.info = {height, width, channels};
  out.pixels.resize(static_cast<size_t>(height * width * channels));
  const int64_t row = width * channels;
  std::vector<float> sums(static_cast<size_t>(row));
  const std::vector<Window> down = TriangleWindows(from_height, height);
  for (int64_t y = 0; y < height; ++y) {
    std::fill(sums.begin(), sums.end(), 0.0f);
    for (size_t k = 0; k < down[y].weights.size(); ++k) {
      const float weight = down[y].weights[k];
      const float* from = rows.data() + (down[y].begin + static_cast<int64_t>(k)) * row;
      for (int64_t i = 0; i < row; ++i) sums[i] += weight * from[i];
    }
    std::transform(sums.begin(), sums.end(), out.pixels.begin() + y * row, ToPixel<T>);
  }
  return out;
}

// Rows [top, top + height) and columns [left, left + width).
template <typename T>
Raster<T> Cut(const View<T>& picture, int64_t top, int64_t left, int64_t height, int64_t width) {
  const int64_t channels = picture.info.channels, from_width = picture.info.width;
  Raster<T> out;
  out.info = {height, width, picture.info.channels};
  out.pixels.reserve(static_cast<size_t>(height * width * channels));
  for (int64_t y = top; y < top + height; ++y) {
    const T* begin = picture.pixels + (y * from_width + left) * channels;
    out.pixels.insert(out.pixels.end(), begin, begin + width * channels);
  }
  return out;
}

int64_t Rounded(int64_t a, int64_t b, int64_t divisor) {
  return std::max<int64_t>(1, (2 * a * b + divisor) / (2 * divisor));
}

// The largest middle part with sides that relate as height to width.
template <typename T>
Raster<T> CutMiddle(const View<T>& picture, int64_t height, int64_t width) {
  const auto [h, w, channels] = picture.info;
  const bool tall = h * width > w * height;
  const int64_t keep_h = tall ? std::min(h, Rounded(w, height, width)) : h;
  const int64_t keep_w = tall ? w : std::min(w, Rounded(h, width, height));
  return Cut(picture, (h - keep_h) / 2, (w - keep_w) / 2, keep_h, keep_w);
}

template <typename T>
Raster<T> Padded(const Raster<T>& picture, int64_t height, int64_t width) {
  const auto [h, w, channels] = picture.info;
  Raster<T> out;
  out.info = {height, width, channels};
  out.pixels.assign(static_cast<size_t>(height * width * channels), T{0});
  const int64_t top = (height - h) / 2, left = (width - w) / 2;
  for (int64_t y = 0; y < h; ++y) {
    const auto begin = picture.pixels.begin() + y * w * channels;
    std::copy(begin, begin + w * channels,
              out.pixels.begin() + ((y + top) * width + left) * channels);
  }
  return out;
}

template <typename T>
Raster<T> Fitted(const View<T>& picture, int64_t height, int64_t width, Fit fit) {
  const auto [h, w, channels] = picture.info;
  if (fit == Fit::kCrop) return Resized(CutMiddle(picture, height, width).view(), height, width);
  if (fit == Fit::kStretch || h * width == w * height) return Resized(picture, height, width);
  const bool tall = h * width > w * height;
  const int64_t inner_h = tall ? height : std::min(height, Rounded(h, width, w));
  const int64_t inner_w = tall ? std::min(width, Rounded(w, height, h)) : width;
  return Padded(Resized(picture, inner_h, inner_w), height, width);
}

}  // namespace

Picture FitPicture(const Picture& picture, int64_t height, int64_t width, Fit fit) {
  if (picture.info.height == height && picture.info.width == width) return picture;
  Raster<uint8_t> out =
      Fitted(View<uint8_t>{picture.info, picture.pixels.data()}, height, width, fit);
  return {out.info, std::move(out.pixels)};
}

Picture Resize(const Picture& picture, int64_t height, int64_t width) {
  return FitPicture(picture, height, width, Fit::kStretch);
}

std::vector<float> FitPixels(const std::vector<float>& pixels, const PictureInfo& info,
                             int64_t height, int64_t width, Fit fit) {
  return Fitted(View<float>{info, pixels.data()}, height, width, fit).pixels;
}

}  // namespace onward
