// SPDX-License-Identifier: Apache-2.0
// What is given to a run, and whether it may be.
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/runtime/execute/executor.h"

namespace onward {

ValueMap ToValues(const TensorMap& tensors) { return ValueMap(tensors.begin(), tensors.end()); }

absl::StatusOr<TensorMap> ToTensors(ValueMap values) {
  TensorMap tensors;
  for (auto& [name, value] : values) {
    if (value.tensor() == nullptr) {
      return absl::UnimplementedError(
          absl::StrCat("'", name, "' is ", value.ToString(), ", not a tensor"));
    }
    tensors.emplace_hint(tensors.end(), name, std::move(*value.tensor()));
  }
  return tensors;
}

absl::Status CheckFeed(const NamedType& input, const Tensor& tensor) {
  const ValueType given = ValueType::Of(tensor.dtype(), tensor.shape());
  auto mismatch = [&] {
    return absl::InvalidArgumentError(absl::StrCat("input '", input.name, "' must be ",
                                                   input.type.ToString(), ", but ",
                                                   given.ToString(), " was given"));
  };
  if (input.type.dtype != DType::kUndefined && input.type.dtype != tensor.dtype())
    return mismatch();
  if (!input.type.has_rank) return absl::OkStatus();
  if (input.type.rank() != tensor.shape().rank()) return mismatch();
  for (int i = 0; i < tensor.shape().rank(); ++i) {
    if (input.type.dims[i].known() && input.type.dims[i].value != tensor.shape()[i])
      return mismatch();
  }
  return absl::OkStatus();
}

absl::Status CheckFeed(const NamedType& input, const Value& value) {
  if (value.tensor() != nullptr && input.type.is_tensor()) {
    return CheckFeed(input, *value.tensor());
  }
  const ValueType& declared = input.type;
  const bool optional = declared.kind == ValueType::Kind::kOptional;
  if (value.empty() && optional) return absl::OkStatus();
  const ValueType* wanted = optional ? declared.element.get() : &declared;
  const ValueType given = value.type();
  if (wanted == nullptr || (wanted->kind == given.kind && wanted->leaf() == given.leaf())) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("input '", input.name, "' must be ",
                                                 declared.ToString(), ", but ", value.ToString(),
                                                 " was given"));
}

}  // namespace onward
