// SPDX-License-Identifier: Apache-2.0
#include "core/graph/attribute_lists.h"

#include <type_traits>
#include <variant>

namespace onward {
namespace {

const Attribute* Find(const Node& node, const std::string& attribute) {
  auto it = node.attributes.find(attribute);
  return it == node.attributes.end() || !it->second.ref.empty() ? nullptr : &it->second;
}

}  // namespace

std::vector<float> FloatsOf(const Node& node, const std::string& attribute) {
  const Attribute* found = Find(node, attribute);
  const auto* floats = found == nullptr ? nullptr : std::get_if<std::vector<float>>(&found->value);
  return floats == nullptr ? std::vector<float>() : *floats;
}

std::vector<double> NumbersOf(const Node& node, const std::string& attribute) {
  const std::vector<float> floats = FloatsOf(node, attribute);
  if (!floats.empty()) return {floats.begin(), floats.end()};
  for (const std::string& name : {attribute, attribute + "_as_tensor"}) {
    const Tensor* tensor = node.TensorAttribute(name);
    if (tensor == nullptr) continue;
    absl::StatusOr<std::vector<double>> numbers = ToDoubles(*tensor);
    if (numbers.ok()) return *std::move(numbers);
  }
  return {};
}

int64_t LengthOf(const Node& node, const std::string& attribute) {
  const Attribute* found = Find(node, attribute);
  if (found == nullptr) return 0;
  return std::visit(
      [](const auto& value) -> int64_t {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, Tensor>) {
          return value.elements();
        } else if constexpr (std::is_same_v<T, std::vector<int64_t>> ||
                             std::is_same_v<T, std::vector<float>> ||
                             std::is_same_v<T, std::vector<std::string>>) {
          return static_cast<int64_t>(value.size());
        } else {
          return 0;
        }
      },
      found->value);
}

}  // namespace onward
