// SPDX-License-Identifier: Apache-2.0
#include "core/base/dtype.h"

#include <array>

namespace onward {
namespace {

struct Row {
  const char* name;
  int bits;
};

constexpr std::array<Row, 29> kRows = {{
    {"undefined", 0},      {"float", 32},       {"uint8", 8},          {"int8", 8},
    {"uint16", 16},        {"int16", 16},       {"int32", 32},         {"int64", 64},
    {"string", 0},         {"bool", 8},         {"float16", 16},       {"double", 64},
    {"uint32", 32},        {"uint64", 64},      {"complex64", 64},     {"complex128", 128},
    {"bfloat16", 16},      {"float8e4m3fn", 8}, {"float8e4m3fnuz", 8}, {"float8e5m2", 8},
    {"float8e5m2fnuz", 8}, {"uint4", 4},        {"int4", 4},           {"float4e2m1", 4},
    {"float8e8m0", 8},     {"uint2", 2},        {"int2", 2},           {"float6e2m3", 6},
    {"float6e3m2", 6},
}};

}  // namespace

bool IsKnownDType(int32_t onnx_code) {
  return onnx_code > 0 && onnx_code < static_cast<int32_t>(kRows.size());
}

const char* DTypeName(DType dtype) {
  const auto code = static_cast<int32_t>(dtype);
  return IsKnownDType(code) ? kRows[code].name : kRows[0].name;
}

int DTypeBits(DType dtype) {
  const auto code = static_cast<int32_t>(dtype);
  return IsKnownDType(code) ? kRows[code].bits : 0;
}

bool IsFloating(DType dtype) {
  return dtype == DType::kFloat || dtype == DType::kDouble || IsHalf(dtype);
}

bool IsHalf(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBFloat16; }

bool IsInteger(DType dtype) {
  switch (dtype) {
    case DType::kInt8:
    case DType::kUint8:
    case DType::kInt16:
    case DType::kUint16:
    case DType::kInt32:
    case DType::kUint32:
    case DType::kInt64:
    case DType::kUint64: return true;
    default: return false;
  }
}

}  // namespace onward
