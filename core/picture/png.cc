// SPDX-License-Identifier: Apache-2.0
// libpng reports errors by longjmp: it crosses its frames and functions here whose locals
// need no destructor, nothing else.
#include <png.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>

#include "core/base/status.h"
#include "core/picture/picture.h"

namespace onward {
namespace {

struct PngSource {
  absl::string_view bytes;
  char message[160] = {};
};

[[noreturn]] void OnPngError(png_structp png, png_const_charp message) {
  auto* source = static_cast<PngSource*>(png_get_error_ptr(png));
  std::snprintf(source->message, sizeof(source->message), "%s", message);
  png_longjmp(png, 1);
}

void OnPngWarning(png_structp, png_const_charp) {}

void ReadPngBytes(png_structp png, png_bytep to, png_size_t count) {
  auto* source = static_cast<PngSource*>(png_get_io_ptr(png));
  if (count > source->bytes.size()) png_error(png, "the file is truncated");
  std::memcpy(to, source->bytes.data(), count);
  source->bytes.remove_prefix(count);
}

// 8 bits, grey or RGB, no transparency.
bool ReadPngHeader(png_structp png, png_infop info) {
  if (setjmp(png_jmpbuf(png))) return false;
  png_read_info(png, info);
  png_set_scale_16(png);
  png_set_palette_to_rgb(png);
  if (png_get_color_type(png, info) == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(png);
  png_set_strip_alpha(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  return true;
}

bool ReadPngRows(png_structp png, png_bytepp rows) {
  if (setjmp(png_jmpbuf(png))) return false;
  png_read_image(png, rows);
  png_read_end(png, nullptr);
  return true;
}

class PngFile {
 public:
  explicit PngFile(absl::string_view bytes) {
    source_.bytes = bytes;
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source_, OnPngError, OnPngWarning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ != nullptr) png_set_read_fn(png_, &source_, ReadPngBytes);
  }
  PngFile(const PngFile&) = delete;
  PngFile& operator=(const PngFile&) = delete;
  ~PngFile() { png_destroy_read_struct(&png_, &info_, nullptr); }

  absl::StatusOr<Picture> Decode(absl::string_view name) {
    if (info_ == nullptr) return absl::ResourceExhaustedError("libpng cannot start");
    if (!ReadPngHeader(png_, info_)) return DamagedPicture(name, source_.message);
    Picture p;
    p.info.height = png_get_image_height(png_, info_);
    p.info.width = png_get_image_width(png_, info_);
    p.info.channels = png_get_channels(png_, info_);
    ONWARD_RETURN_IF_ERROR(CheckPictureSize(name, p.info.height, p.info.width));
    const size_t row_bytes = static_cast<size_t>(p.info.width) * p.info.channels;
    if ((p.info.channels != 1 && p.info.channels != 3) ||
        png_get_rowbytes(png_, info_) != row_bytes) {
      return DamagedPicture(name, "an unusual kind of PNG");
    }
    p.pixels.resize(row_bytes * p.info.height);
    std::vector<png_bytep> rows(p.info.height);
    for (size_t y = 0; y < rows.size(); ++y) rows[y] = p.pixels.data() + y * row_bytes;
    if (!ReadPngRows(png_, rows.data())) return DamagedPicture(name, source_.message);
    return p;
  }

 private:
  PngSource source_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

}  // namespace

absl::StatusOr<PictureInfo> ProbePng(absl::string_view bytes, absl::string_view name) {
  if (bytes.size() < 33 || bytes.substr(12, 4) != "IHDR") {
    return DamagedPicture(name, "the file is truncated");
  }
  const auto big = [&](size_t at) {
    int64_t v = 0;
    for (int i = 0; i < 4; ++i) v = v << 8 | static_cast<unsigned char>(bytes[at + i]);
    return v;
  };
  const bool colour = (bytes[25] & PNG_COLOR_MASK_COLOR) != 0;
  const PictureInfo info{big(20), big(16), colour ? 3 : 1};
  ONWARD_RETURN_IF_ERROR(CheckPictureSize(name, info.height, info.width));
  return info;
}

absl::StatusOr<Picture> DecodePng(absl::string_view bytes, absl::string_view name) {
  return PngFile(bytes).Decode(name);
}

}  // namespace onward
