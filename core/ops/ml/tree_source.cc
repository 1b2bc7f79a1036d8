// SPDX-License-Identifier: Apache-2.0
#include "core/ops/ml/tree_source.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/device/kernel.h"
#include "core/graph/attribute_lists.h"

namespace onward {
namespace {

constexpr int64_t kMaxNodes = int64_t{1} << 30;

absl::StatusOr<Branch> BranchOf(const Node& node, const std::string& mode) {
  static const auto* const modes = new std::map<std::string, Branch>{
      {"BRANCH_LEQ", Branch::kLeq}, {"BRANCH_LT", Branch::kLt}, {"BRANCH_GTE", Branch::kGte},
      {"BRANCH_GT", Branch::kGt},   {"BRANCH_EQ", Branch::kEq}, {"BRANCH_NEQ", Branch::kNeq},
      {"LEAF", Branch::kLeaf}};
  auto it = modes->find(mode);
  if (it != modes->end()) return it->second;
  return NodeError(node, absl::StrCat("nodes_modes holds '", mode, "', which is no mode"));
}

absl::Status CheckLength(const Node& node, const std::string& attribute, size_t length,
                         size_t nodes) {
  if (length == nodes) return absl::OkStatus();
  return NodeError(node, absl::StrCat(attribute, " has ", length, " values for ", nodes));
}

// Fails unless every path from the roots ends in a leaf and, where roots were searched for, every
// branch is on one; notes the highest feature.
absl::Status FinishTrees(const Node& node, bool all_branches, TreeSource* source) {
  enum : uint8_t { kNew, kOpen, kDone };
  std::vector<uint8_t> state(source->nodes.size(), kNew);
  std::vector<int32_t> path;
  for (const int32_t root : source->roots) {
    path.push_back(root);
    while (!path.empty()) {
      const int32_t at = path.back();
      const SourceNode& n = source->nodes[at];
      if (n.mode == Branch::kLeaf || state[at] != kNew) {
        state[at] = kDone;
        path.pop_back();
        continue;
      }
      state[at] = kOpen;
      if (n.feature < 0 || n.feature >= kMaxNodes) {
        return NodeError(node, absl::StrCat("a node asks for feature ", n.feature));
      }
      source->features = std::max(source->features, n.feature + 1);
      for (const int32_t child : {n.yes, n.no}) {
        if (state[child] == kOpen) {
          return NodeError(node, "the branches of a tree form a circle");
        }
        if (state[child] == kNew) path.push_back(child);
      }
    }
  }
  for (size_t i = 0; all_branches && i < state.size(); ++i) {
    if (state[i] == kNew && source->nodes[i].mode != Branch::kLeaf) {
      return NodeError(node, "the branches of a tree form a circle");
    }
  }
  return absl::OkStatus();
}

// The positions of nodes in the lists of TreeEnsembleRegressor and -Classifier.
class NodeIndex {
 public:
  absl::Status Add(const Node& node, int64_t tree, int64_t id) {
    if (at_.try_emplace({tree, id}, static_cast<int32_t>(at_.size())).second) {
      return absl::OkStatus();
    }
    return NodeError(node, absl::StrCat("tree ", tree, " has two nodes ", id));
  }
  absl::StatusOr<int32_t> Find(const Node& node, int64_t tree, int64_t id) const {
    auto it = at_.find({tree, id});
    if (it != at_.end()) return it->second;
    return NodeError(node,
                     absl::StrCat("tree ", tree, " has no node ", id, ", which is asked for"));
  }

