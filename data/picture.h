// SPDX-License-Identifier: Apache-2.0
// Pictures of 8-bit pixels: PNG and JPEG files, and resizing.
#ifndef ONWARD_DATA_PICTURE_H_
#define ONWARD_DATA_PICTURE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace onward {

struct PictureInfo {
  int64_t height = 0;
  int64_t width = 0;
  int channels = 0;  // 1 grey, 3 colour
};

struct Picture {
  PictureInfo info;
  std::vector<uint8_t> pixels;  // [height, width, channels]
};

// What the file's header says. `name` is what messages call the file.
absl::StatusOr<PictureInfo> ProbePicture(absl::string_view bytes, absl::string_view name);

// The pixels, as grey or colour. Transparency is dropped, 16 bits become 8.
absl::StatusOr<Picture> DecodePicture(absl::string_view bytes, absl::string_view name);

Picture ToChannels(const Picture& picture, int channels);

// Bilinear; when shrinking every pixel counts, as in Pillow.
Picture Resize(const Picture& picture, int64_t height, int64_t width);

absl::StatusOr<std::string> EncodePng(const Picture& picture);

}  // namespace onward

#endif  // ONWARD_DATA_PICTURE_H_
