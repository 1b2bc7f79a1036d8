// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/value.h"

#include "absl/strings/str_cat.h"

namespace onward {

ValueType Value::type() const {
  using Kind = ValueType::Kind;
  if (const Tensor* t = tensor()) return ValueType::Of(t->dtype(), t->shape());
  if (const Sequence* s = sequence()) return ValueType::Holding(Kind::kSequence, s->element);
  if (const SparseTensor* s = sparse()) {
    ValueType type = ValueType::Of(s->values.dtype(), s->shape);
    type.kind = Kind::kSparse;
    return type;
  }
  if (const Map* m = map()) {
    ValueType type = ValueType::Holding(Kind::kMap, m->values.element);
    type.dtype = m->keys.dtype();
    return type;
  }
  ValueType nothing;
  nothing.kind = Kind::kOptional;
  return nothing;
}

std::string Value::ToString() const {
  if (empty()) return "nothing";
  std::string text = type().ToString();
  if (sequence() != nullptr) absl::StrAppend(&text, " of ", sequence()->items.size());
  if (map() != nullptr) absl::StrAppend(&text, " of ", map()->keys.elements());
  return text;
}

Value Value::Owned() const {
  if (const Tensor* t = tensor()) return t->Owned();
  return *this;  // containers own what they hold
}

ValueType CommonType(const ValueType& a, const ValueType& b) {
  if (!a.known() || a == b) return b;
  if (!b.known() || a.kind != b.kind || a.dtype != b.dtype) return a;
  ValueType common = a;
  if (a.element != nullptr && b.element != nullptr) {
    common.element = std::make_shared<const ValueType>(CommonType(*a.element, *b.element));
  }
  if (!a.has_rank || !b.has_rank || a.rank() != b.rank()) {
    common.has_rank = false;
    common.dims.clear();
    return common;
  }
  for (int i = 0; i < a.rank(); ++i) {
    if (a.dims[i] != b.dims[i]) common.dims[i] = {};
  }
  return common;
}

}  // namespace onward
