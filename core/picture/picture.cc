// SPDX-License-Identifier: Apache-2.0
#include "core/picture/picture.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace onward {
namespace {

constexpr int64_t kMostPixels = int64_t{1} << 27;

absl::Status NoPicture(absl::string_view name) {
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": is no PNG, JPEG, JPEG 2000, WebP, TIFF, BMP or PNM picture"));
}

}  // namespace

absl::Status DamagedPicture(absl::string_view name, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(name, ": damaged picture: ", what));
}

absl::Status CheckPictureSize(absl::string_view name, int64_t height, int64_t width) {
  if (height >= 1 && width >= 1 && height <= kMostPixels / width) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": a picture of ", height, " x ", width, " pixels is not supported"));
}

PictureFormat FormatOf(absl::string_view bytes) {
  using absl::StartsWith;
  const auto begins = [&](absl::string_view with) { return StartsWith(bytes, with); };
  if (begins(absl::string_view("\x89PNG\r\n\x1a\n", 8))) return PictureFormat::kPng;
  if (begins("\xff\xd8\xff")) return PictureFormat::kJpeg;
  if (begins(absl::string_view("\0\0\0\x0cjP  ", 8)) || begins("\xff\x4f\xff\x51")) {
    return PictureFormat::kJpeg2000;
  }
  if (begins("RIFF") && bytes.size() >= 12 && bytes.substr(8, 4) == "WEBP") {
    return PictureFormat::kWebp;
  }
  if (begins(absl::string_view("II*\0", 4)) || begins(absl::string_view("MM\0*", 4))) {
    return PictureFormat::kTiff;
  }
  if (begins("BM")) return PictureFormat::kBmp;
  if (bytes.size() >= 2 && bytes[0] == 'P' && bytes[1] >= '1' && bytes[1] <= '6') {
    return PictureFormat::kPnm;
  }
  return PictureFormat::kUnknown;
}

absl::StatusOr<PictureInfo> ProbeAnyPicture(absl::string_view bytes, absl::string_view name) {
  switch (FormatOf(bytes)) {
    case PictureFormat::kPng: return ProbePng(bytes, name);
    case PictureFormat::kJpeg: return ProbeJpeg(bytes, name);
    case PictureFormat::kJpeg2000: return ProbeJpeg2000(bytes, name);
    case PictureFormat::kWebp: return ProbeWebp(bytes, name);
    case PictureFormat::kTiff: return ProbeTiff(bytes, name);
    case PictureFormat::kBmp: return ProbeBmp(bytes, name);
    case PictureFormat::kPnm: return ProbePnm(bytes, name);
    case PictureFormat::kUnknown: break;
  }
  return NoPicture(name);
}

absl::StatusOr<Picture> DecodeAnyPicture(absl::string_view bytes, absl::string_view name) {
  switch (FormatOf(bytes)) {
    case PictureFormat::kPng: return DecodePng(bytes, name);
    case PictureFormat::kJpeg: return DecodeJpeg(bytes, name);
    case PictureFormat::kJpeg2000: return DecodeJpeg2000(bytes, name);
    case PictureFormat::kWebp: return DecodeWebp(bytes, name);
    case PictureFormat::kTiff: return DecodeTiff(bytes, name);
    case PictureFormat::kBmp: return DecodeBmp(bytes, name);
    case PictureFormat::kPnm: return DecodePnm(bytes, name);
    case PictureFormat::kUnknown: break;
  }
  return NoPicture(name);
}

Picture ToChannels(const Picture& picture, int channels) {
  if (picture.info.channels == channels) return picture;
  Picture out;
  out.info = {picture.info.height, picture.info.width, channels};
  const int64_t area = picture.info.height * picture.info.width;
  out.pixels.resize(static_cast<size_t>(area * channels));
  for (int64_t i = 0; i < area; ++i) {
    if (channels == 3) {
      std::fill_n(out.pixels.begin() + 3 * i, 3, picture.pixels[i]);
    } else {
      // ITU-R BT.601 luma in 16-bit fixed point.
      const uint8_t* p = picture.pixels.data() + 3 * i;
      out.pixels[i] =
          static_cast<uint8_t>((p[0] * 19595 + p[1] * 38470 + p[2] * 7471 + 0x8000) >> 16);
    }
  }
  return out;
}

}  // namespace onward
