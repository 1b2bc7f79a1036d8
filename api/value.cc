// SPDX-License-Identifier: Apache-2.0
#include "onward/value.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "api/access.h"

namespace onward::api {
namespace {

const Tensor& NoTensor() {
  static const Tensor* const none = new Tensor;
  return *none;
}

Status Wrong(const std::string& message) { return Status(StatusCode::kInvalidArgument, message); }

std::vector<Value> ItemsOf(const onward::Sequence& sequence) {
  std::vector<Value> items;
  for (const onward::Value& item : sequence.items) items.push_back(Access::ToValue(item));
  return items;
}

onward::Sequence SequenceOf(ElementType type, const std::vector<Value>& items) {
  onward::Sequence sequence{ValueType::Unranked(static_cast<DType>(type)), {}};
  for (const Value& item : items) {
    sequence.items.push_back(Access::FromValue(item));
    const ValueType held = sequence.items.back().type();
    sequence.element = sequence.items.size() == 1 ? held : CommonType(sequence.element, held);
  }
  return sequence;
}

}  // namespace

Value Access::ToValue(onward::Value value) {
  Value out;
  if (value.empty()) return out;
  auto impl = std::make_shared<Value::Impl>();
  if (const onward::Tensor* tensor = value.tensor()) {
    impl->tensor = ToTensor(*tensor);
    impl->shape = impl->tensor.shape();
  } else if (const onward::Sequence* sequence = value.sequence()) {
    impl->items = ItemsOf(*sequence);
  } else if (const onward::Map* map = value.map()) {
    impl->keys = ToTensor(map->keys);
    impl->items = ItemsOf(map->values);
  } else if (const onward::SparseTensor* sparse = value.sparse()) {
    impl->tensor = ToTensor(sparse->values);
    impl->keys = ToTensor(sparse->indices);
    impl->shape = Shape(sparse->shape.begin(), sparse->shape.end());
  }
  impl->value = std::move(value);
  out.impl_ = std::move(impl);
  return out;
}

onward::Value Access::FromValue(const Value& value) {
  return value.impl_ == nullptr ? onward::Value() : value.impl_->value;
}

Value::Value(Tensor tensor) {
  if (tensor.defined()) *this = Access::ToValue(Access::FromTensor(tensor));
}

Value Value::Sequence(ElementType type, std::vector<Value> items) {
  return Access::ToValue(SequenceOf(type, items));
}

Result<Value> Value::Map(const Tensor& keys, std::vector<Value> values) {
  const bool named =
      keys.element_type() == ElementType::kInt64 || keys.element_type() == ElementType::kString;
  if (!named || keys.shape().size() != 1) {
    return Wrong("the keys of a map must be a vector of int64 or string");
  }
  if (keys.elements() != static_cast<int64_t>(values.size())) {
    return Wrong(
        absl::StrCat("a map of ", keys.elements(), " keys and ", values.size(), " values"));
  }
  return Access::ToValue(
      onward::Map{Access::FromTensor(keys), SequenceOf(ElementType::kUndefined, values)});
}

Result<Value> Value::Sparse(const Tensor& values, const Tensor& indices, const Shape& shape) {
  const size_t axes = indices.shape().size();
  const bool placed =
      axes == 1 || (axes == 2 && indices.shape()[1] == static_cast<int64_t>(shape.size()));
  if (indices.element_type() != ElementType::kInt64 || !placed || values.shape().size() != 1 ||
      indices.shape()[0] != values.elements()) {
    return Wrong("a sparse tensor takes values [n] and int64 indices [n] or [n, axes]");
  }
  return Access::ToValue(onward::SparseTensor{Access::FromTensor(values),
                                              Access::FromTensor(indices),
                                              onward::Shape(absl::MakeConstSpan(shape))});
}

ValueKind Value::kind() const {
  if (impl_ == nullptr) return ValueKind::kOptional;
  if (impl_->value.tensor() != nullptr) return ValueKind::kTensor;
  if (impl_->value.sequence() != nullptr) return ValueKind::kSequence;
  return impl_->value.map() != nullptr ? ValueKind::kMap : ValueKind::kSparseTensor;
}

const Tensor& Value::tensor() const { return impl_ == nullptr ? NoTensor() : impl_->tensor; }
const Tensor& Value::keys() const { return impl_ == nullptr ? NoTensor() : impl_->keys; }

const std::vector<Value>& Value::items() const {
  static const std::vector<Value>* const none = new std::vector<Value>;
  return impl_ == nullptr ? *none : impl_->items;
}

const Shape& Value::shape() const {
  static const Shape* const none = new Shape;
  return impl_ == nullptr ? *none : impl_->shape;
}

std::string Value::ToString() const { return Access::FromValue(*this).ToString(); }

}  // namespace onward::api
