// SPDX-License-Identifier: Apache-2.0
// Which way up a camera held a picture: the tag Orientation of the EXIF part of a JPEG file,
// which is a TIFF file of its own inside an APP1 segment.
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "core/picture/picture.h"

namespace onward {
namespace {

constexpr int kUpright = 1;
constexpr uint32_t kOrientationTag = 0x0112;

class ExifNumbers {
 public:
  ExifNumbers(absl::string_view bytes, bool little) : bytes_(bytes), little_(little) {}

  std::optional<uint32_t> At(uint64_t at, int count) const {
    if (at > bytes_.size() || static_cast<uint64_t>(count) > bytes_.size() - at) {
      return std::nullopt;
    }
    uint32_t v = 0;
    for (int i = 0; i < count; ++i) {
      const size_t byte = at + static_cast<uint64_t>(little_ ? count - 1 - i : i);
      v = v << 8 | static_cast<unsigned char>(bytes_[byte]);
    }
    return v;
  }

 private:
  absl::string_view bytes_;
  bool little_;
};

int TiffOrientation(absl::string_view tiff) {
  const bool little = absl::StartsWith(tiff, "II");
  if (!little && !absl::StartsWith(tiff, "MM")) return kUpright;
  const ExifNumbers numbers(tiff, little);
  const uint64_t directory = numbers.At(4, 4).value_or(0);
  const uint32_t entries = numbers.At(directory, 2).value_or(0);
  for (uint64_t i = 0; i < entries; ++i) {
    const uint64_t entry = directory + 2 + 12 * i;
    const std::optional<uint32_t> tag = numbers.At(entry, 2);
    if (!tag) break;
    if (*tag != kOrientationTag) continue;
    const uint32_t value = numbers.At(entry + 8, 2).value_or(kUpright);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : kUpright;
  }
  return kUpright;
}

}  // namespace

int OrientationOf(absl::string_view bytes) {
  if (FormatOf(bytes) != PictureFormat::kJpeg) return kUpright;
  const ExifNumbers numbers(bytes, /*little=*/false);
  // Segments: FF, kind, length (itself included). The pixels begin at FF DA.
  for (uint64_t at = 2; numbers.At(at, 1) == 0xffu;) {
    const uint32_t kind = numbers.At(at + 1, 1).value_or(0xda);
    if (kind == 0xff) {  // padding
      ++at;
      continue;
    }
    const uint32_t length = numbers.At(at + 2, 2).value_or(0);
    if (kind == 0xda || length < 2) break;
    absl::string_view segment = bytes.substr(at + 4, length - 2);
    constexpr absl::string_view kExif("Exif\0\0", 6);
    if (kind == 0xe1 && absl::StartsWith(segment, kExif)) {
      return TiffOrientation(segment.substr(kExif.size()));
    }
    at += 2 + length;
  }
  return kUpright;
}

PictureInfo Upright(PictureInfo info, int orientation) {
  if (orientation >= 5) std::swap(info.height, info.width);
  return info;
}

// Where orientation k stores the pixel that belongs at (y, x): 2 mirrored, 3 turned by 180
// degrees, 4 upside down, 5 to 8 with rows for columns.
Picture Upright(Picture picture, int orientation) {
  if (orientation <= 1 || orientation > 8) return picture;
  Picture out;
  out.info = Upright(picture.info, orientation);
  out.pixels.resize(picture.pixels.size());
  const auto [height, width, channels] = out.info;
  uint8_t* to = out.pixels.data();
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x, to += channels) {
      int64_t row = orientation >= 5 ? x : y, column = orientation >= 5 ? y : x;
      const bool from_bottom =
          orientation == 3 || orientation == 4 || orientation == 7 || orientation == 6;
      const bool from_right =
          orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
      if (from_bottom) row = picture.info.height - 1 - row;
      if (from_right) column = picture.info.width - 1 - column;
      const uint8_t* from = picture.pixels.data() + (row * picture.info.width + column) * channels;
      for (int c = 0; c < channels; ++c) to[c] = from[c];
    }
  }
  return out;
}

}  // namespace onward
