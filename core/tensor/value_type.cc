// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/value_type.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace onward {

ValueType ValueType::Of(DType dtype, const Shape& shape) {
  ValueType t;
  t.dtype = dtype;
  t.has_rank = true;
  for (int64_t d : shape) t.dims.push_back(Dim{d, ""});
  return t;
}

ValueType ValueType::Holding(Kind kind, ValueType element) {
  ValueType t;
  t.kind = kind;
  t.element = std::make_shared<const ValueType>(std::move(element));
  return t;
}

bool operator==(const ValueType& a, const ValueType& b) {
  const bool same_element =
      a.element == b.element ||
      (a.element != nullptr && b.element != nullptr && *a.element == *b.element);
  return a.kind == b.kind && a.dtype == b.dtype && a.has_rank == b.has_rank && a.dims == b.dims &&
         same_element;
}

std::optional<Shape> ValueType::StaticShape() const {
  if (kind != Kind::kTensor || !has_rank) return std::nullopt;
  Shape shape;
  for (const Dim& d : dims) {
    if (!d.known()) return std::nullopt;
    shape.push_back(d.value);
  }
  return shape;
}

std::string ValueType::ToString() const {
  const auto held = [this] { return element == nullptr ? "?" : element->ToString(); };
  switch (kind) {
    case Kind::kSequence: return absl::StrCat("seq(", held(), ")");
    case Kind::kOptional: return absl::StrCat("optional(", held(), ")");
    case Kind::kMap: return absl::StrCat("map(", DTypeName(dtype), ", ", held(), ")");
    case Kind::kTensor:
    case Kind::kSparse: break;
  }
  std::string text(DTypeName(dtype));
  if (has_rank) {
    absl::StrAppend(&text, "[",
                    absl::StrJoin(dims, ", ",
                                  [](std::string* out, const Dim& d) {
                                    absl::StrAppend(out, d.known()          ? absl::StrCat(d.value)
                                                         : d.symbol.empty() ? "?"
                                                                            : d.symbol);
                                  }),
                    "]");
  }
  return kind == Kind::kSparse ? absl::StrCat("sparse(", text, ")") : text;
}

}  // namespace onward
