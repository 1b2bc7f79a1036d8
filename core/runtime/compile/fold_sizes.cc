// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/compile/fold_sizes.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/graph/constant.h"
#include "core/graph/random.h"
#include "core/runtime/compile/evaluate.h"

namespace onward {
namespace {

// Of what is read and of what comes out.
constexpr int64_t kMostElements = 1024;

class SizeFolder {
 public:
  SizeFolder(const absl::flat_hash_set<std::string>& keep, const Device& device,
             const OperatorSet& operators, Graph* graph)
      : keep_(keep), context_{&device, &operators, &graph->opsets, {}}, graph_(*graph) {
    for (const NamedType& in : graph->inputs) fed_.insert(in.name);
  }

  void Run() {
    for (Node& node : graph_.nodes) {
      if (std::optional<Tensor> value = ConstantValue(node)) {
        known_[node.outputs[0]] = *std::move(value);
      } else if (GivesFewIntegers(node)) {
        Fold(&node);
      }
    }
  }

 private:
  bool GivesFewIntegers(const Node& node) const {
    if (!node.domain.empty() || node.inputs.empty() || node.outputs.size() != 1) return false;
    const ValueType* type = graph_.TypeOf(node.outputs[0]);
    if (type == nullptr || !type->is_tensor() || !IsInteger(type->dtype)) return false;
    const std::optional<Shape> shape = type->StaticShape();
    return shape.has_value() && shape->elements() <= kMostElements && !IsRandom(node);
  }

  const Tensor* Constant(const std::string& value) const {
    if (auto it = known_.find(value); it != known_.end()) return &it->second;
    if (keep_.contains(value) || fed_.contains(value)) return nullptr;
    auto it = graph_.initializers.find(value);
    return it == graph_.initializers.end() ? nullptr : &it->second;
  }

  void Fold(Node* node) {
    std::vector<ValueType> types(node->inputs.size());
    std::vector<InputFact> facts(node->inputs.size());
    for (size_t i = 0; i < facts.size(); ++i) {
      if (node->inputs[i].empty()) continue;
      const Tensor* constant = Constant(node->inputs[i]);
      if (constant == nullptr || constant->elements() > kMostElements) return;
      types[i] = ValueType::Of(constant->dtype(), constant->shape());
      facts[i] = {&types[i], constant};
    }
    const auto out_types = context_.operators->Infer(*node, facts, *context_.opsets);
    if (!out_types.ok()) return;  // whoever compiles it says why
    absl::StatusOr<std::vector<Tensor>> out = EvaluateNode(*node, facts, *out_types, context_);
    if (!out.ok() || out->size() != 1) return;
    Node folded;
    folded.op_type = "Constant";
    folded.name = node->name;
    folded.outputs = node->outputs;
    folded.attributes["value"] = (*out)[0];
    known_[node->outputs[0]] = (*out)[0];
    *node = std::move(folded);
  }

  const absl::flat_hash_set<std::string>& keep_;
  const EvaluateContext context_;
  Graph& graph_;
  absl::flat_hash_set<std::string> fed_;
  absl::flat_hash_map<std::string, Tensor> known_;
};

}  // namespace

void FoldSizes(const absl::flat_hash_set<std::string>& keep, const Device& device,
               const OperatorSet& operators, Graph* graph) {
  if (device.Usable().ok()) SizeFolder(keep, device, operators, graph).Run();
}

}  // namespace onward
