// SPDX-License-Identifier: Apache-2.0
// Values that go in and come out, and what a model declares about them.
//
// Threads: plain values. Copies of a Value share what it holds, which does not change.
#ifndef ONWARD_VALUE_H_
#define ONWARD_VALUE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "onward/status.h"
#include "onward/tensor.h"

namespace onward::api {

enum class ValueKind { kTensor, kSparseTensor, kSequence, kOptional, kMap };

// One axis: a size, a name for a size that is not fixed ("batch"), or neither.
struct Dimension {
  int64_t size = -1;  // -1: not fixed
  std::string symbol;
};

// A declared input or output.
struct ValueInfo {
  std::string name;
  ValueKind kind = ValueKind::kTensor;
  ElementType element_type = ElementType::kUndefined;  // of the tensors inside, however deep
  bool has_shape = false;                              // false: even the number of axes is open
  std::vector<Dimension> shape;                        // meaningful if has_shape
  std::string text;                                    // the type in words: "float[N, 1, 28, 28]"
};

// A tensor, a sequence, a map, a sparse tensor, or nothing. An optional that holds
// something is what it holds; one that is empty is nothing.
class Value {
 public:
  Value() = default;     // nothing
  Value(Tensor tensor);  // nothing, if there is no tensor

  // Items of one kind. `type` is the element type of the tensors inside, which an empty
  // sequence has, too.
  static Value Sequence(ElementType type, std::vector<Value> items);
  // keys (a vector of int64 or string) name values, as many of each, else an error.
  static Result<Value> Map(const Tensor& keys, std::vector<Value> values);
  // A tensor of `shape` whose elements at `indices` (int64: [n] in the flattened tensor, or
  // [n, axes]) are `values` ([n]), and zero elsewhere. An error where these do not fit.
  static Result<Value> Sparse(const Tensor& values, const Tensor& indices, const Shape& shape);

  // kOptional: nothing is held.
  ValueKind kind() const;
  bool empty() const { return impl_ == nullptr; }

  // What is held; no tensor, or no items, where it is of another kind.
  const Tensor& tensor() const;             // the tensor; the values of a sparse one
  const std::vector<Value>& items() const;  // of a sequence; the values of a map
  const Tensor& keys() const;               // of a map; the indices of a sparse tensor
  const Shape& shape() const;               // of a tensor, sparse or not
  // "float[2, 3]", "seq(float) of 4", "nothing"
  std::string ToString() const;

 private:
  friend struct Access;
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

using ValueMap = std::map<std::string, Value>;

}  // namespace onward::api

#endif  // ONWARD_VALUE_H_
