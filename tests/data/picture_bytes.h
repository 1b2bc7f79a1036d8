// SPDX-License-Identifier: Apache-2.0
// Files with pictures for the readers' tests.
#ifndef ONWARD_TESTS_DATA_PICTURE_BYTES_H_
#define ONWARD_TESTS_DATA_PICTURE_BYTES_H_

#include <cstdio>
// jpeglib.h uses size_t and FILE without saying where they are from.
#include <jpeglib.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/picture/picture.h"

namespace onward {

// `bytes` bytes of a number.
inline void Put(std::string* to, uint32_t value, int bytes, bool little) {
  for (int i = 0; i < bytes; ++i) {
    to->push_back(static_cast<char>(value >> (8 * (little ? i : bytes - 1 - i))));
  }
}

inline Picture Filled(int64_t height, int64_t width, int channels, uint8_t value) {
  return {{height, width, channels},
          std::vector<uint8_t>(static_cast<size_t>(height * width * channels), value)};
}

struct JpegForm {
  J_COLOR_SPACE given, stored;
  bool adobe = false;  // its marker
};

// Rows of `channels` bytes a pixel, in the best quality, so that flat colours stay as they are.
inline std::string JpegOf(const Picture& p, const JpegForm& form) {
  jpeg_compress_struct c;
  jpeg_error_mgr errors;
  c.err = jpeg_std_error(&errors);
  jpeg_create_compress(&c);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&c, &bytes, &size);
  c.image_width = static_cast<JDIMENSION>(p.info.width);
  c.image_height = static_cast<JDIMENSION>(p.info.height);
  c.input_components = p.info.channels;
  c.in_color_space = form.given;
  jpeg_set_defaults(&c);
  jpeg_set_colorspace(&c, form.stored);
  c.write_Adobe_marker = form.adobe ? TRUE : FALSE;
  jpeg_set_quality(&c, 100, TRUE);
  jpeg_start_compress(&c, TRUE);
  while (c.next_scanline < c.image_height) {
    JSAMPROW row =
        const_cast<uint8_t*>(p.pixels.data()) + c.next_scanline * p.info.width * p.info.channels;
    jpeg_write_scanlines(&c, &row, 1);
  }
  jpeg_finish_compress(&c);
  std::string out(reinterpret_cast<char*>(bytes), size);
  jpeg_destroy_compress(&c);
  free(bytes);
  return out;
}

inline std::string Jpeg(const Picture& p) {
  if (p.info.channels == 1) return JpegOf(p, {JCS_GRAYSCALE, JCS_GRAYSCALE});
  return JpegOf(p, {JCS_RGB, JCS_YCbCr});
}

// Inks as a file stores them: cyan, magenta, yellow and black, in two pixels.
inline std::string InkJpeg(const std::vector<uint8_t>& inks, J_COLOR_SPACE stored, bool adobe) {
  Picture p{{1, 2, 4}, inks};
  p.pixels.insert(p.pixels.end(), inks.begin(), inks.end());
  return JpegOf(p, {JCS_CMYK, stored, adobe});
}

// A JPEG file that says with EXIF how it was stored, from 1 to 8.
inline std::string WithOrientation(const std::string& jpeg, int orientation, bool little) {
  std::string exif("Exif\0\0", 6);
  exif += little ? "II" : "MM";
  Put(&exif, 42, 2, little);
  Put(&exif, 8, 4, little);  // where the directory begins
  Put(&exif, 2, 2, little);  // entries
  Put(&exif, 0x0100, 2, little);
  Put(&exif, 4, 2, little);
  Put(&exif, 1, 4, little);
  Put(&exif, 640, 4, little);
  Put(&exif, 0x0112, 2, little);
  Put(&exif, 3, 2, little);
  Put(&exif, 1, 4, little);
  Put(&exif, static_cast<uint32_t>(orientation), 2, little);
  Put(&exif, 0, 2, little);
  Put(&exif, 0, 4, little);
  std::string segment = "\xff\xe1";
  Put(&segment, static_cast<uint32_t>(exif.size() + 2), 2, /*little=*/false);
  return jpeg.substr(0, 2) + segment + exif + jpeg.substr(2);
}

// Of 3 channels.
inline std::string Bmp(const Picture& p) {
  std::string out = "BM";
  const int64_t row_bytes = (p.info.width * 3 + 3) / 4 * 4;
  Put(&out, static_cast<uint32_t>(54 + row_bytes * p.info.height), 4, true);
  for (uint32_t v : {0u, 54u, 40u}) Put(&out, v, 4, true);
  Put(&out, static_cast<uint32_t>(p.info.width), 4, true);
  Put(&out, static_cast<uint32_t>(p.info.height), 4, true);
  Put(&out, 1, 2, true);
  Put(&out, 24, 2, true);
  for (int i = 0; i < 6; ++i) Put(&out, 0, 4, true);
  for (int64_t y = p.info.height - 1; y >= 0; --y) {
    std::string row;
    for (int64_t x = 0; x < p.info.width; ++x) {
      for (int c = 2; c >= 0; --c) {
        row.push_back(static_cast<char>(p.pixels[(y * p.info.width + x) * 3 + c]));
      }
    }
    row.resize(static_cast<size_t>(row_bytes), '\0');
    out += row;
  }
  return out;
}

// One header and its bytes; type '0' is an ordinary file.
inline std::string TarMemberBytes(const std::string& name, const std::string& bytes, char type) {
  std::string h(512, '\0');
  const auto put = [&](size_t at, const std::string& text) { h.replace(at, text.size(), text); };
  put(0, name.substr(0, 100));
  put(100, "0000644");
  put(124, absl::StrFormat("%011o", bytes.size()));
  put(136, "00000000000");
  put(148, "        ");
  h[156] = type;
  put(257, std::string("ustar\0", 6) + "00");
  unsigned sum = 0;
  for (const char c : h) sum += static_cast<unsigned char>(c);
  put(148, absl::StrFormat("%06o", sum) + std::string("\0 ", 2));
  std::string padded = bytes;
  padded.resize((bytes.size() + 511) / 512 * 512, '\0');
  return h + padded;
}

// An archive as tar writes it.
inline std::string Tar(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string out;
  for (const auto& [name, bytes] : members) {
    // GNU's way for names that are too long for the header.
    if (name.size() > 100) out += TarMemberBytes("././@LongLink", name + '\0', 'L');
    out += TarMemberBytes(name, bytes, '0');
  }
  return out + std::string(1024, '\0');
}

}  // namespace onward

#endif  // ONWARD_TESTS_DATA_PICTURE_BYTES_H_
