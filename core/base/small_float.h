// SPDX-License-Identifier: Apache-2.0
// Numbers of at most 8 bits as codes: floats of 8, 6 and 4 bits and integers of 4 and 2. A
// code is the element's bits in the low end of a byte.
#ifndef ONWARD_CORE_BASE_SMALL_FLOAT_H_
#define ONWARD_CORE_BASE_SMALL_FLOAT_H_

#include <array>
#include <cstdint>

#include "core/base/dtype.h"

namespace onward {

// float8 in all its kinds, float6, float4.
bool IsSmallFloat(DType dtype);
// The four kinds of float8 with a sign, which the standard counts among the floats.
bool IsFloat8(DType dtype);
// int4, uint4, int2, uint2.
bool IsSmallInteger(DType dtype);
inline bool IsSmall(DType dtype) { return IsSmallFloat(dtype) || IsSmallInteger(dtype); }

// The number of each code; codes beyond the type's bits repeat.
using SmallValues = std::array<float, 256>;
const SmallValues& SmallValuesOf(DType dtype);

// Which power of two a number between two of them becomes in float8e8m0.
enum class PowerRounding { kUp, kDown, kNearest };

struct SmallRounding {
  // Numbers beyond the largest become the largest; otherwise infinity, or NaN where there is
  // none. Types without either always saturate.
  bool saturate = true;
  PowerRounding power = PowerRounding::kUp;
};

// Codes of small floats: to nearest even; NaN where the type has none becomes a zero.
void EncodeSmallFloats(DType dtype, const float* x, int64_t n, const SmallRounding& rounding,
                       uint8_t* codes);

// The largest finite number.
float LargestSmallFloat(DType dtype);
// The lowest and the highest number of an integer type of at most 16 bits, the small ones too.
struct IntegerRange {
  int32_t low = 0, high = 0;
};
IntegerRange RangeOf(DType dtype);

}  // namespace onward

#endif  // ONWARD_CORE_BASE_SMALL_FLOAT_H_
