// SPDX-License-Identifier: Apache-2.0
// libjpeg reports errors by longjmp: it crosses its frames and functions here whose locals
// need no destructor, nothing else.
#include <cstdio>
// jpeglib.h uses size_t and FILE without saying where they are from.
#include <jerror.h>
#include <jpeglib.h>

#include <csetjmp>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/picture/picture.h"

namespace onward {
namespace {

struct JpegErrors {
  jpeg_error_mgr base;  // first: libjpeg knows only this part
  std::jmp_buf on_error;
  char message[JMSG_LENGTH_MAX];
  bool truncated;
};

[[noreturn]] void OnJpegError(j_common_ptr jpeg) {
  auto* errors = reinterpret_cast<JpegErrors*>(jpeg->err);
  errors->base.format_message(jpeg, errors->message);
  std::longjmp(errors->on_error, 1);
}

// libjpeg fills what is missing with grey and only warns.
void OnJpegMessage(j_common_ptr jpeg, int level) {
  auto* errors = reinterpret_cast<JpegErrors*>(jpeg->err);
  const int code = errors->base.msg_code;
  if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER)) errors->truncated = true;
}

class JpegFile {
 public:
  explicit JpegFile(absl::string_view bytes) : bytes_(bytes) {
    std::memset(&jpeg_, 0, sizeof(jpeg_));
    std::memset(&errors_, 0, sizeof(errors_));
    jpeg_.err = jpeg_std_error(&errors_.base);
    errors_.base.error_exit = OnJpegError;
    errors_.base.emit_message = OnJpegMessage;
  }
  JpegFile(const JpegFile&) = delete;
  JpegFile& operator=(const JpegFile&) = delete;
  ~JpegFile() { jpeg_destroy_decompress(&jpeg_); }

  absl::StatusOr<PictureInfo> Probe(absl::string_view name) {
    if (!ReadHeader()) return DamagedPicture(name, errors_.message);
    if (jpeg_.num_components != 1 && jpeg_.num_components != 3 && !IsInks()) {
      return absl::UnimplementedError(absl::StrCat(name, ": a JPEG with ", jpeg_.num_components,
                                                   " channels; convert it to RGB"));
    }
    return PictureInfo{jpeg_.image_height, jpeg_.image_width, jpeg_.num_components == 1 ? 1 : 3};
  }

  absl::StatusOr<Picture> Decode(absl::string_view name) {
    Picture p;
    ONWARD_ASSIGN_OR_RETURN(p.info, Probe(name));
    ONWARD_RETURN_IF_ERROR(CheckPictureSize(name, p.info.height, p.info.width));
    p.pixels.resize(static_cast<size_t>(p.info.height * p.info.width * p.info.channels));
    jpeg_.out_color_space = p.info.channels == 1 ? JCS_GRAYSCALE : IsInks() ? JCS_CMYK : JCS_RGB;
    if (IsInks()) inks_.resize(static_cast<size_t>(p.info.width * kInks));
    if (!ReadRows(p.pixels.data(), p.info.width * p.info.channels)) {
      return DamagedPicture(name, errors_.message);
    }
    if (errors_.truncated) return DamagedPicture(name, "the file is truncated");
    return p;
  }

 private:
  static constexpr int kInks = 4;
  // Cyan, magenta, yellow and black, or what libjpeg makes these of (YCCK).
  bool IsInks() const { return jpeg_.num_components == kInks; }

  bool ReadHeader() {
    if (setjmp(errors_.on_error)) return false;
    jpeg_create_decompress(&jpeg_);
    jpeg_mem_src(&jpeg_, reinterpret_cast<const unsigned char*>(bytes_.data()), bytes_.size());
    jpeg_read_header(&jpeg_, TRUE);
    return true;
  }

  bool ReadRows(uint8_t* to, int64_t row_bytes) {
    if (setjmp(errors_.on_error)) return false;
    jpeg_start_decompress(&jpeg_);
    while (jpeg_.output_scanline < jpeg_.output_height) {
      uint8_t* const pixels = to + jpeg_.output_scanline * row_bytes;
      JSAMPROW row = IsInks() ? inks_.data() : pixels;
      jpeg_read_scanlines(&jpeg_, &row, 1);
      if (IsInks()) ToColours(pixels, row_bytes);
    }
    jpeg_finish_decompress(&jpeg_);
    return true;
  }

  // Of light that white paper throws back each ink takes its share: R = (1 - C) (1 - K). Programs
  // that write Adobe's marker store 1 - C and 1 - K.
  void ToColours(uint8_t* to, int64_t row_bytes) const {
    const int flip = jpeg_.saw_Adobe_marker ? 0 : 255;
    for (int64_t i = 0; i < row_bytes; ++i) {
      const uint8_t* inks = inks_.data() + i / 3 * kInks;
      const int colour = inks[i % 3] ^ flip, black = inks[3] ^ flip;
      to[i] = static_cast<uint8_t>((colour * black + 127) / 255);
    }
  }

  absl::string_view bytes_;
  std::vector<uint8_t> inks_;  // a row of them
  jpeg_decompress_struct jpeg_;
  JpegErrors errors_;
};

}  // namespace

absl::StatusOr<PictureInfo> ProbeJpeg(absl::string_view bytes, absl::string_view name) {
  ONWARD_ASSIGN_OR_RETURN(const PictureInfo info, JpegFile(bytes).Probe(name));
  ONWARD_RETURN_IF_ERROR(CheckPictureSize(name, info.height, info.width));
  return info;
}

absl::StatusOr<Picture> DecodeJpeg(absl::string_view bytes, absl::string_view name) {
  return JpegFile(bytes).Decode(name);
}

}  // namespace onward
