// SPDX-License-Identifier: Apache-2.0
#include "environment/node_call.h"

#include "absl/strings/str_cat.h"
#include "core/base/shape.h"

namespace onward {
namespace {

constexpr int64_t kFirstSymbol = -2;

}  // namespace

api::TensorType TypeTranslator::ToPlugin(const ValueType& type) {
  api::TensorType out;
  if (!type.is_tensor()) return out;
  out.element_type = static_cast<api::ElementType>(type.dtype);
  out.has_shape = type.has_rank;
  for (const Dim& dim : type.dims) {
    if (dim.known() || dim.symbol.empty()) {
      out.shape.push_back(dim.known() ? dim.value : -1);
      continue;
    }
    const auto at = std::find(symbols_.begin(), symbols_.end(), dim.symbol);
    out.shape.push_back(kFirstSymbol - (at - symbols_.begin()));
    if (at == symbols_.end()) symbols_.push_back(dim.symbol);
  }
  return out;
}

absl::StatusOr<ValueType> TypeTranslator::FromPlugin(const api::TensorType& type) const {
  const auto code = static_cast<int32_t>(type.element_type);
  if (code != 0 && !IsKnownDType(code)) {
    return absl::InvalidArgumentError(absl::StrCat("no elements have the type number ", code));
  }
  ValueType out = ValueType::Unranked(static_cast<DType>(code));
  if (!type.has_shape) return out;
  Shape known;
  out.has_rank = true;
  for (const int64_t size : type.shape) {
    Dim dim;
    if (size >= 0) dim.value = size;
    const auto symbol = static_cast<size_t>(kFirstSymbol - size);
    if (size <= kFirstSymbol && symbol < symbols_.size()) dim.symbol = symbols_[symbol];
    out.dims.push_back(std::move(dim));
    known.push_back(std::max<int64_t>(size, 1));
  }
  absl::StatusOr<int64_t> elements = CheckedElements(known.dims());
  if (!elements.ok()) return elements.status();
  return out;
}

}  // namespace onward
