// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/compile/behind_data.h"

#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "core/graph/random.h"
#include "core/runtime/control/control.h"

namespace onward {
namespace {

// Gives tensors of a size that depends on the elements it reads.
bool CountsElements(const Node& node) {
  return node.Is("NonZero") || node.Is("Compress") || node.Is("Unique") ||
         node.Is("NonMaxSuppression");
}

// Takes values of types that nobody knows yet.
bool TakesAny(const Node& node, const Device& device) {
  return IsControl(node) || RunsOnValues(node, device);
}

class Separation {
 public:
  Separation(const CompileOptions& options, const Graph& graph) : options_(options) {
    for (const auto& [name, tensor] : graph.initializers) {
      if (!options.variables.contains(name)) constant_.insert(name);
    }
  }

  // Whether a node of the graph, asked for in order, is behind data.
  bool IsBehind(const Node& node) {
    const std::vector<std::string> reads = AllInputs(node);
    const auto any = [&](const absl::flat_hash_set<std::string>& names) {
      return absl::c_any_of(reads, [&](const std::string& v) { return names.contains(v); });
    };
    // These take whatever arrives, but not before it has.
    const bool takes_any = TakesAny(node, *options_.device);
    if (any(behind_) || (!takes_any && any(open_))) {
      behind_.insert(node.outputs.begin(), node.outputs.end());
      return true;
    }
    const bool constant = node.Is("Shape") || node.Is("Size") || node.Is("Constant") ||
                          (!reads.empty() && absl::c_all_of(reads, [&](const std::string& v) {
                            return constant_.contains(v);
                          }));
    // An If of a constant becomes its branch.
    const bool branch = node.Is("If") && node.HasInput(0) && constant_.contains(node.inputs[0]);
    if ((takes_any && !branch) || (CountsElements(node) && !constant)) {
      open_.insert(node.outputs.begin(), node.outputs.end());
    } else if (constant && !branch && !IsRandom(node)) {
      constant_.insert(node.outputs.begin(), node.outputs.end());
    }
    return false;
  }

 private:
  const CompileOptions& options_;
  absl::flat_hash_set<std::string> constant_;  // or of known shapes alone
  absl::flat_hash_set<std::string> open_;      // made by this plan, of a type nobody knows
  absl::flat_hash_set<std::string> behind_;
};

}  // namespace

bool RunsOnValues(const Node& node, const Device& device) {
  const auto* entries = device.kernels().Find(node.op_type, node.domain);
  return entries != nullptr && entries->front().on_values;
}

std::vector<Node> TakeNodesBehindData(const CompileOptions& options, Graph* graph) {
  const auto opens = [&](const Node& node) {
    return CountsElements(node) || TakesAny(node, *options.device);
  };
  if (absl::c_none_of(graph->nodes, opens)) return {};
  Separation separation(options, *graph);
  std::vector<Node> kept, behind;
  for (Node& node : graph->nodes) {
    (separation.IsBehind(node) ? behind : kept).push_back(std::move(node));
  }
  graph->nodes = std::move(kept);
  return behind;
}

}  // namespace onward
