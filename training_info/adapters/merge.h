// SPDX-License-Identifier: Apache-2.0
// Adapters into the weights they stand beside, or away.
#ifndef ONWARD_TRAINING_INFO_ADAPTERS_MERGE_H_
#define ONWARD_TRAINING_INFO_ADAPTERS_MERGE_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/graph/graph.h"
#include "environment/environment.h"
#include "training_info/adapters/site.h"

namespace onward {

enum class MergeMode {
  kFloat,       // into float weights; those of quantized ones stay nodes of the graph
  kDequantize,  // and quantized weights become float ones
  kDrop,        // nowhere: what is left is the base
};

struct Merged {
  std::vector<std::string> merged, kept;  // targets
  std::set<std::string> changed;          // initializers that have other values now, or are new
};

// Does so with every adapter of the graph, whose types are known. A weight that others read too, or
// that is computed in a way that cannot be undone, stays; the product gets one of its own.
absl::StatusOr<Merged> MergeAdapters(MergeMode mode, const Environment& environment, Graph* graph);

// --- evaluate.cc

// The one output of a graph without inputs.
absl::StatusOr<Tensor> Evaluate(const Graph& graph, const Environment& environment);

// The weight [in, out] that a MatMulNBits or MatMulBnb4 holds.
absl::StatusOr<Tensor> Unpack(const Node& node, const Site& site, const Sight& sight,
                              const Environment& environment);

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_ADAPTERS_MERGE_H_
