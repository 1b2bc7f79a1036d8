// SPDX-License-Identifier: Apache-2.0
#include "tests/support/reference/small.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <map>

namespace onward::reference {
namespace {

constexpr Number kNaN = std::numeric_limits<Number>::quiet_NaN();
constexpr Number kInfinity = std::numeric_limits<Number>::infinity();

// From the tables of the standard: exponent bits, mantissa bits, bias.
struct Layout {
  int exponent, mantissa, bias;
};

const std::map<DType, Layout>& Layouts() {
  static const auto* const layouts = new std::map<DType, Layout>{
      {DType::kFloat8E4M3FN, {4, 3, 7}}, {DType::kFloat8E4M3FNUZ, {4, 3, 8}},
      {DType::kFloat8E5M2, {5, 2, 15}},  {DType::kFloat8E5M2FNUZ, {5, 2, 16}},
      {DType::kFloat4E2M1, {2, 1, 1}},   {DType::kFloat6E2M3, {2, 3, 1}},
      {DType::kFloat6E3M2, {3, 2, 3}},
  };
  return *layouts;
}

bool IsSmallInt(DType dtype) {
  return dtype == DType::kInt4 || dtype == DType::kUint4 || dtype == DType::kInt2 ||
         dtype == DType::kUint2;
}

}  // namespace

bool IsSmallType(DType dtype) {
  return Layouts().contains(dtype) || IsSmallInt(dtype) || dtype == DType::kFloat8E8M0;
}

Number NumberOf(DType dtype, int bits) {
  if (IsSmallInt(dtype)) {
    const int limit = 1 << DTypeBits(dtype);
    const bool is_signed = dtype == DType::kInt4 || dtype == DType::kInt2;
    return is_signed && bits >= limit / 2 ? bits - limit : bits;
  }
  if (dtype == DType::kFloat8E8M0) return bits == 255 ? kNaN : std::ldexp(Number{1}, bits - 127);
  const Layout l = Layouts().at(dtype);
  const int sign = bits >> (l.exponent + l.mantissa);
  const int exponent = (bits >> l.mantissa) & ((1 << l.exponent) - 1);
  const int mantissa = bits & ((1 << l.mantissa) - 1);
  if (dtype == DType::kFloat8E4M3FN && (bits & 0x7f) == 0x7f) return kNaN;
  if (dtype == DType::kFloat8E5M2 && exponent == 31) {
    return mantissa != 0 ? kNaN : sign != 0 ? -kInfinity : kInfinity;
  }
  if ((dtype == DType::kFloat8E4M3FNUZ || dtype == DType::kFloat8E5M2FNUZ) && bits == 0x80) {
    return kNaN;
  }
  const Number fraction = static_cast<Number>(mantissa) / (1 << l.mantissa);
  const Number magnitude = exponent == 0 ? std::ldexp(fraction, 1 - l.bias)
                                         : std::ldexp(1 + fraction, exponent - l.bias);
  return sign != 0 ? -magnitude : magnitude;
}

Number ToSmall(DType dtype, Number value, bool saturate) {
  if (IsSmallInt(dtype)) {
    const Number modulus = 1 << DTypeBits(dtype);
    Number rest = std::fmod(std::trunc(value), modulus);
    if (rest < 0) rest += modulus;
    return NumberOf(dtype, static_cast<int>(rest));
  }
  if (dtype == DType::kFloat8E8M0) {  // the next power of two
    return std::exp2(std::ceil(std::log2(std::fabs(value))));
  }
  Number best = 0, largest = 0;
  int best_bits = 0;
  for (int bits = 0; bits < 1 << DTypeBits(dtype); ++bits) {
    const Number v = NumberOf(dtype, bits);
    if (!std::isfinite(v)) continue;
    largest = std::max(largest, v);
    const Number distance = std::fabs(v - value), shortest = std::fabs(best - value);
    if (distance < shortest || (distance == shortest && bits % 2 == 0 && best_bits % 2 != 0)) {
      best = v;
      best_bits = bits;
    }
  }
  if (saturate || DTypeBits(dtype) < 8) return best;
  // Half a step beyond the largest, where rounding to more exponents would leave the range.
  const Number step = largest - ToSmall(dtype, largest * 0.9L);
  if (std::fabs(value) < largest + step / 2) return best;
  if (dtype == DType::kFloat8E5M2) return value < 0 ? -kInfinity : kInfinity;
  return kNaN;
}

void ReadSmall(const Tensor& t, std::vector<Number>& values) {
  const int width = DTypeBits(t.dtype());
  for (size_t i = 0; i < values.size(); ++i) {
    int bits = 0;
    for (int b = 0; b < width; ++b) {
      const size_t at = i * width + b;
      bits |= ((t.data<uint8_t>()[at / 8] >> (at % 8)) & 1) << b;
    }
    values[i] = NumberOf(t.dtype(), bits);
  }
}

void WriteSmall(const std::vector<Number>& values, Tensor& t) {
  const int width = DTypeBits(t.dtype());
  std::memset(t.raw(), 0, t.bytes());
  for (size_t i = 0; i < values.size(); ++i) {
    int bits = 0;
    const auto same = [&](Number v) {
      return std::isnan(values[i]) ? std::isnan(v) : v == values[i];
    };
    while (!same(NumberOf(t.dtype(), bits)) && bits + 1 < 1 << width) ++bits;
    for (int b = 0; b < width; ++b) {
      const size_t at = i * width + b;
      t.data<uint8_t>()[at / 8] |= static_cast<uint8_t>(((bits >> b) & 1) << (at % 8));
    }
  }
}

}  // namespace onward::reference
