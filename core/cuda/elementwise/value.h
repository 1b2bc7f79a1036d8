// SPDX-License-Identifier: Apache-2.0
// Elements of every type in memory and in registers, for device code.
#ifndef ONWARD_CORE_CUDA_ELEMENTWISE_VALUE_H_
#define ONWARD_CORE_CUDA_ELEMENTWISE_VALUE_H_

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <cstdint>

#include "core/cuda/elementwise/chain.h"
#include "core/cuda/launch.h"

namespace onward::cuda {

// A register that holds any type: floats of 32 bits and less as f, double as d, integers and bool
// as their 64 bits.
union Value {
  float f;
  double d;
  int64_t i;
};

// Rounds towards zero and marks what was lost in the last bit, so that rounding once more to
// fewer bits gives the double's nearest value.
__device__ inline float RoundToOdd(double x) {
  const float nearest = static_cast<float>(x);
  if (static_cast<double>(nearest) == x || x != x) return nearest;
  unsigned bits = __float_as_uint(nearest);
  if (std::fabs(static_cast<double>(nearest)) > std::fabs(x)) --bits;
  return __uint_as_float(bits | 1u);
}

__device__ inline float RoundToHalf(float x) { return __half2float(__float2half_rn(x)); }
__device__ inline float RoundToBFloat16(float x) {
  return __bfloat162float(__float2bfloat16_rn(x));
}

// What a float becomes that is stored in a type of the float chain.
__device__ inline float Rounded(Type type, float x) {
  switch (type) {
    case Type::kHalf: return RoundToHalf(x);
    case Type::kBFloat16: return RoundToBFloat16(x);
    case Type::kBool: return x != 0.0f ? 1.0f : 0.0f;
    default: return x;
  }
}

__device__ inline float LoadFloat(Type type, const void* data, int64_t at) {
  switch (type) {
    case Type::kHalf: return __half2float(static_cast<const __half*>(data)[at]);
    case Type::kBFloat16: return __bfloat162float(static_cast<const __nv_bfloat16*>(data)[at]);
    case Type::kBool: return static_cast<const uint8_t*>(data)[at] != 0 ? 1.0f : 0.0f;
    default: return static_cast<const float*>(data)[at];
  }
}

__device__ inline void StoreFloat(Type type, void* data, int64_t at, float x) {
  switch (type) {
    case Type::kHalf: static_cast<__half*>(data)[at] = __float2half_rn(x); return;
    case Type::kBFloat16: static_cast<__nv_bfloat16*>(data)[at] = __float2bfloat16_rn(x); return;
    case Type::kBool: static_cast<uint8_t*>(data)[at] = x != 0.0f; return;
    default: static_cast<float*>(data)[at] = x; return;
  }
}

template <typename T>
__device__ int64_t LoadInteger(const void* data, int64_t at) {
  return static_cast<int64_t>(static_cast<const T*>(data)[at]);
}

__device__ inline Value Load(Type type, const void* data, int64_t at) {
  Value v;
  switch (type) {
    case Type::kFloat:
    case Type::kHalf:
    case Type::kBFloat16: v.f = LoadFloat(type, data, at); break;
    case Type::kDouble: v.d = static_cast<const double*>(data)[at]; break;
    case Type::kBool: v.i = static_cast<const uint8_t*>(data)[at] != 0; break;
    case Type::kInt8: v.i = LoadInteger<int8_t>(data, at); break;
    case Type::kInt16: v.i = LoadInteger<int16_t>(data, at); break;
    case Type::kInt32: v.i = LoadInteger<int32_t>(data, at); break;
    case Type::kInt64: v.i = LoadInteger<int64_t>(data, at); break;
    case Type::kUint8: v.i = LoadInteger<uint8_t>(data, at); break;
    case Type::kUint16: v.i = LoadInteger<uint16_t>(data, at); break;
    case Type::kUint32: v.i = LoadInteger<uint32_t>(data, at); break;
    case Type::kUint64: v.i = LoadInteger<uint64_t>(data, at); break;
  }
  return v;
}

__device__ inline void Store(Type type, void* data, int64_t at, Value v) {
  switch (type) {
    case Type::kFloat:
    case Type::kHalf:
    case Type::kBFloat16: StoreFloat(type, data, at, v.f); return;
    case Type::kDouble: static_cast<double*>(data)[at] = v.d; return;
    case Type::kBool: static_cast<uint8_t*>(data)[at] = v.i != 0; return;
    case Type::kInt8:
    case Type::kUint8: static_cast<uint8_t*>(data)[at] = static_cast<uint8_t>(v.i); return;
    case Type::kInt16:
    case Type::kUint16: static_cast<uint16_t*>(data)[at] = static_cast<uint16_t>(v.i); return;
    case Type::kInt32:
    case Type::kUint32: static_cast<uint32_t*>(data)[at] = static_cast<uint32_t>(v.i); return;
    case Type::kInt64:
    case Type::kUint64: static_cast<int64_t*>(data)[at] = v.i; return;
  }
}

// The bits of an integer type, cut off and extended as its sign asks.
__device__ inline int64_t CutOff(Type type, int64_t x) {
  switch (type) {
    case Type::kBool: return x != 0;
    case Type::kInt8: return static_cast<int8_t>(x);
    case Type::kInt16: return static_cast<int16_t>(x);
    case Type::kInt32: return static_cast<int32_t>(x);
    case Type::kUint8: return static_cast<uint8_t>(x);
    case Type::kUint16: return static_cast<uint16_t>(x);
    case Type::kUint32: return static_cast<uint32_t>(x);
    default: return x;
  }
}

// Beyond the range of the integer, its nearest end; NaN is 0. `end` is one more than the largest.
template <typename Integer>
__device__ int64_t Saturated(double x, double begin, double end, Integer lowest, Integer largest) {
  if (x >= end) return static_cast<int64_t>(largest);
  if (x < begin) return static_cast<int64_t>(lowest);
  return x == x ? static_cast<int64_t>(static_cast<Integer>(x)) : 0;
}

__device__ inline int64_t ToInteger(Type type, double x) {
  switch (type) {
    case Type::kBool: return x != 0;
    case Type::kInt8: return Saturated<int64_t>(x, -128, 128, -128, 127);
    case Type::kInt16: return Saturated<int64_t>(x, -32768, 32768, -32768, 32767);
    case Type::kInt32: return Saturated<int64_t>(x, -0x1p31, 0x1p31, INT32_MIN, INT32_MAX);
    case Type::kInt64: return Saturated<int64_t>(x, -0x1p63, 0x1p63, INT64_MIN, INT64_MAX);
    case Type::kUint8: return Saturated<int64_t>(x, 0, 256, 0, 255);
    case Type::kUint16: return Saturated<int64_t>(x, 0, 65536, 0, 65535);
    case Type::kUint32: return Saturated<int64_t>(x, 0, 0x1p32, 0, UINT32_MAX);
    default: return Saturated<uint64_t>(x, 0, 0x1p64, 0, UINT64_MAX);
  }
}

// A result of each domain as the type it is rounded to.
__device__ inline Value FromFloat(Type type, float x) {
  Value v;
  if (type <= Type::kBFloat16) {
    v.f = Rounded(type, x);
  } else if (type == Type::kDouble) {
    v.d = x;
  } else {
    v.i = ToInteger(type, x);
  }
  return v;
}

__device__ inline Value FromDouble(Type type, double x) {
  Value v;
  if (type == Type::kDouble) {
    v.d = x;
  } else if (type == Type::kFloat) {
    v.f = static_cast<float>(x);
  } else if (type <= Type::kBFloat16) {
    v.f = Rounded(type, RoundToOdd(x));
  } else {
    v.i = ToInteger(type, x);
  }
  return v;
}

template <typename Integer>
__device__ Value FromInteger(Type type, Integer x) {
  if (type == Type::kDouble || type == Type::kHalf || type == Type::kBFloat16) {
    return FromDouble(type, static_cast<double>(x));
  }
  Value v;
  if (type == Type::kFloat) {
    v.f = static_cast<float>(x);
  } else {
    v.i = CutOff(type, static_cast<int64_t>(x));
  }
  return v;
}

}  // namespace onward::cuda

#endif  // ONWARD_CORE_CUDA_ELEMENTWISE_VALUE_H_
