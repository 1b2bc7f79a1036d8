// SPDX-License-Identifier: Apache-2.0
// BMP: uncompressed pictures of 1, 4, 8, 24 and 32 bits.
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/picture/picture.h"

namespace onward {
namespace {

constexpr size_t kFileHeader = 14;

// Little-endian numbers of a file.
class Numbers {
 public:
  explicit Numbers(absl::string_view bytes) : bytes_(bytes) {}
  bool Has(uint64_t at, uint64_t count) const {
    return at <= bytes_.size() && count <= bytes_.size() - at;
  }
  uint8_t Byte(uint64_t at) const { return static_cast<uint8_t>(bytes_[at]); }
  uint32_t Short(uint64_t at) const { return Byte(at) | uint32_t{Byte(at + 1)} << 8; }
  uint32_t Long(uint64_t at) const { return Short(at) | Short(at + 2) << 16; }

 private:
  absl::string_view bytes_;
};

struct Header {
  int64_t width = 0, height = 0;
  bool top_down = false;
  uint32_t bits = 0, data = 0, palette = 0, colours = 0;
};

absl::StatusOr<Header> ReadHeader(const Numbers& in, absl::string_view name) {
  if (!in.Has(0, kFileHeader + 40)) return DamagedPicture(name, "the file is truncated");
  Header h;
  h.data = in.Long(10);
  const uint32_t size = in.Long(kFileHeader);
  if (size < 40 || !in.Has(kFileHeader, size)) {
    return absl::UnimplementedError(
        absl::StrCat(name, ": a BMP of an old kind; convert it to PNG"));
  }
  h.width = static_cast<int32_t>(in.Long(18));
  h.height = static_cast<int32_t>(in.Long(22));
  h.top_down = h.height < 0;
  h.height = std::abs(h.height);
  h.bits = in.Short(28);
  const uint32_t compression = in.Long(30);
  h.colours = in.Long(46);
  h.palette = static_cast<uint32_t>(kFileHeader) + size;
  ONWARD_RETURN_IF_ERROR(CheckPictureSize(name, h.height, h.width));
  const bool known = h.bits == 1 || h.bits == 4 || h.bits == 8 || h.bits == 24 || h.bits == 32;
  // Bit fields of 32-bit pictures are taken to be the usual ones: blue, green, red.
  if (!known || (compression != 0 && !(compression == 3 && h.bits == 32))) {
    return absl::UnimplementedError(absl::StrCat(name, ": a BMP of ", h.bits,
                                                 " bits with compression ", compression,
                                                 "; convert it to PNG"));
  }
  if (h.colours == 0 || h.colours > 256) h.colours = h.bits <= 8 ? 1u << h.bits : 0;
  if (h.bits <= 8 && !in.Has(h.palette, uint64_t{4} * h.colours)) {
    return DamagedPicture(name, "the palette is truncated");
  }
  return h;
}

}  // namespace

absl::StatusOr<PictureInfo> ProbeBmp(absl::string_view bytes, absl::string_view name) {
  ONWARD_ASSIGN_OR_RETURN(const Header h, ReadHeader(Numbers(bytes), name));
  return PictureInfo{h.height, h.width, 3};
}

absl::StatusOr<Picture> DecodeBmp(absl::string_view bytes, absl::string_view name) {
  const Numbers in(bytes);
  ONWARD_ASSIGN_OR_RETURN(const Header h, ReadHeader(in, name));
  const uint64_t row_bytes = (static_cast<uint64_t>(h.width) * h.bits + 31) / 32 * 4;
  if (!in.Has(h.data, row_bytes * static_cast<uint64_t>(h.height))) {
    return DamagedPicture(name, "the file is truncated");
  }
  Picture p;
  p.info = {h.height, h.width, 3};
  p.pixels.resize(static_cast<size_t>(h.height * h.width * 3));
  uint8_t* to = p.pixels.data();
  for (int64_t y = 0; y < h.height; ++y) {
    const uint64_t row = h.data + row_bytes * (h.top_down ? y : h.height - 1 - y);
    for (int64_t x = 0; x < h.width; ++x, to += 3) {
      uint64_t colour = row + static_cast<uint64_t>(x) * (h.bits / 8);  // blue, green, red
      if (h.bits <= 8) {
        const uint64_t bit = static_cast<uint64_t>(x) * h.bits;
        const uint32_t shift = 8 - h.bits - static_cast<uint32_t>(bit % 8);
        const uint32_t index = in.Byte(row + bit / 8) >> shift & ((1u << h.bits) - 1);
        if (index >= h.colours) return DamagedPicture(name, "a colour is not in the palette");
        colour = h.palette + uint64_t{4} * index;
      }
      for (int c = 0; c < 3; ++c) to[c] = in.Byte(colour + 2 - c);
    }
  }
  return p;
}

}  // namespace onward
