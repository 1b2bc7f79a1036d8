// SPDX-License-Identifier: Apache-2.0
#include "tests/support/reference/array.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "tests/support/reference/small.h"

namespace onward::reference {
namespace {

template <typename T>
void Read(const Tensor& t, std::vector<Number>& values) {
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<Number>(t.data<T>()[i]);
}

template <typename T>
void Write(const std::vector<Number>& values, Tensor& t) {
  for (size_t i = 0; i < values.size(); ++i) t.data<T>()[i] = static_cast<T>(values[i]);
}

template <typename Half>
void WriteHalf(const std::vector<Number>& values, Tensor& t) {
  for (size_t i = 0; i < values.size(); ++i) {
    t.data<Half>()[i] = Half(static_cast<float>(values[i]));
  }
}

void ReadText(const Tensor& t, std::vector<Number>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    const std::string& text = t.data<std::string>()[i];
    values[i] = text.empty() ? 0 : std::stold(text);  // what zero is to numbers
  }
}

void WriteText(const std::vector<Number>& values, Tensor& t) {
  for (size_t i = 0; i < values.size(); ++i) {
    t.data<std::string>()[i] = absl::StrCat(static_cast<int64_t>(values[i]));
  }
}

}  // namespace

int64_t Array::Offset(const Index& at) const {
  int64_t offset = 0;
  for (int d = 0; d < rank(); ++d) offset = offset * shape[d] + at[d];
  return offset;
}

Number Array::Broadcast(const Index& at) const {
  const size_t skipped = at.size() - static_cast<size_t>(rank());
  Index own(rank());
  for (int d = 0; d < rank(); ++d) own[d] = shape[d] == 1 ? 0 : at[skipped + d];
  return (*this)[own];
}

Array FromTensor(const Tensor& t) {
  if (!t.defined()) return {};
  Array a(t.dtype(), t.shape());
  if (IsSmallType(t.dtype())) {
    ReadSmall(t, a.values);
    return a;
  }
  switch (t.dtype()) {
    case DType::kFloat: Read<float>(t, a.values); break;
    case DType::kDouble: Read<double>(t, a.values); break;
    case DType::kFloat16: Read<Float16>(t, a.values); break;
    case DType::kBFloat16: Read<BFloat16>(t, a.values); break;
    case DType::kInt8: Read<int8_t>(t, a.values); break;
    case DType::kInt16: Read<int16_t>(t, a.values); break;
    case DType::kInt32: Read<int32_t>(t, a.values); break;
    case DType::kInt64: Read<int64_t>(t, a.values); break;
    case DType::kUint8: Read<uint8_t>(t, a.values); break;
    case DType::kUint16: Read<uint16_t>(t, a.values); break;
    case DType::kUint32: Read<uint32_t>(t, a.values); break;
    case DType::kUint64: Read<uint64_t>(t, a.values); break;
    case DType::kBool: Read<bool>(t, a.values); break;
    case DType::kString: ReadText(t, a.values); break;
    default: throw std::runtime_error(absl::StrCat("no reference for ", DTypeName(t.dtype())));
  }
  return a;
}

Tensor ToTensor(const Array& a) {
  if (!a.present()) return {};
  Tensor t(a.dtype, a.shape);
  if (IsSmallType(a.dtype)) {
    WriteSmall(a.values, t);
    return t;
  }
  switch (a.dtype) {
    case DType::kFloat: Write<float>(a.values, t); break;
    case DType::kDouble: Write<double>(a.values, t); break;
    case DType::kFloat16: WriteHalf<Float16>(a.values, t); break;
    case DType::kBFloat16: WriteHalf<BFloat16>(a.values, t); break;
    case DType::kInt8: Write<int8_t>(a.values, t); break;
    case DType::kInt16: Write<int16_t>(a.values, t); break;
    case DType::kInt32: Write<int32_t>(a.values, t); break;
    case DType::kInt64: Write<int64_t>(a.values, t); break;
    case DType::kUint8: Write<uint8_t>(a.values, t); break;
    case DType::kUint16: Write<uint16_t>(a.values, t); break;
    case DType::kUint32: Write<uint32_t>(a.values, t); break;
    case DType::kUint64: Write<uint64_t>(a.values, t); break;
    case DType::kBool: Write<bool>(a.values, t); break;
    case DType::kString: WriteText(a.values, t); break;
    default: throw std::runtime_error(absl::StrCat("no reference for ", DTypeName(a.dtype)));
  }
  return t;
}

Number Wrapped(DType dtype, Number value) {
  const int bits = DTypeBits(dtype);
  const bool is_signed = dtype == DType::kInt8 || dtype == DType::kInt16 ||
                         dtype == DType::kInt32 || dtype == DType::kInt64;
  const Number modulus = std::ldexp(Number{1}, bits);
  Number rest = std::fmod(std::trunc(value), modulus);
  if (rest < 0) rest += modulus;
  return is_signed && rest >= modulus / 2 ? rest - modulus : rest;
}

void ForEach(const Shape& shape, const std::function<void(const Index& at)>& visit) {
  const int64_t n = shape.elements();
  Index at(shape.rank());
  for (int64_t i = 0; i < n; ++i) {
    visit(at);
    for (int d = shape.rank() - 1; d >= 0; --d) {
      if (++at[d] < shape[d]) break;
      at[d] = 0;
    }
  }
}

Array Make(DType dtype, const Shape& shape, const std::function<Number(const Index& at)>& f) {
  Array a(dtype, shape);
  int64_t i = 0;
  ForEach(shape, [&](const Index& at) { a.values[i++] = f(at); });
  return a;
}

Shape Broadcast(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  Shape result;
  for (int d = 0; d < rank; ++d) {
    const int i = d - (rank - a.rank()), j = d - (rank - b.rank());
    const int64_t left = i < 0 ? 1 : a[i], right = j < 0 ? 1 : b[j];
    result.push_back(left == 1 ? right : left);
  }
  return result;
}

int Axis(int64_t axis, int rank) { return static_cast<int>(axis < 0 ? axis + rank : axis); }

Index With(Index at, int axis, int64_t value) {
  at[axis] = value;
  return at;
}

}  // namespace onward::reference
