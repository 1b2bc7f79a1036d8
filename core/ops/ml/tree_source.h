// SPDX-License-Identifier: Apache-2.0
// The trees of an ensemble as a file describes them, in one form for all three operators.
#ifndef ONWARD_CORE_OPS_ML_TREE_SOURCE_H_
#define ONWARD_CORE_OPS_ML_TREE_SOURCE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "core/graph/graph.h"

namespace onward {

enum class Branch : uint8_t { kLeq, kLt, kGte, kGt, kEq, kNeq, kMember, kLeaf };

struct SourceNode {
  Branch mode = Branch::kLeaf;
  int64_t feature = 0;
  double value = 0;            // what the feature is compared with
  int32_t yes = -1, no = -1;   // nodes
  bool missing_yes = false;    // where a NaN goes
  int32_t begin = 0, end = 0;  // of a leaf's weights, of a kMember's members
};

struct LeafWeight {
  int32_t target = 0;
  double weight = 0;
};

// Every child is a node, every path from a root ends in a leaf, every target is below
// `targets`.
struct TreeSource {
  std::vector<SourceNode> nodes;
  std::vector<LeafWeight> weights;
  std::vector<double> members;
  std::vector<int32_t> roots;
  int64_t targets = 1;
  int64_t features = 0;  // one more than the highest that a branch asks for
};

// Of TreeEnsembleRegressor and TreeEnsembleClassifier, whose weights are attributes called
// `prefix`_ids, `prefix`_weights, ...
absl::StatusOr<TreeSource> ReadTrees(const Node& node, const std::string& prefix, int64_t targets);
// Of TreeEnsemble.
absl::StatusOr<TreeSource> ReadTreeEnsemble(const Node& node);

}  // namespace onward

#endif  // ONWARD_CORE_OPS_ML_TREE_SOURCE_H_
