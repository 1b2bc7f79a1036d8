// SPDX-License-Identifier: Apache-2.0
#include "core/base/small_float.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace onward {
namespace {

constexpr int kFloatMantissa = 23;
constexpr int kFloatBias = 127;
constexpr uint8_t kPowerNaN = 0xff;  // of float8e8m0
constexpr uint8_t kPowerMax = 0xfe;

// A sign, then an exponent, then `mantissa` bits. Codes up to `largest` are finite.
struct Format {
  int mantissa;
  int lowest_exponent;  // of normal numbers
  int sign_bit;
  uint8_t largest;
  uint8_t infinity;    // 0: none
  uint8_t nan;         // 0: none
  bool unsigned_zero;  // the code of -0 is NaN
  bool has_nan() const { return nan != 0; }
};

constexpr Format kE4M3FN = {3, -6, 0x80, 0x7e, 0, 0x7f, false};
constexpr Format kE4M3FNUZ = {3, -7, 0x80, 0x7f, 0, 0x80, true};
constexpr Format kE5M2 = {2, -14, 0x80, 0x7b, 0x7c, 0x7e, false};
constexpr Format kE5M2FNUZ = {2, -15, 0x80, 0x7f, 0, 0x80, true};
constexpr Format kE2M1 = {1, 0, 0x08, 0x07, 0, 0, false};
constexpr Format kE2M3 = {3, 0, 0x20, 0x1f, 0, 0, false};
constexpr Format kE3M2 = {2, -2, 0x20, 0x1f, 0, 0, false};

const Format* FormatOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat8E4M3FN: return &kE4M3FN;
    case DType::kFloat8E4M3FNUZ: return &kE4M3FNUZ;
    case DType::kFloat8E5M2: return &kE5M2;
    case DType::kFloat8E5M2FNUZ: return &kE5M2FNUZ;
    case DType::kFloat4E2M1: return &kE2M1;
    case DType::kFloat6E2M3: return &kE2M3;
    case DType::kFloat6E3M2: return &kE3M2;
    default: return nullptr;
  }
}

float Decode(const Format& f, int code) {
  const bool negative = (code & f.sign_bit) != 0;
  const int magnitude = code & (f.sign_bit - 1);
  const bool is_nan = f.unsigned_zero ? (code & 0xff) == f.nan
                                      : f.has_nan() && magnitude > std::max(f.largest, f.infinity);
  if (is_nan) return std::numeric_limits<float>::quiet_NaN();
  float value = std::numeric_limits<float>::infinity();
  if (f.infinity == 0 || magnitude != f.infinity) {
    const int exponent = magnitude >> f.mantissa;
    const int fraction = magnitude & ((1 << f.mantissa) - 1);
    const int significand = exponent == 0 ? fraction : fraction + (1 << f.mantissa);
    value = std::ldexp(static_cast<float>(significand),
                       f.lowest_exponent + std::max(exponent - 1, 0) - f.mantissa);
  }
  return negative ? -value : value;
}

// As integers: the significand of x, with its leading one, is shifted to the format's bits
// and rounded to even. A carry into the exponent is what rounding up means.
inline uint8_t Encode(const Format& f, float x, bool saturate) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t sign = bits >> 31 != 0 ? static_cast<uint32_t>(f.sign_bit) : 0;
  const int exponent = static_cast<int>(magnitude >> kFloatMantissa) - kFloatBias;
  const int above = std::max(exponent - f.lowest_exponent, 0);
  const int below = std::max(f.lowest_exponent - exponent, 0);
  const int shift = std::min(kFloatMantissa - f.mantissa + below, kFloatMantissa + 2);
  const uint32_t significand = (magnitude & 0x7fffffu) | 0x800000u;
  const uint32_t even = (significand >> shift) & 1u;
  const uint32_t rounded = (significand + (1u << (shift - 1)) - 1 + even) >> shift;
  const uint32_t code = (static_cast<uint32_t>(above) << f.mantissa) + rounded;
  uint32_t beyond = f.largest;
  if (!saturate && f.has_nan()) beyond = f.infinity != 0 ? f.infinity : f.nan;
  uint32_t result = (code <= f.largest ? code : beyond) | sign;
  if (f.unsigned_zero && code == 0) result = 0;
  if (magnitude > 0x7f800000u) {
    // What ml_dtypes, the standard's oracle, makes of NaN without a code: zero, turned.
    result = f.has_nan() ? f.nan | sign : sign ^ static_cast<uint32_t>(f.sign_bit);
  }
  return static_cast<uint8_t>(result);
}

