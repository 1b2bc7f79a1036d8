// SPDX-License-Identifier: Apache-2.0
// What an edge of a graph carries: a tensor, a sequence, a map, a sparse tensor, or
// nothing (an empty optional). An optional that holds something is what it holds.
// Copying shares; what is held does not change.
#ifndef ONWARD_CORE_TENSOR_VALUE_H_
#define ONWARD_CORE_TENSOR_VALUE_H_

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/tensor/tensor.h"
#include "core/tensor/value_type.h"

namespace onward {

class Value;

// Elements of one type, which an empty sequence has, too.
struct Sequence {
  ValueType element;
  std::vector<Value> items;
};

// keys[i] (a vector of integers or strings) stands for values.items[i].
struct Map {
  Tensor keys;
  Sequence values;
};

// The elements of a tensor of `shape` that are not zero: their places either in the
// flattened tensor (indices [n]) or by axis (indices [n, rank]).
struct SparseTensor {
  Tensor values, indices;
  Shape shape;
};

class Value {
 public:
  Value() = default;  // an empty optional
  Value(Tensor tensor) : held_(std::move(tensor)) {}
  Value(Sequence sequence) : held_(std::make_shared<const Sequence>(std::move(sequence))) {}
  Value(Map map) : held_(std::make_shared<const Map>(std::move(map))) {}
  Value(SparseTensor sparse) : held_(std::make_shared<const SparseTensor>(std::move(sparse))) {}

  bool empty() const { return std::holds_alternative<std::monostate>(held_); }
  // Null where it is something else.
  const Tensor* tensor() const { return std::get_if<Tensor>(&held_); }
  Tensor* tensor() { return std::get_if<Tensor>(&held_); }
  const Sequence* sequence() const { return Held<Sequence>(); }
  const Map* map() const { return Held<Map>(); }
  const SparseTensor* sparse() const { return Held<SparseTensor>(); }

  // The type of what is held; of an empty optional, an optional of nothing known.
  ValueType type() const;
  // "float[2, 3]", "seq(float[?]) of 4", "nothing"
  std::string ToString() const;
  // The same with memory of its own wherever it has borrowed some (Tensor::Owned).
  Value Owned() const;

 private:
  template <typename T>
  const T* Held() const {
    auto* held = std::get_if<std::shared_ptr<const T>>(&held_);
    return held == nullptr ? nullptr : held->get();
  }
  std::variant<std::monostate, Tensor, std::shared_ptr<const Sequence>, std::shared_ptr<const Map>,
               std::shared_ptr<const SparseTensor>>
      held_;
};

// What both could be: dimensions that differ become unknown.
ValueType CommonType(const ValueType& a, const ValueType& b);

}  // namespace onward

#endif  // ONWARD_CORE_TENSOR_VALUE_H_
