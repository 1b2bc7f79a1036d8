// SPDX-License-Identifier: Apache-2.0
// Pictures of 8-bit pixels, and the files they come in. Whatever a file holds, it gives a
// picture or an error; no file makes more pixels than a fixed number.
#ifndef ONWARD_CORE_PICTURE_PICTURE_H_
#define ONWARD_CORE_PICTURE_PICTURE_H_

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

enum class PictureFormat { kUnknown, kPng, kJpeg, kJpeg2000, kWebp, kTiff, kBmp, kPnm };

// By the first bytes.
PictureFormat FormatOf(absl::string_view bytes);

// What the header of a PNG or JPEG file says. `name` is what messages call the file.
absl::StatusOr<PictureInfo> ProbePng(absl::string_view bytes, absl::string_view name);
absl::StatusOr<PictureInfo> ProbeJpeg(absl::string_view bytes, absl::string_view name);

// The pixels, as grey or colour. Transparency is dropped, 16 bits become 8.
absl::StatusOr<Picture> DecodePng(absl::string_view bytes, absl::string_view name);
absl::StatusOr<Picture> DecodeJpeg(absl::string_view bytes, absl::string_view name);
absl::StatusOr<Picture> DecodeJpeg2000(absl::string_view bytes, absl::string_view name);
absl::StatusOr<Picture> DecodeWebp(absl::string_view bytes, absl::string_view name);
absl::StatusOr<Picture> DecodeTiff(absl::string_view bytes, absl::string_view name);
absl::StatusOr<Picture> DecodeBmp(absl::string_view bytes, absl::string_view name);
absl::StatusOr<Picture> DecodePnm(absl::string_view bytes, absl::string_view name);
// Any of these.
absl::StatusOr<Picture> DecodeAnyPicture(absl::string_view bytes, absl::string_view name);

Picture ToChannels(const Picture& picture, int channels);

// What decoders say, and the size that they accept.
absl::Status DamagedPicture(absl::string_view name, absl::string_view what);
absl::Status CheckPictureSize(absl::string_view name, int64_t height, int64_t width);

}  // namespace onward

#endif  // ONWARD_CORE_PICTURE_PICTURE_H_
