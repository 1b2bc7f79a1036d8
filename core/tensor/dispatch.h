// SPDX-License-Identifier: Apache-2.0
// From a DType at run time to a C++ type at compile time. Each function calls
// f.template operator()<T>() and returns true, or returns false for a type
// outside its set.
#ifndef ONWARD_CORE_TENSOR_DISPATCH_H_
#define ONWARD_CORE_TENSOR_DISPATCH_H_

#include <cstdint>
#include <type_traits>

#include "core/base/dtype.h"

namespace onward {

template <typename F>
bool DispatchFloat(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kFloat: f.template operator()<float>(); return true;
    case DType::kDouble: f.template operator()<double>(); return true;
    default: return false;
  }
}

// Also the 16-bit types.
template <typename F>
bool DispatchFloating(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kFloat16: f.template operator()<Float16>(); return true;
    case DType::kBFloat16: f.template operator()<BFloat16>(); return true;
    default: return DispatchFloat(dtype, f);
  }
}

// Integers and bool.
template <typename F>
bool DispatchIntegral(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kInt8: f.template operator()<int8_t>(); return true;
    case DType::kUint8: f.template operator()<uint8_t>(); return true;
    case DType::kInt16: f.template operator()<int16_t>(); return true;
    case DType::kUint16: f.template operator()<uint16_t>(); return true;
    case DType::kInt32: f.template operator()<int32_t>(); return true;
    case DType::kUint32: f.template operator()<uint32_t>(); return true;
    case DType::kInt64: f.template operator()<int64_t>(); return true;
    case DType::kUint64: f.template operator()<uint64_t>(); return true;
    case DType::kBool: f.template operator()<bool>(); return true;
    default: return false;
  }
}

// Everything above.
template <typename F>
bool DispatchNumeric(DType dtype, F&& f) {
  return DispatchFloating(dtype, f) || DispatchIntegral(dtype, f);
}

// The type arithmetic is done in: float for the 16-bit floats, T otherwise.
template <typename T>
using ComputeType =
    std::conditional_t<std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>, float, T>;

template <typename T>
T FromDouble(double v) {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    return T(static_cast<float>(v));
  } else {
    return static_cast<T>(v);
  }
}

}  // namespace onward

#endif  // ONWARD_CORE_TENSOR_DISPATCH_H_
