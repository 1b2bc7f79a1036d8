// SPDX-License-Identifier: Apache-2.0
// Elementary functions of whole arrays of float, for the widest vectors that a CPU has. The
// same operations on every element, so that results depend neither on the CPU nor on where in
// an array a number stands. Special values are the C library's; `y` may be `x`.
#ifndef ONWARD_CORE_OPS_CPU_FLOAT_MATH_H_
#define ONWARD_CORE_OPS_CPU_FLOAT_MATH_H_

#include <cstdint>

#include "core/base/cpu_features.h"

namespace onward {

struct FloatMath {
  using Map = void (*)(const float* x, float* y, int64_t n);
  // Errors in ulp: exp 1, sin and cos 1.6, erf 1.6, tanh and sigmoid 2.5.
  Map exp, tanh, sigmoid, erf, sin, cos;
  // The largest element, minus infinity for n = 0; NaN is passed over.
  float (*max)(const float* x, int64_t n);
  // y = e^(x - shift), and its sum, which is built in 32 parts.
  float (*exp_and_sum)(const float* x, float shift, float* y, int64_t n);
  // The sum alone.
  float (*sum_of_exp)(const float* x, float shift, int64_t n);
};

const FloatMath& FloatMathOf(const CpuFeatures& cpu);
// That of the CPU this runs on.
const FloatMath& FloatMathHere();

// The versions, for FloatMathOf.
extern const FloatMath kFloatMathAvx2, kFloatMathAvx512;

}  // namespace onward

#endif  // ONWARD_CORE_OPS_CPU_FLOAT_MATH_H_
