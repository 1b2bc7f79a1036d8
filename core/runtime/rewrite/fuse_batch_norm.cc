// SPDX-License-Identifier: Apache-2.0
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "core/graph/operator_set.h"
#include "core/graph/patterns/pattern.h"
#include "core/runtime/rewrite/fuse.h"
#include "core/runtime/rewrite/take_followers.h"

namespace onward {
namespace {

constexpr int kNormResidual = 5;  // input of FusedBatchNormalization

// The activation's gradient and the normalisation's, which alone reads it.
struct Backward {
  const Node* activation;
  const Node* normalisation;
};

class BatchNormFuser {
 public:
  BatchNormFuser(const absl::flat_hash_set<std::string>& keep, Graph* graph)
      : graph_(*graph), pattern_(graph, keep) {}

  void Run() {
    for (const Node& node : pattern_.nodes()) {
      if (!pattern_.gone(node) && node.Is("BatchNormalization") && Served(node)) Extend(node);
    }
    pattern_.Finish();
  }

 private:
  // Whether the kernels know its type, and nothing has to run between it and
  // what follows it.
  bool Served(const Node& bn) const {
    if (bn.inputs.size() != 5 || !bn.HasOutput(0)) return false;
    const ValueType* x = pattern_.TypeOf(bn.inputs[0]);
    if (x == nullptr || (x->dtype != DType::kFloat && x->dtype != DType::kDouble)) return false;
    for (size_t i = 1; i < bn.outputs.size(); ++i) {
      if (!pattern_.Consumers(bn.outputs[i]).empty()) return false;
    }
    return bn.outputs.size() <= 3;
  }

  void Extend(const Node& bn) {
    Node fused = bn;
    std::vector<const Node*> taken = {&bn};
    const Node* reader = pattern_.OnlyConsumer(bn.outputs[0]);
    if (reader != nullptr && TakeResidual(pattern_, *reader, kNormResidual, &fused)) {
      taken.push_back(reader);
      fused.outputs[0] = reader->outputs[0];
    }
    std::vector<Backward> backward;
    if (const Node* act = FindActivation(bn, fused, &backward);
        act != nullptr && TakeActivation(pattern_, *act, &fused)) {
      taken.push_back(act);
      fused.outputs[0] = act->outputs[0];
    } else {
      backward.clear();
    }
    if (taken.size() == 1) return;
    fused.op_type = "FusedBatchNormalization";
    fused.domain = std::string(kOnwardDomain);
    graph_.opsets.try_emplace(fused.domain, 1);
    if (!backward.empty()) {
      fused.outputs.resize(4);
      fused.outputs[3] = pattern_.NewName(*taken.back(), "table");
    }
    for (const Backward& b : backward) Join(b, fused);
    pattern_.Replace(taken, *taken.back(), std::move(fused));
  }

  // The activation that follows `fused`, and the gradients that can do without its
  // input. Relu's gradient reads the result alone; that of Clip reads the input,
  // so there all of them have to be joined.
  const Node* FindActivation(const Node& bn, const Node& fused,
                             std::vector<Backward>* backward) const {
    const std::string& value = fused.outputs[0];
    if (pattern_.fixed(value)) return nullptr;
    const Node* activation = nullptr;
    std::vector<const Node*> gradients;
    for (const Node* reader : pattern_.Consumers(value)) {
      if (reader->Is("ClipGrad", kOnwardDomain)) {
        gradients.push_back(reader);
      } else if (activation == nullptr && (reader->Is("Relu") || reader->Is("Clip"))) {
        activation = reader;
      } else {
        return nullptr;
      }
    }
    if (activation == nullptr) return nullptr;
    const std::string& result = activation->outputs[0];
    if (activation->Is("Relu")) {
      if (!gradients.empty()) return nullptr;
      for (const Node* reader : pattern_.Consumers(result)) {
        if (reader->Is("ReluGrad", kOnwardDomain) && reader->inputs[0] != result) {
          gradients.push_back(reader);
        }
      }
    }
    for (const Node* gradient : gradients) {
      const Node* next = fused.HasInput(kNormResidual) ? nullptr : NormalisationGrad(bn, *gradient);
      const bool of_clip = gradient->Is("ClipGrad", kOnwardDomain);
      if (of_clip && (next == nullptr || gradient->inputs[0] == value ||
                      gradient->inputs[1] != value || gradient->inputs[2] != result)) {
        return nullptr;
      }
      if (next != nullptr) backward->push_back({gradient, next});
    }
    return activation;
  }

  // The gradient of `bn` that alone reads the activation's.
  const Node* NormalisationGrad(const Node& bn, const Node& gradient) const {
    const Node* next = pattern_.OnlyConsumer(gradient.outputs[0]);
    const bool fits = next != nullptr && next->Is("BatchNormalizationGrad", kOnwardDomain) &&
                      next->inputs.size() == 3 && next->inputs[0] == gradient.outputs[0] &&
                      next->inputs[1] == bn.inputs[0] && next->inputs[2] == bn.inputs[1] &&
                      bn.Int("training_mode", 0) != 0 &&
                      next->Float("epsilon", 1e-5f) == bn.Float("epsilon", 1e-5f);
    return fits ? next : nullptr;
  }

  void Join(const Backward& backward, const Node& fused) {
    Node node = *backward.normalisation;
    node.op_type = "FusedBatchNormalizationGrad";
    node.inputs = {backward.activation->inputs[0], node.inputs[1], node.inputs[2],
                   fused.outputs[3]};
    for (const char* name : {"activation", "activation_low", "activation_high"}) {
      if (fused.Has(name)) node.attributes[name] = fused.attributes.at(name);
    }
    pattern_.Replace({backward.activation, backward.normalisation}, *backward.normalisation,
                     std::move(node));
  }

  Graph& graph_;
  PatternGraph pattern_;
};

}  // namespace

void FuseBatchNormalization(const absl::flat_hash_set<std::string>& keep, Graph* graph) {
  if (Has(*graph, {"BatchNormalization"})) BatchNormFuser(keep, graph).Run();
}

}  // namespace onward
