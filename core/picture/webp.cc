// SPDX-License-Identifier: Apache-2.0
#include <webp/decode.h>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/picture/picture.h"

namespace onward {

absl::StatusOr<PictureInfo> ProbeWebp(absl::string_view bytes, absl::string_view name) {
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(data, bytes.size(), &features) != VP8_STATUS_OK) {
    return DamagedPicture(name, "a WebP file without a header");
  }
  if (features.has_animation) {
    return absl::UnimplementedError(absl::StrCat(name, ": an animated WebP is no single picture"));
  }
  ONWARD_RETURN_IF_ERROR(CheckPictureSize(name, features.height, features.width));
  return PictureInfo{features.height, features.width, 3};
}

absl::StatusOr<Picture> DecodeWebp(absl::string_view bytes, absl::string_view name) {
  Picture p;
  ONWARD_ASSIGN_OR_RETURN(p.info, ProbeWebp(bytes, name));
  p.pixels.resize(static_cast<size_t>(p.info.height * p.info.width * 3));
  if (WebPDecodeRGBInto(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(),
                        p.pixels.data(), p.pixels.size(),
                        static_cast<int>(p.info.width) * 3) == nullptr) {
    return DamagedPicture(name, "the WebP data cannot be decoded");
  }
  return p;
}

}  // namespace onward
