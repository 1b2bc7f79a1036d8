// SPDX-License-Identifier: Apache-2.0
// Pools that leave behind which tap of each window won, for their gradients.
#include <optional>
#include <utility>
#include <vector>

#include "core/graph/operator_set.h"
#include "core/graph/patterns/pattern.h"
#include "core/runtime/rewrite/fuse.h"

namespace onward {
namespace {

constexpr int64_t kMostTaps = 254;  // that a byte can number, and one value for none

bool SameWindows(const Node& a, const Node& b) {
  for (const char* name : {"kernel_shape", "strides", "dilations", "pads"}) {
    if (a.Ints(name) != b.Ints(name)) return false;
  }
  return a.String("auto_pad", "NOTSET") == b.String("auto_pad", "NOTSET") &&
         a.Int("ceil_mode", 0) == b.Int("ceil_mode", 0);
}

class MaxPoolFuser {
 public:
  MaxPoolFuser(const absl::flat_hash_set<std::string>& keep, Graph* graph)
      : pattern_(graph, keep) {}

  void Run() {
    for (const Node& node : pattern_.nodes()) {
      if (pattern_.gone(node) || !node.Is("MaxPoolGrad", kOnwardDomain) || !Served(node)) continue;
      if (const Node* pool = PoolOf(node)) Rewrite(*pool, node);
    }
    pattern_.Finish();
  }

 private:
  bool Served(const Node& gradient) const {
    const ValueType* x = gradient.HasInput(1) ? pattern_.TypeOf(gradient.inputs[1]) : nullptr;
    if (x == nullptr || !x->StaticShape().has_value()) return false;
    int64_t taps = 1;
    for (int64_t k : gradient.Ints("kernel_shape")) {
      if (k < 1 || k > kMostTaps) return false;
      taps *= k;
      if (taps > kMostTaps) return false;
    }
    return x->dtype == DType::kFloat || x->dtype == DType::kDouble;
  }

  const Node* PoolOf(const Node& gradient) const {
    for (const Node* reader : pattern_.Consumers(gradient.inputs[1])) {
      if (reader->Is("MaxPool") && reader->outputs.size() == 1 && SameWindows(*reader, gradient)) {
        return reader;
      }
    }
    return nullptr;
  }

  // Relu's gradient that alone reads the pool's and asks for the sign of its input: it
  // passes a window's gradient on or stops it, as the winner is positive or not.
  const Node* ReluGradAfter(const Node& gradient) const {
    const Node* next = pattern_.OnlyConsumer(gradient.outputs[0]);
    const bool fits = next != nullptr && next->Is("ReluGrad", kOnwardDomain) &&
                      next->inputs[0] == gradient.outputs[0] &&
                      next->inputs[1] == gradient.inputs[1];
    return fits ? next : nullptr;
  }

  void Rewrite(const Node& pool, const Node& gradient) {
    const Node* relu = ReluGradAfter(gradient);
    Node forward = pool;
    forward.op_type = "MaxPoolWinners";
    forward.domain = std::string(kOnwardDomain);
    forward.outputs.push_back(pattern_.NewName(pool, "winners"));
    if (relu != nullptr) forward.attributes["activation"] = "Relu";
    Node backward = gradient;
    backward.op_type = "MaxPoolWinnersGrad";
    backward.inputs = {gradient.inputs[0], forward.outputs[1], gradient.inputs[1]};
    if (relu == nullptr) {
      pattern_.Replace({&gradient}, gradient, std::move(backward));
    } else {
      backward.outputs = relu->outputs;
      pattern_.Replace({&gradient, relu}, *relu, std::move(backward));
    }
    pattern_.Replace({&pool}, pool, std::move(forward));
  }

  PatternGraph pattern_;
};

absl::StatusOr<std::vector<ValueType>> TypesOfWinners(const Node& call,
                                                      absl::Span<const InputFact> inputs,
                                                      const OperatorSet& operators,
                                                      const std::map<std::string, int>& opsets) {
  Node pool = call;
  pool.op_type = "MaxPool";
  pool.domain.clear();
  pool.outputs.resize(1);
  pool.attributes.erase("activation");
  auto types = operators.Infer(pool, inputs, opsets);
  if (!types.ok()) return types.status();
  ValueType winners = types->front();
  winners.dtype = DType::kUint8;
  if (winners.has_rank && winners.rank() > 1) {
    Dim& channels = winners.dims[1];
    channels = {channels.value < 0 ? -1 : (channels.value + 15) / 16 * 16, ""};
  }
  types->push_back(std::move(winners));
  return types;
}

}  // namespace

void KeepWinnersOfPools(const absl::flat_hash_set<std::string>& keep, Graph* graph) {
  if (Has(*graph, {"MaxPoolGrad"}, kOnwardDomain)) MaxPoolFuser(keep, graph).Run();
}

void RegisterWinnerFunctions(FunctionLibrary& library) {
  // How winners lie is the business of the kernels, so there are no bodies.
  library.Add("MaxPoolWinners", {.body = nullptr,
                                 .types = TypesOfWinners,
                                 .output_like = {},
                                 .shape_only = {},
                                 .attributes = {},
                                 .required = 1});
  library.Add("MaxPoolWinnersGrad", {.body = nullptr,
                                     .output_like = {2},
                                     .shape_only = {2},
                                     .attributes = {},
                                     .required = 3,
                                     .operands = "T.T"});
}

}  // namespace onward
