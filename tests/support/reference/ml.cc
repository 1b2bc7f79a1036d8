// SPDX-License-Identifier: Apache-2.0
// Trees and encoders; what has a body of standard operators is that body, evaluated.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "core/graph/attribute_lists.h"
#include "tests/support/reference/evaluate.h"

namespace onward::reference {
namespace {

bool Goes(const std::string& mode, Number x, Number value, bool missing) {
  if (std::isnan(x) && missing) return true;
  if (mode == "BRANCH_LEQ") return x <= value;
  if (mode == "BRANCH_LT") return x < value;
  if (mode == "BRANCH_GTE") return x >= value;
  if (mode == "BRANCH_GT") return x > value;
  if (mode == "BRANCH_EQ") return x == value;
  return x != value;
}

// By target, what each tree gives a row.
using Given = std::map<int64_t, std::vector<Number>>;

// The first node of each tree in the list is its root.
Given WalkTrees(const Node& node, const std::string& prefix, const Array& x, int64_t row) {
  const auto trees = node.Ints("nodes_treeids"), ids = node.Ints("nodes_nodeids"),
             features = node.Ints("nodes_featureids"), yes = node.Ints("nodes_truenodeids"),
             no = node.Ints("nodes_falsenodeids"),
             missing = node.Ints("nodes_missing_value_tracks_true"),
             of_trees = node.Ints(prefix + "_treeids"), of_nodes = node.Ints(prefix + "_nodeids"),
             targets = node.Ints(prefix + "_ids");
  const auto modes = node.Strings("nodes_modes");
  const auto values = NumbersOf(node, "nodes_values"),
             weights = NumbersOf(node, prefix + "_weights");
  Given given;
  for (size_t root = 0; root < ids.size(); ++root) {
    if (root > 0 && trees[root] == trees[root - 1]) continue;
    size_t at = root;
    while (modes[at] != "LEAF") {
      const bool goes =
          Goes(modes[at], x[{row, features[at]}], values[at], !missing.empty() && missing[at] != 0);
      const int64_t next = goes ? yes[at] : no[at];
      for (size_t i = 0; i < ids.size(); ++i) {
        if (trees[i] == trees[root] && ids[i] == next) at = i;
      }
    }
    for (size_t i = 0; i < targets.size(); ++i) {
      if (of_trees[i] == trees[root] && of_nodes[i] == ids[at]) {
        given[targets[i]].push_back(weights[i]);
      }
    }
  }
  return given;
}

Number Together(const std::string& how, const std::vector<Number>& all, Number trees) {
  if (all.empty()) return 0;
  if (how == "MIN") return *std::min_element(all.begin(), all.end());
  if (how == "MAX") return *std::max_element(all.begin(), all.end());
  Number sum = 0;
  for (const Number v : all) sum += v;
  return how == "AVERAGE" ? sum / trees : sum;
}

Number LogisticOf(Number x) { return 1 / (1 + std::exp(-x)); }

Arrays TreeEnsembleRegressor(const Call& call) {
  const Node& node = call.node;
  const Array& x = call.in[0];
  const int64_t n = node.Int("n_targets", 1);
  const auto base = NumbersOf(node, "base_values");
  const auto trees = node.Ints("nodes_treeids");
  const Number count = static_cast<Number>(*std::max_element(trees.begin(), trees.end()) + 1);
  Array y(DType::kFloat, Shape{x.shape[0], n});
  for (int64_t row = 0; row < x.shape[0]; ++row) {
    Given given = WalkTrees(node, "target", x, row);
    for (int64_t t = 0; t < n; ++t) {
      y[{row, t}] = Together(node.String("aggregate_function", "SUM"), given[t], count) +
                    (base.empty() ? 0 : static_cast<Number>(base[t]));
      if (n > 1 && node.String("post_transform", "NONE") == "LOGISTIC") {
        y[{row, t}] = LogisticOf(y[{row, t}]);
      }
    }
  }
  return {y};
}

// Two classes of which one has all weights: its score s tells both. Without negative weights
// they are 1 - s and s, and the second is chosen above 1/2; else -s and s, and above 0. LOGISTIC
// is always of the latter.
Arrays TreeEnsembleClassifier(const Call& call) {
  const Node& node = call.node;
  const Array& x = call.in[0];
  const auto labels = node.Ints("classlabels_int64s"), ids = node.Ints("class_ids");
  const auto weights = NumbersOf(node, "class_weights");
  const int64_t n = static_cast<int64_t>(labels.size());
  const bool one = n == 2 && *std::max_element(ids.begin(), ids.end()) == 0;
  const bool positive = *std::min_element(weights.begin(), weights.end()) >= 0;
  const bool logistic = node.String("post_transform", "NONE") == "LOGISTIC";
  Array label(DType::kInt64, Shape{x.shape[0]}), y(DType::kFloat, Shape{x.shape[0], n});
  for (int64_t row = 0; row < x.shape[0]; ++row) {
    Given given = WalkTrees(node, "class", x, row);
    std::vector<Number> scores(n);
    for (int64_t t = 0; t < n; ++t) scores[t] = Together("SUM", given[t], 1);
    int64_t best = std::max_element(scores.begin(), scores.end()) - scores.begin();
    if (one) {
      const Number s = scores[0];
      best = s > (positive ? Number{1} / 2 : 0) ? 1 : 0;
      scores = {positive && !logistic ? 1 - s : -s, s};
    }
    label[{row}] = static_cast<Number>(labels[best]);
    for (int64_t t = 0; t < n; ++t) {
      y[{row, t}] = logistic ? LogisticOf(scores[t]) : scores[t];
    }
  }
  return {label, y};
}

Arrays TreeEnsemble(const Call& call) {
  const Node& node = call.node;
  const Array& x = call.in[0];
  const std::string modes[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                               "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};
  const auto features = node.Ints("nodes_featureids"), yes = node.Ints("nodes_truenodeids"),
             no = node.Ints("nodes_falsenodeids"), yes_leafs = node.Ints("nodes_trueleafs"),
             no_leafs = node.Ints("nodes_falseleafs"), targets = node.Ints("leaf_targetids");
  const auto splits = NumbersOf(node, "nodes_splits"), kinds = NumbersOf(node, "nodes_modes"),
             weights = NumbersOf(node, "leaf_weights");
  Array y(x.dtype, Shape{x.shape[0], node.Int("n_targets", 1)});
  for (int64_t row = 0; row < x.shape[0]; ++row) {
    for (int64_t at : node.Ints("tree_roots")) {
      for (bool leaf = false; !leaf;) {
        const bool goes =
            Goes(modes[static_cast<int>(kinds[at])], x[{row, features[at]}], splits[at], false);
        leaf = (goes ? yes_leafs[at] : no_leafs[at]) != 0;
        at = goes ? yes[at] : no[at];
      }
      y[{row, targets[at]}] += weights[at];
    }
  }
  return {y};
}

Arrays Binarizer(const Call& call) {
  const Array& x = call.in[0];
  const float threshold = call.node.Float("threshold", 0);
  return {Make(x.dtype, x.shape, [&](const Index& at) { return x[at] > threshold ? 1 : 0; })};
}

Arrays OneHotEncoder(const Call& call) {
  const Array& x = call.in[0];
  const auto categories = call.node.Ints("cats_int64s");
  Shape shape = x.shape;
  shape.push_back(static_cast<int64_t>(categories.size()));
  return {Make(DType::kFloat, shape, [&](Index at) {
    const int64_t category = categories[at.back()];
    at.pop_back();
    return std::trunc(x[at]) == static_cast<Number>(category) ? 1 : 0;
  })};
}

Arrays LabelEncoder(const Call& call) {
  const Array& x = call.in[0];
  const auto keys = call.node.Ints("keys_int64s");
  const auto values = FloatsOf(call.node, "values_floats");
  return {Make(DType::kFloat, x.shape, [&](const Index& at) -> Number {
    for (size_t i = 0; i < keys.size(); ++i) {
      if (x[at] == static_cast<Number>(keys[i])) return values[i];
    }
    return call.node.Float("default_float", 0);
  })};
}

// From numbers to the strings that spell numbers.
Arrays CategoryMapper(const Call& call) {
  const Array& x = call.in[0];
  const auto numbers = call.node.Ints("cats_int64s");
  const auto names = call.node.Strings("cats_strings");
  return {Make(DType::kString, x.shape, [&](const Index& at) -> Number {
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (x[at] == static_cast<Number>(numbers[i])) return std::stold(names[i]);
    }
    return std::stold(call.node.String("default_string", "0"));
  })};
}

}  // namespace

const Table& MlTable() {
  static const auto* const table = new Table{{"TreeEnsembleRegressor", TreeEnsembleRegressor},
                                             {"TreeEnsembleClassifier", TreeEnsembleClassifier},
                                             {"TreeEnsemble", TreeEnsemble},
                                             {"Binarizer", Binarizer},
                                             {"OneHotEncoder", OneHotEncoder},
                                             {"LabelEncoder", LabelEncoder},
                                             {"CategoryMapper", CategoryMapper}};
  return *table;
}

}  // namespace onward::reference
