// SPDX-License-Identifier: Apache-2.0
// PBM, PGM and PPM, as text (P1 to P3) and as bytes (P4 to P6).
#include <algorithm>
#include <cctype>

#include "core/base/status.h"
#include "core/picture/picture.h"

namespace onward {
namespace {

class Reader {
 public:
  explicit Reader(absl::string_view bytes) : rest_(bytes) {}

  // The next number, behind spaces and comments; -1 where there is none.
  int64_t Number(int64_t most = int64_t{1} << 31) {
    SkipSpace();
    int64_t value = -1;
    while (!rest_.empty() && std::isdigit(static_cast<unsigned char>(rest_[0]))) {
      value = std::max<int64_t>(value, 0) * 10 + (rest_[0] - '0');
      if (value > most) return -1;
      rest_.remove_prefix(1);
    }
    return value;
  }
  // One digit of a bitmap, which no space need follow.
  int64_t Digit() {
    SkipSpace();
    if (rest_.empty()) return -1;
    const char c = rest_[0];
    rest_.remove_prefix(1);
    return c == '0' || c == '1' ? c - '0' : -1;
  }
  void Skip(size_t n) { rest_.remove_prefix(std::min(n, rest_.size())); }
  absl::string_view rest() const { return rest_; }

 private:
  void SkipSpace() {
    while (!rest_.empty()) {
      if (rest_[0] == '#') {
        const size_t end = rest_.find('\n');
        rest_.remove_prefix(end == absl::string_view::npos ? rest_.size() : end);
      } else if (std::isspace(static_cast<unsigned char>(rest_[0]))) {
        rest_.remove_prefix(1);
      } else {
        return;
      }
    }
  }
  absl::string_view rest_;
};

// Bytes of the raw kinds: bits of a row are packed, samples above 255 take two bytes.
bool ReadRaw(absl::string_view in, bool bitmap, int64_t largest, Picture& p, int64_t* samples) {
  const int64_t row = p.info.width * p.info.channels, wide = largest > 255 ? 2 : 1;
  const int64_t row_bytes = bitmap ? (row + 7) / 8 : row * wide;
  if (static_cast<int64_t>(in.size()) < row_bytes * p.info.height) return false;
  for (int64_t y = 0; y < p.info.height; ++y) {
    const auto* from = reinterpret_cast<const uint8_t*>(in.data()) + y * row_bytes;
    for (int64_t x = 0; x < row; ++x) {
      *samples++ = bitmap      ? from[x / 8] >> (7 - x % 8) & 1
                   : wide == 1 ? from[x]
                               : from[2 * x] << 8 | from[2 * x + 1];
    }
  }
  return true;
}

struct PnmHeader {
  int kind = 0;  // of P1 to P6
  PictureInfo info;
  int64_t largest = 1;  // sample
  bool bitmap() const { return kind == 1 || kind == 4; }
  bool raw() const { return kind > 3; }
};

absl::StatusOr<PnmHeader> ReadHeader(absl::string_view bytes, absl::string_view name, Reader* in) {
  PnmHeader h;
  h.kind = bytes[1] - '0';
  in->Skip(2);
  h.info.width = in->Number();
  h.info.height = in->Number();
  h.info.channels = h.kind == 3 || h.kind == 6 ? 3 : 1;
  if (!h.bitmap()) h.largest = in->Number(65535);
  if (h.largest < 1) return DamagedPicture(name, "the header holds no numbers that make sense");
  ONWARD_RETURN_IF_ERROR(CheckPictureSize(name, h.info.height, h.info.width));
  return h;
}

}  // namespace

absl::StatusOr<PictureInfo> ProbePnm(absl::string_view bytes, absl::string_view name) {
  Reader in(bytes);
  ONWARD_ASSIGN_OR_RETURN(const PnmHeader header, ReadHeader(bytes, name, &in));
  return header.info;
}

absl::StatusOr<Picture> DecodePnm(absl::string_view bytes, absl::string_view name) {
  Reader in(bytes);
  ONWARD_ASSIGN_OR_RETURN(const PnmHeader header, ReadHeader(bytes, name, &in));
  const bool bitmap = header.bitmap();
  const int64_t largest = header.largest;
  Picture p;
  p.info = header.info;
  const int64_t count = p.info.height * p.info.width * p.info.channels;
  // A sample as text takes a byte at least; checked before memory is taken.
  if (static_cast<int64_t>(in.rest().size()) < count / (bitmap ? 8 : 1)) {
    return DamagedPicture(name, "the file is truncated");
  }
  std::vector<int64_t> samples(count);
  if (header.raw()) {
    in.Skip(1);
    if (!ReadRaw(in.rest(), bitmap, largest, p, samples.data())) {
      return DamagedPicture(name, "the file is truncated");
    }
  } else {
    for (int64_t& s : samples) s = bitmap ? in.Digit() : in.Number(65535);
  }
  p.pixels.reserve(count);
  for (int64_t s : samples) {
    if (s < 0 || s > largest) return DamagedPicture(name, "a sample is missing or too large");
    const int64_t shade = (s * 255 + largest / 2) / largest;
    p.pixels.push_back(static_cast<uint8_t>(bitmap ? 255 - shade : shade));  // 1 is black
  }
  return p;
}

}  // namespace onward
