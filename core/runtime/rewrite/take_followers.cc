// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/rewrite/take_followers.h"

#include <algorithm>
#include <optional>

namespace onward {
namespace {

bool SameShape(const ValueType& a, const ValueType& b) {
  if (!a.has_rank || !b.has_rank || a.rank() != b.rank()) return false;
  for (int i = 0; i < a.rank(); ++i) {
    const Dim &x = a.dims[i], &y = b.dims[i];
    const bool same = x.known() ? x.value == y.value : !x.symbol.empty() && x.symbol == y.symbol;
    if (!same) return false;
  }
  return true;
}

// A constant of one float.
std::optional<float> Bound(const PatternGraph& graph, const Node& clip, int input) {
  if (!clip.HasInput(input)) return std::nullopt;
  const std::optional<Tensor> t = graph.Constant(clip.inputs[input]);
  if (!t.has_value() || t->dtype() != DType::kFloat || t->elements() != 1) return std::nullopt;
  return *t->data<float>();
}

}  // namespace

bool KeepsShape(const PatternGraph& graph, const Node& follower, const std::string& value) {
  const ValueType *type = graph.TypeOf(value), *result = graph.TypeOf(follower.outputs[0]);
  return type != nullptr && result != nullptr && SameShape(*type, *result);
}

std::string OtherOperand(const Node& add, const std::string& value) {
  if (!add.Is("Add") || add.inputs.size() != 2) return "";
  if (add.inputs[0] == add.inputs[1]) return "";
  return add.inputs[0] == value ? add.inputs[1] : add.inputs[0];
}

bool TakeResidual(const PatternGraph& graph, const Node& add, int input, Node* fused) {
  const std::string other = OtherOperand(add, fused->outputs[0]);
  const ValueType *type = graph.TypeOf(other), *result = graph.TypeOf(add.outputs[0]);
  if (other.empty() || type == nullptr || result == nullptr || type->dtype != result->dtype ||
      !SameShape(*type, *result) || !KeepsShape(graph, add, fused->outputs[0]) ||
      graph.IsInitializer(other)) {
    return false;
  }
  fused->inputs.resize(std::max<size_t>(fused->inputs.size(), input + 1));
  fused->inputs[input] = other;
  return true;
}

bool TakeActivation(const PatternGraph& graph, const Node& activation, Node* fused) {
  if (activation.Is("Relu")) {
    fused->attributes["activation"] = "Relu";
    return true;
  }
  if (!activation.Is("Clip") || activation.inputs[0] != fused->outputs[0]) return false;
  const std::optional<float> low = Bound(graph, activation, 1), high = Bound(graph, activation, 2);
  if (!low.has_value() || !high.has_value()) return false;
  fused->attributes["activation"] = "Clip";
  fused->attributes["activation_low"] = *low;
  fused->attributes["activation_high"] = *high;
  return true;
}

}  // namespace onward
