// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/packed.h"

#include <algorithm>
#include <cstring>

namespace onward {
namespace {

// kCodes codes of 8 / kCodes bits are a byte.
template <int kCodes>
void UnpackBytes(const uint8_t* bytes, int64_t n, uint8_t* codes) {
  constexpr int kBits = 8 / kCodes;
  constexpr uint8_t kMask = (1 << kBits) - 1;
  const int64_t whole = n / kCodes;
  for (int64_t i = 0; i < whole; ++i) {
    for (int j = 0; j < kCodes; ++j) codes[i * kCodes + j] = (bytes[i] >> (j * kBits)) & kMask;
  }
  for (int64_t i = whole * kCodes; i < n; ++i) {
    codes[i] = (bytes[whole] >> ((i % kCodes) * kBits)) & kMask;
  }
}

template <int kCodes>
void PackBytes(const uint8_t* codes, int64_t n, uint8_t* bytes) {
  constexpr int kBits = 8 / kCodes;
  constexpr uint8_t kMask = (1 << kBits) - 1;
  const int64_t whole = n / kCodes;
  for (int64_t i = 0; i < whole; ++i) {
    int byte = 0;
    for (int j = 0; j < kCodes; ++j) byte |= (codes[i * kCodes + j] & kMask) << (j * kBits);
    bytes[i] = static_cast<uint8_t>(byte);
  }
  if (whole * kCodes == n) return;
  int byte = 0;
  for (int64_t i = whole * kCodes; i < n; ++i) byte |= (codes[i] & kMask) << ((i % kCodes) * kBits);
  bytes[whole] = static_cast<uint8_t>(byte);
}

// Four codes are three bytes.
constexpr int kSix = 6;
constexpr int kSixMask = 0x3f;

void UnpackSixes(const uint8_t* bytes, int64_t n, uint8_t* codes) {
  for (int64_t i = 0; i < n; ++i) {
    const int64_t bit = i * kSix;
    int word = bytes[bit / 8];
    if (bit % 8 + kSix > 8) word |= bytes[bit / 8 + 1] << 8;
    codes[i] = static_cast<uint8_t>((word >> (bit % 8)) & kSixMask);
  }
}

void PackSixes(const uint8_t* codes, int64_t n, uint8_t* bytes) {
  std::memset(bytes, 0, (n * kSix + 7) / 8);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t bit = i * kSix;
    const int word = (codes[i] & kSixMask) << (bit % 8);
    bytes[bit / 8] |= static_cast<uint8_t>(word);
    if (bit % 8 + kSix > 8) bytes[bit / 8 + 1] |= static_cast<uint8_t>(word >> 8);
  }
}

}  // namespace

void UnpackCodes(const Tensor& from, int64_t begin, int64_t n, uint8_t* codes) {
  const int bits = DTypeBits(from.dtype());
  const uint8_t* bytes = from.data<uint8_t>() + begin * bits / 8;
  switch (bits) {
    case 2: return UnpackBytes<4>(bytes, n, codes);
    case 4: return UnpackBytes<2>(bytes, n, codes);
    case kSix: return UnpackSixes(bytes, n, codes);
    default: std::copy_n(bytes, n, codes);
  }
}

void PackCodes(const uint8_t* codes, int64_t begin, int64_t n, Tensor* to) {
  const int bits = DTypeBits(to->dtype());
  uint8_t* bytes = to->data<uint8_t>() + begin * bits / 8;
  switch (bits) {
    case 2: return PackBytes<4>(codes, n, bytes);
    case 4: return PackBytes<2>(codes, n, bytes);
    case kSix: return PackSixes(codes, n, bytes);
    default: std::copy_n(codes, n, bytes);
  }
}

Tensor Unpacked(const Tensor& packed) {
  Tensor codes(DType::kUint8, packed.shape());
  UnpackCodes(packed, 0, packed.elements(), codes.data<uint8_t>());
  return codes;
}

}  // namespace onward
