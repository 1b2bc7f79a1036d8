// SPDX-License-Identifier: Apache-2.0
#include "data/pictures/picture.h"

#include <png.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "data/file_bytes.h"

namespace onward {
namespace {

constexpr absl::string_view kEndings[] = {".png", ".jpg", ".jpeg", ".webp", ".tif", ".tiff", ".bmp",
                                          ".jp2", ".j2k", ".pgm",  ".ppm",  ".pbm", ".pnm"};

absl::Status CheckIsPicture(absl::string_view bytes, absl::string_view name) {
  if (FormatOf(bytes) != PictureFormat::kUnknown) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      name, ": is no PNG, JPEG, WebP, TIFF, BMP, JPEG 2000 or PNM picture (starts with ",
      FirstBytes(bytes, 8), ")"));
}

}  // namespace

absl::StatusOr<PictureInfo> ProbePicture(absl::string_view bytes, absl::string_view name) {
  ONWARD_RETURN_IF_ERROR(CheckIsPicture(bytes, name));
  ONWARD_ASSIGN_OR_RETURN(const PictureInfo info, ProbeAnyPicture(bytes, name));
  return Upright(info, OrientationOf(bytes));
}

absl::StatusOr<Picture> DecodePicture(absl::string_view bytes, absl::string_view name) {
  ONWARD_RETURN_IF_ERROR(CheckIsPicture(bytes, name));
  ONWARD_ASSIGN_OR_RETURN(Picture picture, DecodeAnyPicture(bytes, name));
  return Upright(std::move(picture), OrientationOf(bytes));
}

bool IsPictureName(absl::string_view name) {
  return std::any_of(std::begin(kEndings), std::end(kEndings), [&](absl::string_view ending) {
    return absl::EndsWithIgnoreCase(name, ending);
  });
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
