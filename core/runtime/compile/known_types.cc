// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/compile/known_types.h"

#include <utility>

namespace onward {

absl::StatusOr<std::vector<ValueType>> KnownTypes::Infer(
    const Node& node, absl::Span<const InputFact> inputs,
    const std::map<std::string, int>& opsets) const {
  if (std::optional<std::vector<ValueType>> types = ByRule(node, inputs, opsets)) {
    return *std::move(types);
  }
  return operators_.Infer(node, inputs, opsets);
}

std::optional<std::vector<ValueType>> KnownTypes::ByRule(
    const Node& node, absl::Span<const InputFact> inputs,
    const std::map<std::string, int>& opsets) const {
  const ShapeRule* rule = kernels_.FindShape(node.op_type, node.domain);
  if (rule == nullptr) return std::nullopt;
  std::vector<ValueSpec> in(inputs.size()), out(node.outputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!node.HasInput(static_cast<int>(i))) continue;
    if (inputs[i].type == nullptr || !inputs[i].type->is_tensor()) return std::nullopt;
    in[i] = {inputs[i].type->dtype, inputs[i].type->StaticShape(), nullptr, inputs[i].constant};
    if (!in[i].present() || !in[i].shape.has_value()) return std::nullopt;
  }
  for (size_t i = 0; i < out.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    auto known = known_.find(node.outputs[i]);
    if (known == known_.end()) return std::nullopt;
    out[i].dtype = known->second;
  }
  std::vector<ValueType> types(out.size());
  for (size_t i = 0; i < out.size(); ++i) {
    if (!out[i].present()) continue;
    const absl::StatusOr<Shape> shape =
        (*rule)(KernelRequest{node, in, out, opsets}, static_cast<int>(i));
    if (!shape.ok() || !CheckedElements(shape->dims()).ok()) return std::nullopt;
    types[i] = ValueType::Of(out[i].dtype, *shape);
  }
  return types;
}

}  // namespace onward
