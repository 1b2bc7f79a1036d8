// SPDX-License-Identifier: Apache-2.0
// Element types of tensors.
//
// Threads: plain values.
#ifndef ONWARD_ELEMENT_TYPE_H_
#define ONWARD_ELEMENT_TYPE_H_

#include <cstdint>
#include <string>

#include "onward/status.h"  // which says where onward::api is

namespace onward::api {

// Element types, numbered as in ONNX (TensorProto.DataType).
enum class ElementType : int32_t {
  kUndefined = 0,
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kUint16 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kFloat16 = 10,
  kDouble = 11,
  kUint32 = 12,
  kUint64 = 13,
  kComplex64 = 14,
  kComplex128 = 15,
  kBFloat16 = 16,
  kFloat8E4M3FN = 17,
  kFloat8E4M3FNUZ = 18,
  kFloat8E5M2 = 19,
  kFloat8E5M2FNUZ = 20,
  kUint4 = 21,
  kInt4 = 22,
  kFloat4E2M1 = 23,
  kFloat8E8M0 = 24,
  kUint2 = 25,
  kInt2 = 26,
  kFloat6E2M3 = 27,
  kFloat6E3M2 = 28,
};

// The element type that a C++ type stands for. Types that C++ does not have (float16,
// bfloat16, complex, 8 bits of float and less) are reached through Tensor::bytes.
template <typename T>
struct ElementTypeOf;

template <ElementType kType>
struct ElementTypeConstant {
  static constexpr ElementType value = kType;
};
template <>
struct ElementTypeOf<float> : ElementTypeConstant<ElementType::kFloat> {};
template <>
struct ElementTypeOf<double> : ElementTypeConstant<ElementType::kDouble> {};
template <>
struct ElementTypeOf<int8_t> : ElementTypeConstant<ElementType::kInt8> {};
template <>
struct ElementTypeOf<int16_t> : ElementTypeConstant<ElementType::kInt16> {};
template <>
struct ElementTypeOf<int32_t> : ElementTypeConstant<ElementType::kInt32> {};
template <>
struct ElementTypeOf<int64_t> : ElementTypeConstant<ElementType::kInt64> {};
template <>
struct ElementTypeOf<uint8_t> : ElementTypeConstant<ElementType::kUint8> {};
template <>
struct ElementTypeOf<uint16_t> : ElementTypeConstant<ElementType::kUint16> {};
template <>
struct ElementTypeOf<uint32_t> : ElementTypeConstant<ElementType::kUint32> {};
template <>
struct ElementTypeOf<uint64_t> : ElementTypeConstant<ElementType::kUint64> {};
template <>
struct ElementTypeOf<bool> : ElementTypeConstant<ElementType::kBool> {};
template <>
struct ElementTypeOf<std::string> : ElementTypeConstant<ElementType::kString> {};

}  // namespace onward::api

#endif  // ONWARD_ELEMENT_TYPE_H_