 private:
  absl::flat_hash_map<std::pair<int64_t, int64_t>, int32_t> at_;
};

// The first node of each tree, in order, that is nobody's child.
absl::Status FindRoots(const Node& node, const std::vector<int64_t>& trees, TreeSource* source) {
  std::vector<bool> is_child(source->nodes.size(), false);
  for (const SourceNode& n : source->nodes) {
    if (n.mode == Branch::kLeaf) continue;
    is_child[n.yes] = is_child[n.no] = true;
  }
  absl::flat_hash_map<int64_t, bool> rooted;
  for (size_t i = 0; i < trees.size(); ++i) {
    bool& has_root = rooted[trees[i]];
    if (is_child[i]) continue;
    if (has_root) {
      return NodeError(node, absl::StrCat("tree ", trees[i], " has more than one root"));
    }
    has_root = true;
    source->roots.push_back(static_cast<int32_t>(i));
  }
  for (const auto& [tree, has_root] : rooted) {
    if (!has_root) {
      return NodeError(node,
                       absl::StrCat("tree ", tree, " has no root: its branches form a circle"));
    }
  }
  return absl::OkStatus();
}

absl::Status ReadWeights(const Node& node, const std::string& prefix, const NodeIndex& index,
                         TreeSource* source) {
  const std::vector<int64_t> trees = node.Ints(prefix + "_treeids"),
                             ids = node.Ints(prefix + "_nodeids"),
                             targets = node.Ints(prefix + "_ids");
  const std::vector<double> weights = NumbersOf(node, prefix + "_weights");
  for (const auto& [name, length] :
       {std::pair("_nodeids", ids.size()), std::pair("_ids", targets.size()),
        std::pair("_weights", weights.size())}) {
    ONWARD_RETURN_IF_ERROR(CheckLength(node, prefix + name, length, trees.size()));
  }
  std::vector<int32_t> owners(trees.size());
  for (size_t i = 0; i < trees.size(); ++i) {
    ONWARD_ASSIGN_OR_RETURN(owners[i], index.Find(node, trees[i], ids[i]));
    if (source->nodes[owners[i]].mode != Branch::kLeaf) {
      return NodeError(node, absl::StrCat(prefix, "_nodeids gives a weight to node ", ids[i],
                                          " of tree ", trees[i], ", which is no leaf"));
    }
    if (targets[i] < 0 || targets[i] >= source->targets) {
      return NodeError(node, absl::StrCat(prefix, "_ids holds ", targets[i], ", expected 0 to ",
                                          source->targets - 1));
    }
    ++source->nodes[owners[i]].end;
  }
  int32_t total = 0;
  for (SourceNode& n : source->nodes) {
    const int32_t count = std::exchange(n.end, total);
    n.begin = total;
    total += count;
  }
  source->weights.resize(trees.size());
  for (size_t i = 0; i < trees.size(); ++i) {
    source->weights[source->nodes[owners[i]].end++] = {static_cast<int32_t>(targets[i]),
                                                       weights[i]};
  }
  return absl::OkStatus();
}

// The sets of TreeEnsemble, in the order of the nodes that ask for members; a NaN ends each.
absl::Status ReadMembers(const Node& node, TreeSource* source) {
  const std::vector<double> values = NumbersOf(node, "membership_values");
  size_t at = 0;
  for (SourceNode& n : source->nodes) {
    if (n.mode != Branch::kMember) continue;
    n.begin = static_cast<int32_t>(source->members.size());
    while (at < values.size() && !std::isnan(values[at])) source->members.push_back(values[at++]);
    if (at == values.size()) {
      return NodeError(node, "membership_values has fewer sets than there are nodes BRANCH_MEMBER");
    }
    ++at;
    n.end = static_cast<int32_t>(source->members.size());
    std::sort(source->members.begin() + n.begin, source->members.end());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TreeSource> ReadTrees(const Node& node, const std::string& prefix, int64_t targets) {
  const std::vector<int64_t> trees = node.Ints("nodes_treeids"), ids = node.Ints("nodes_nodeids"),
                             features = node.Ints("nodes_featureids"),
                             yes = node.Ints("nodes_truenodeids"),
                             no = node.Ints("nodes_falsenodeids"),
                             missing = node.Ints("nodes_missing_value_tracks_true");
  const std::vector<std::string> modes = node.Strings("nodes_modes");
  std::vector<double> values = NumbersOf(node, "nodes_values");
  // Ensembles of leaves alone compare nothing.
  if (values.empty()) values.resize(ids.size());
  for (const auto& [name, length] :
       {std::pair("nodes_treeids", trees.size()), std::pair("nodes_featureids", features.size()),
        std::pair("nodes_truenodeids", yes.size()), std::pair("nodes_falsenodeids", no.size()),
        std::pair("nodes_modes", modes.size()), std::pair("nodes_values", values.size())}) {
    ONWARD_RETURN_IF_ERROR(CheckLength(node, name, length, ids.size()));
  }
  if (!missing.empty()) {
    ONWARD_RETURN_IF_ERROR(
        CheckLength(node, "nodes_missing_value_tracks_true", missing.size(), ids.size()));
  }
  NodeIndex index;
  for (size_t i = 0; i < ids.size(); ++i) {
    ONWARD_RETURN_IF_ERROR(index.Add(node, trees[i], ids[i]));
  }
  TreeSource source;
  source.targets = targets;
  source.nodes.resize(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    SourceNode& n = source.nodes[i];
    ONWARD_ASSIGN_OR_RETURN(n.mode, BranchOf(node, modes[i]));
    if (n.mode == Branch::kLeaf) continue;
    n.feature = features[i];
    n.value = values[i];
    n.missing_yes = !missing.empty() && missing[i] != 0;
    ONWARD_ASSIGN_OR_RETURN(n.yes, index.Find(node, trees[i], yes[i]));
    ONWARD_ASSIGN_OR_RETURN(n.no, index.Find(node, trees[i], no[i]));
  }
  ONWARD_RETURN_IF_ERROR(FindRoots(node, trees, &source));
  ONWARD_RETURN_IF_ERROR(ReadWeights(node, prefix, index, &source));
  ONWARD_RETURN_IF_ERROR(FinishTrees(node, true, &source));
  return source;
}

// Its leaves are lists of their own; here they follow the branches.
absl::StatusOr<TreeSource> ReadTreeEnsemble(const Node& node) {
  const std::vector<int64_t> features = node.Ints("nodes_featureids"),
                             yes = node.Ints("nodes_truenodeids"),
                             no = node.Ints("nodes_falsenodeids"),
                             yes_leafs = node.Ints("nodes_trueleafs"),
                             no_leafs = node.Ints("nodes_falseleafs"),
                             missing = node.Ints("nodes_missing_value_tracks_true"),
                             targets = node.Ints("leaf_targetids"), roots = node.Ints("tree_roots");
  const std::vector<double> splits = NumbersOf(node, "nodes_splits"),
                            modes = NumbersOf(node, "nodes_modes"),
                            weights = NumbersOf(node, "leaf_weights");
  for (const auto& [name, length] :
       {std::pair("nodes_truenodeids", yes.size()), std::pair("nodes_falsenodeids", no.size()),
        std::pair("nodes_trueleafs", yes_leafs.size()),
        std::pair("nodes_falseleafs", no_leafs.size()), std::pair("nodes_splits", splits.size()),
        std::pair("nodes_modes", modes.size())}) {
    ONWARD_RETURN_IF_ERROR(CheckLength(node, name, length, features.size()));
  }
  ONWARD_RETURN_IF_ERROR(CheckLength(node, "leaf_weights", weights.size(), targets.size()));
  if (!missing.empty()) {
    ONWARD_RETURN_IF_ERROR(
        CheckLength(node, "nodes_missing_value_tracks_true", missing.size(), features.size()));
  }
  TreeSource source;
  source.targets = node.Int("n_targets", 1);
  const int64_t branches = static_cast<int64_t>(features.size()),
                leaves = static_cast<int64_t>(targets.size());
  source.nodes.resize(static_cast<size_t>(branches + leaves));
  const auto child = [&](int64_t id, int64_t is_leaf) -> absl::StatusOr<int32_t> {
    if (id >= 0 && id < (is_leaf != 0 ? leaves : branches)) {
      return static_cast<int32_t>(is_leaf != 0 ? branches + id : id);
    }
    return NodeError(node, absl::StrCat("asks for ", is_leaf != 0 ? "leaf " : "node ", id, " of ",
                                        is_leaf != 0 ? leaves : branches));
  };
  for (int64_t i = 0; i < branches; ++i) {
    SourceNode& n = source.nodes[i];
    if (!(modes[i] >= 0 && modes[i] <= 6)) {
      return NodeError(node, absl::StrCat("nodes_modes holds ", modes[i], ", expected 0 to 6"));
    }
    n.mode = static_cast<Branch>(static_cast<int>(modes[i]));
    n.feature = features[i];
    n.value = splits[i];
    n.missing_yes = !missing.empty() && missing[i] != 0;
    ONWARD_ASSIGN_OR_RETURN(n.yes, child(yes[i], yes_leafs[i]));
    ONWARD_ASSIGN_OR_RETURN(n.no, child(no[i], no_leafs[i]));
  }
  for (int64_t i = 0; i < leaves; ++i) {
    if (targets[i] < 0 || targets[i] >= source.targets) {
      return NodeError(node, absl::StrCat("leaf_targetids holds ", targets[i], ", expected 0 to ",
                                          source.targets - 1));
    }
    source.nodes[branches + i].begin = static_cast<int32_t>(i);
    source.nodes[branches + i].end = static_cast<int32_t>(i) + 1;
    source.weights.push_back({static_cast<int32_t>(targets[i]), weights[i]});
  }
  for (const int64_t root : roots) {
    ONWARD_ASSIGN_OR_RETURN(const int32_t at, child(root, 0));
    source.roots.push_back(at);
  }
  ONWARD_RETURN_IF_ERROR(ReadMembers(node, &source));
  ONWARD_RETURN_IF_ERROR(FinishTrees(node, false, &source));
  return source;
}

}  // namespace onward