// The sign is lost: the standard leaves open what becomes of it.
inline uint8_t EncodePower(float x, const SmallRounding& rounding) {
  const uint32_t magnitude = std::bit_cast<uint32_t>(x) & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return kPowerNaN;
  const uint8_t beyond = rounding.saturate ? kPowerMax : kPowerNaN;
  if (magnitude == 0x7f800000u) return beyond;
  constexpr uint32_t kLowest = 0x400000u;  // 2^-127
  if (magnitude < kLowest) return rounding.saturate ? 0 : kPowerNaN;
  // Below 2^-126 floats have no leading one: the range from 2^-127 on has one bit less.
  const bool subnormal = magnitude < 0x800000u;
  const uint32_t code = subnormal ? 0 : magnitude >> kFloatMantissa;
  const uint32_t fraction = subnormal ? (magnitude - kLowest) << 1 : magnitude & 0x7fffffu;
  const bool up = (rounding.power == PowerRounding::kUp && fraction != 0) ||
                  (rounding.power == PowerRounding::kNearest && fraction >= 0x400000u);
  if (up && code == kPowerMax) return beyond;
  return static_cast<uint8_t>(code + (up ? 1 : 0));
}

int32_t SmallInteger(DType dtype, int code) {
  const int bits = DTypeBits(dtype);
  const int low = code & ((1 << bits) - 1);
  const bool is_signed = dtype == DType::kInt4 || dtype == DType::kInt2;
  return is_signed && (low >> (bits - 1)) != 0 ? low - (1 << bits) : low;
}

SmallValues MakeValues(DType dtype) {
  SmallValues values{};
  const Format* format = FormatOf(dtype);
  for (int code = 0; code < 256; ++code) {
    if (format != nullptr) {
      values[code] = Decode(*format, code & (2 * format->sign_bit - 1));
    } else if (dtype == DType::kFloat8E8M0) {
      values[code] = code == kPowerNaN ? std::numeric_limits<float>::quiet_NaN()
                                       : std::ldexp(1.0f, code - kFloatBias);
    } else {
      values[code] = static_cast<float>(SmallInteger(dtype, code));
    }
  }
  return values;
}

template <typename One>
void EncodeEach(const float* x, int64_t n, uint8_t* codes, const One& one) {
  for (int64_t i = 0; i < n; ++i) codes[i] = one(x[i]);
}

}  // namespace

bool IsSmallFloat(DType dtype) { return FormatOf(dtype) != nullptr || dtype == DType::kFloat8E8M0; }

bool IsFloat8(DType dtype) { return FormatOf(dtype) != nullptr && DTypeBits(dtype) == 8; }

bool IsSmallInteger(DType dtype) {
  return dtype == DType::kInt4 || dtype == DType::kUint4 || dtype == DType::kInt2 ||
         dtype == DType::kUint2;
}

const SmallValues& SmallValuesOf(DType dtype) {
  constexpr int kFirst = static_cast<int>(DType::kFloat8E4M3FN);
  constexpr int kLast = static_cast<int>(DType::kFloat6E3M2);
  using All = std::array<SmallValues, kLast - kFirst + 1>;
  static const All* const all = [] {
    auto* made = new All;
    for (int i = 0; i < static_cast<int>(made->size()); ++i) {
      (*made)[i] = MakeValues(static_cast<DType>(kFirst + i));
    }
    return made;
  }();
  return (*all)[static_cast<int>(dtype) - kFirst];
}

void EncodeSmallFloats(DType dtype, const float* x, int64_t n, const SmallRounding& rounding,
                       uint8_t* codes) {
  const bool saturate = rounding.saturate;
  // The formats are named one by one, so that each loop is compiled for its own.
  switch (dtype) {
    case DType::kFloat8E4M3FN:
      return EncodeEach(x, n, codes, [=](float v) { return Encode(kE4M3FN, v, saturate); });
    case DType::kFloat8E4M3FNUZ:
      return EncodeEach(x, n, codes, [=](float v) { return Encode(kE4M3FNUZ, v, saturate); });
    case DType::kFloat8E5M2:
      return EncodeEach(x, n, codes, [=](float v) { return Encode(kE5M2, v, saturate); });
    case DType::kFloat8E5M2FNUZ:
      return EncodeEach(x, n, codes, [=](float v) { return Encode(kE5M2FNUZ, v, saturate); });
    case DType::kFloat4E2M1:
      return EncodeEach(x, n, codes, [](float v) { return Encode(kE2M1, v, true); });
    case DType::kFloat6E2M3:
      return EncodeEach(x, n, codes, [](float v) { return Encode(kE2M3, v, true); });
    case DType::kFloat6E3M2:
      return EncodeEach(x, n, codes, [](float v) { return Encode(kE3M2, v, true); });
    default: return EncodeEach(x, n, codes, [&](float v) { return EncodePower(v, rounding); });
  }
}

float LargestSmallFloat(DType dtype) {
  const Format* format = FormatOf(dtype);
  return format != nullptr ? Decode(*format, format->largest) : 0x1p127f;
}

IntegerRange RangeOf(DType dtype) {
  const int bits = DTypeBits(dtype);
  const bool is_signed = dtype == DType::kInt2 || dtype == DType::kInt4 || dtype == DType::kInt8 ||
                         dtype == DType::kInt16;
  return is_signed ? IntegerRange{-(1 << (bits - 1)), (1 << (bits - 1)) - 1}
                   : IntegerRange{0, (1 << bits) - 1};
}

}  // namespace onward
