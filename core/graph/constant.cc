// SPDX-License-Identifier: Apache-2.0
#include "core/graph/constant.h"

#include <string>
#include <variant>
#include <vector>

namespace onward {
namespace {

template <typename T>
std::optional<Tensor> ScalarIn(const Attribute::Value& value) {
  const T* v = std::get_if<T>(&value);
  return v == nullptr ? std::nullopt : std::optional<Tensor>(Tensor::Scalar<T>(*v));
}

template <typename T>
std::optional<Tensor> VectorIn(const Attribute::Value& value) {
  const auto* v = std::get_if<std::vector<T>>(&value);
  if (v == nullptr) return std::nullopt;
  return Tensor::FromValues<T>({static_cast<int64_t>(v->size())}, absl::MakeConstSpan(*v));
}

}  // namespace

std::optional<Tensor> ConstantValue(const Node& node) {
  if (!node.Is("Constant") || node.outputs.size() != 1) return std::nullopt;
  for (const auto& [name, attribute] : node.attributes) {
    if (!attribute.ref.empty()) continue;
    const Attribute::Value& v = attribute.value;
    if (name == "value") {
      if (const auto* t = std::get_if<Tensor>(&v)) return *t;
    }
    if (name == "value_float") return ScalarIn<float>(v);
    if (name == "value_int") return ScalarIn<int64_t>(v);
    if (name == "value_string") return ScalarIn<std::string>(v);
    if (name == "value_floats") return VectorIn<float>(v);
    if (name == "value_ints") return VectorIn<int64_t>(v);
    if (name == "value_strings") return VectorIn<std::string>(v);
  }
  return std::nullopt;
}

}  // namespace onward
