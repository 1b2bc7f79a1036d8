// SPDX-License-Identifier: Apache-2.0
// What is known of a value before it is computed.
#ifndef ONWARD_CORE_TENSOR_VALUE_TYPE_H_
#define ONWARD_CORE_TENSOR_VALUE_TYPE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/shape.h"

namespace onward {

// One dimension: a number, a named unknown, or just unknown.
struct Dim {
  int64_t value = -1;  // -1: not known
  std::string symbol;
  bool known() const { return value >= 0; }
  friend bool operator==(const Dim&, const Dim&) = default;
};

struct ValueType {
  enum class Kind { kTensor, kSparse, kSequence, kOptional, kMap };
  Kind kind = Kind::kTensor;
  DType dtype = DType::kUndefined;  // of a tensor's elements, of a map's keys
  bool has_rank = false;
  std::vector<Dim> dims;  // meaningful if has_rank
  // What a sequence, an optional or a map holds; null: not known.
  std::shared_ptr<const ValueType> element = nullptr;

  static ValueType Of(DType dtype, const Shape& shape);
  static ValueType Unranked(DType dtype) { return {Kind::kTensor, dtype, false, {}, nullptr}; }
  static ValueType Holding(Kind kind, ValueType element);
  // Whether anything is known at all.
  bool known() const { return kind != Kind::kTensor || dtype != DType::kUndefined; }
  // The element type of the tensors it is made of, however deep they lie.
  DType leaf() const { return element == nullptr ? dtype : element->leaf(); }
  bool is_tensor() const { return kind == Kind::kTensor; }
  int rank() const { return has_rank ? static_cast<int>(dims.size()) : -1; }
  // The shape, if every dimension is known.
  std::optional<Shape> StaticShape() const;
  std::string ToString() const;
  friend bool operator==(const ValueType& a, const ValueType& b);
};

}  // namespace onward

#endif  // ONWARD_CORE_TENSOR_VALUE_TYPE_H_
