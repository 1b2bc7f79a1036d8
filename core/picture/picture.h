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

// What a file's header says; the beginning of a file is enough, but for TIFF and JPEG 2000.
// `name` is what messages call the file.
absl::StatusOr<PictureInfo> ProbePng(absl::string_view bytes, absl::string_view name);
absl::StatusOr<PictureInfo> ProbeJpeg(absl::string_view bytes, absl::string_view name);
absl::StatusOr<PictureInfo> ProbeJpeg2000(absl::string_view bytes, absl::string_view name);
absl::StatusOr<PictureInfo> ProbeWebp(absl::string_view bytes, absl::string_view name);
absl::StatusOr<PictureInfo> ProbeTiff(absl::string_view bytes, absl::string_view name);
absl::StatusOr<PictureInfo> ProbeBmp(absl::string_view bytes, absl::string_view name);
absl::StatusOr<PictureInfo> ProbePnm(absl::string_view bytes, absl::string_view name);
absl::StatusOr<PictureInfo> ProbeAnyPicture(absl::string_view bytes, absl::string_view name);

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

// How a JPEG file says that it was stored, from 1 (upright) to 8, as EXIF numbers it; 1 for
// everything else. Decoders leave pixels as they are stored.
int OrientationOf(absl::string_view bytes);
// What is upright of what was stored so.
PictureInfo Upright(PictureInfo info, int orientation);
Picture Upright(Picture picture, int orientation);

// What decoders say, and the size that they accept.
absl::Status DamagedPicture(absl::string_view name, absl::string_view what);
absl::Status CheckPictureSize(absl::string_view name, int64_t height, int64_t width);

}  // namespace onward

#endif  // ONWARD_CORE_PICTURE_PICTURE_H_
