// SPDX-License-Identifier: Apache-2.0
// 16-bit floats as storage types: arithmetic happens in float.
#ifndef ONWARD_CORE_BASE_HALF_H_
#define ONWARD_CORE_BASE_HALF_H_

#include <bit>
#include <cstdint>

namespace onward {

// IEEE 754 binary16. Conversions round to nearest even.
uint16_t FloatToHalfBits(float value);
float HalfBitsToFloat(uint16_t bits);

struct Float16 {
  uint16_t bits = 0;
  Float16() = default;
  explicit Float16(float v) : bits(FloatToHalfBits(v)) {}
  operator float() const { return HalfBitsToFloat(bits); }
};

// The upper half of a float; rounds to nearest even, NaN stays NaN.
struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float v) {
    uint32_t u = std::bit_cast<uint32_t>(v);
    if ((u & 0x7fffffffu) > 0x7f800000u) {
      bits = static_cast<uint16_t>((u >> 16) | 0x40u);
    } else {
      bits = static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
    }
  }
  operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

}  // namespace onward

#endif  // ONWARD_CORE_BASE_HALF_H_
