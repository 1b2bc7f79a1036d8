// SPDX-License-Identifier: Apache-2.0
// Defines the fast functions of device code, whose names glibc reserves.
#include "tests/cuda_emu/device_math.h"

extern "C" {
float __expf(float x) noexcept { return std::exp(x); }
float __exp10f(float x) noexcept { return ::exp10f(x); }
float __logf(float x) noexcept { return std::log(x); }
float __log2f(float x) noexcept { return std::log2(x); }
float __log10f(float x) noexcept { return std::log10(x); }
float __sinf(float x) noexcept { return std::sin(x); }
float __cosf(float x) noexcept { return std::cos(x); }
float __tanf(float x) noexcept { return std::tan(x); }
float __powf(float x, float y) noexcept { return std::pow(x, y); }
}
