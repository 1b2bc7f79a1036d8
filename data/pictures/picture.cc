// SPDX-License-Identifier: Apache-2.0
#include "data/pictures/picture.h"

#include <png.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "data/file_bytes.h"

namespace onward {
namespace {

absl::Status NotAPicture(absl::string_view bytes, absl::string_view name) {
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": is neither PNG nor JPEG (starts with ", FirstBytes(bytes, 8), ")"));
}

// --- Resizing

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

}  // namespace

absl::StatusOr<PictureInfo> ProbePicture(absl::string_view bytes, absl::string_view name) {
  switch (FormatOf(bytes)) {
    case PictureFormat::kPng: return ProbePng(bytes, name);
    case PictureFormat::kJpeg: return ProbeJpeg(bytes, name);
    default: return NotAPicture(bytes, name);
  }
}

absl::StatusOr<Picture> DecodePicture(absl::string_view bytes, absl::string_view name) {
  switch (FormatOf(bytes)) {
    case PictureFormat::kPng: return DecodePng(bytes, name);
    case PictureFormat::kJpeg: return DecodeJpeg(bytes, name);
    default: return NotAPicture(bytes, name);
  }
}

Picture Resize(const Picture& picture, int64_t height, int64_t width) {
  const auto [from_height, from_width, channels] = picture.info;
  if (from_height == height && from_width == width) return picture;
  const std::vector<Window> across = TriangleWindows(from_width, width);
  const std::vector<Window> down = TriangleWindows(from_height, height);
  std::vector<float> rows(static_cast<size_t>(from_height * width * channels));
  for (int64_t y = 0; y < from_height; ++y) {
    const uint8_t* from = picture.pixels.data() + y * from_width * channels;
    for (int64_t x = 0; x < width; ++x) {
      for (int c = 0; c < channels; ++c) {
        float sum = 0;
        for (size_t k = 0; k < across[x].weights.size(); ++k) {
          sum += across[x].weights[k] *
                 from[(across[x].begin + static_cast<int64_t>(k)) * channels + c];
        }
        rows[(y * width + x) * channels + c] = sum;
      }
    }
  }
  Picture out;
  out.info = {height, width, channels};
  out.pixels.resize(static_cast<size_t>(height * width * channels));
  const int64_t row = width * channels;
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t i = 0; i < row; ++i) {
      float sum = 0;
      for (size_t k = 0; k < down[y].weights.size(); ++k) {
        sum += down[y].weights[k] * rows[(down[y].begin + static_cast<int64_t>(k)) * row + i];
      }
      out.pixels[y * row + i] = static_cast<uint8_t>(std::clamp(sum + 0.5f, 0.0f, 255.0f));
    }
  }
  return out;
}

absl::StatusOr<std::string> EncodePng(const Picture& picture) {
  png_image image;
  std::memset(&image, 0, sizeof(image));
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(picture.info.width);
  image.height = static_cast<png_uint_32>(picture.info.height);
  image.format = picture.info.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  png_alloc_size_t size = 0;
  const int64_t need = picture.info.height * picture.info.width * picture.info.channels;
  if (need < 1 || static_cast<size_t>(need) != picture.pixels.size() ||
      !png_image_write_to_memory(&image, nullptr, &size, 0, picture.pixels.data(), 0, nullptr)) {
    return absl::InvalidArgumentError(absl::StrCat("cannot write a PNG: ", image.message));
  }
  std::string bytes(size, '\0');
  if (!png_image_write_to_memory(&image, bytes.data(), &size, 0, picture.pixels.data(), 0,
                                 nullptr)) {
    return absl::InternalError(absl::StrCat("cannot write a PNG: ", image.message));
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace onward
