// SPDX-License-Identifier: Apache-2.0
// Pictures of data sets: files of every format that core/picture reads, the right way up.
#ifndef ONWARD_DATA_PICTURES_PICTURE_H_
#define ONWARD_DATA_PICTURES_PICTURE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/picture/picture.h"

namespace onward {

// What the file's header says. `name` is what messages call the file.
absl::StatusOr<PictureInfo> ProbePicture(absl::string_view bytes, absl::string_view name);

// The pixels, as grey or colour. Transparency is dropped, 16 bits become 8.
absl::StatusOr<Picture> DecodePicture(absl::string_view bytes, absl::string_view name);

// Whether a file has one of the usual endings of pictures that are read, in any case.
bool IsPictureName(absl::string_view name);

absl::StatusOr<std::string> EncodePng(const Picture& picture);

}  // namespace onward

#endif  // ONWARD_DATA_PICTURES_PICTURE_H_
