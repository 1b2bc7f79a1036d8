// SPDX-License-Identifier: Apache-2.0
// Constraints of ai.onnx.ml and of the training operators.
#include <algorithm>
#include <string>
#include <vector>

#include "core/graph/attribute_lists.h"
#include "core/graph/constraints/rules.h"

namespace onward::constraints {
namespace {

Rule PostTransform() {
  return OneOf("post_transform", {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"});
}

// Features are rows: [N, C], or [C] for one.
Rule Rows() {
  return [](Subject& s) {
    if (s.Rank(0) == 0 || s.Rank(0) > 2) {
      s.Fail("input 0 has rank ", s.Rank(0), ", expected features as [C] or [N, C]");
    }
  };
}

Rule Some(const char* attribute) {
  return [name = std::string(attribute)](Subject& s) {
    if (LengthOf(s.node, name) == 0) s.Fail(name, " is missing or empty");
  };
}

// A number for each feature, or one for all.
Rule ForEachFeature(const char* attribute) {
  return [name = std::string(attribute)](Subject& s) {
    const int64_t given = LengthOf(s.node, name), features = s.Dim(0, -1);
    if (given > 1 && features >= 0 && given != features) {
      s.Fail(name, " has ", given, " values for ", features, " features");
    }
  };
}

// Two of these may not say different things of one list.
Rule AtMostOne(std::vector<std::string> attributes) {
  return [attributes = std::move(attributes)](Subject& s) {
    std::string found;
    for (const std::string& name : attributes) {
      if (LengthOf(s.node, name) == 0) continue;
      if (!found.empty()) s.Fail("both ", found, " and ", name, " are given; one list is meant");
      found = name;
    }
  };
}

// Coefficients are rows of weights, one for each of the targets, and as long as the input's; some
// files have more of them.
void CheckLinear(Subject& s, int64_t targets) {
  const int64_t given = LengthOf(s.node, "coefficients"), features = s.Dim(0, -1);
  if (targets < 1 || given < targets) {
    return s.Fail("coefficients has ", given, " values for ", targets, " rows");
  }
  if (features >= 0 && s.Rank(0) <= 2 && given / targets < features) {
    s.Fail("coefficients has ", given, " values for ", targets, " times ", features, " features");
  }
}

void CheckLinearRegressor(Subject& s) {
  const int64_t targets = s.node.Int("targets", 1), given = LengthOf(s.node, "intercepts");
  if (given != 0 && given != targets) {
    s.Fail("intercepts has ", given, " values for ", targets, " targets");
  }
  CheckLinear(s, targets);
}

void CheckLinearClassifier(Subject& s) {
  const int64_t labels =
      std::max(LengthOf(s.node, "classlabels_ints"), LengthOf(s.node, "classlabels_strings"));
  const int64_t rows = LengthOf(s.node, "intercepts");
  CheckLinear(s, rows > 0 ? rows : std::max<int64_t>(1, labels));
}

// Two inputs, then `kinds` tensors for each of n variables; `results` for each.
Rule Optimizer(size_t kinds, size_t results) {
  return [=](Subject& s) {
    for (int input : {0, 1}) Scalar(input)(s);
    const size_t inputs = s.node.inputs.size();
    if (inputs < 2 + kinds || (inputs - 2) % kinds != 0) {
      return s.Fail("has ", inputs, " inputs, expected 2 and then ", kinds, " for each variable");
    }
    const size_t wanted = (inputs - 2) / kinds * results;
    if (s.node.outputs.size() != wanted) {
      s.Fail("has ", s.node.outputs.size(), " outputs, expected ", wanted);
    }
    const int variables = static_cast<int>((inputs - 2) / kinds);
    for (int input = 2 + variables; input < static_cast<int>(inputs); ++input) {
      const int variable = 2 + (input - 2) % variables;
      if (s.Rank(variable) >= 0) {
        ExpectShape(s, input, "which is as large as its variable", DimsOf(s, variable));
      }
    }
  };
}

}  // namespace

void AddLearningRows(Table& table) {
  const Rule one_kind_of_labels = AtMostOne({"classlabels_ints", "classlabels_strings"});
  AddRows(
      table, {"ai.onnx.ml.LinearClassifier"},
      {PostTransform(), Rows(), Some("coefficients"), one_kind_of_labels, CheckLinearClassifier});
  AddRows(
      table, {"ai.onnx.ml.LinearRegressor"},
      {PostTransform(), Rows(), Some("coefficients"), InRange("targets", 1), CheckLinearRegressor});
  AddRows(
      table, {"ai.onnx.ml.SVMClassifier", "ai.onnx.ml.SVMRegressor"},
      {PostTransform(), Rows(), Some("coefficients"), Some("rho"), one_kind_of_labels,
       SameLength({"prob_a", "prob_b"}), OneOf("kernel_type", {"LINEAR", "POLY", "RBF", "SIGMOID"}),
       EachInRange("vectors_per_class", 0), InRange("n_supports", 0)});
  AddRows(table, {"ai.onnx.ml.TreeEnsembleClassifier", "ai.onnx.ml.TreeEnsembleRegressor"},
          {PostTransform(), Rows(), OneOf("aggregate_function", {"AVERAGE", "SUM", "MIN", "MAX"}),
           InRange("n_targets", 1), AtMostOne({"classlabels_int64s", "classlabels_strings"}),
           AtMostOne({"nodes_values", "nodes_values_as_tensor"}),
           AtMostOne({"base_values", "base_values_as_tensor"}),
           SameLength({"nodes_nodeids", "nodes_treeids", "nodes_featureids", "nodes_modes",
                       "nodes_truenodeids", "nodes_falsenodeids"}),
           SameLength({"class_ids", "class_nodeids", "class_treeids", "class_weights"}),
           SameLength({"target_ids", "target_nodeids", "target_treeids", "target_weights"})});
  AddRows(table, {"ai.onnx.ml.TreeEnsemble"},
          {Rows(), OneOfNumbers("aggregate_function", {0, 1, 2, 3}), InRange("n_targets", 1),
           OneOfNumbers("post_transform", {0, 1, 2, 3, 4}), EachInRange("tree_roots", 0),
           SameLength({"nodes_splits", "nodes_featureids", "nodes_modes", "nodes_truenodeids",
                       "nodes_falsenodeids", "nodes_trueleafs", "nodes_falseleafs"}),
           SameLength({"leaf_targetids", "leaf_weights"})});
  AddRows(table, {"ai.onnx.ml.Normalizer"}, {Rows(), OneOf("norm", {"MAX", "L1", "L2"})});
  AddRows(table, {"ai.onnx.ml.Scaler"}, {ForEachFeature("offset"), ForEachFeature("scale")});
  AddRows(table, {"ai.onnx.ml.Imputer"},
          {ForEachFeature("imputed_value_floats"), ForEachFeature("imputed_value_int64s")});
  AddRows(table, {"ai.onnx.ml.OneHotEncoder"}, {AtMostOne({"cats_int64s", "cats_strings"})});
  AddRows(table, {"ai.onnx.ml.ZipMap"},
          {Rows(), AtMostOne({"classlabels_int64s", "classlabels_strings"})});
  AddRows(table, {"ai.onnx.ml.CastMap"},
          {OneOf("map_form", {"DENSE", "SPARSE"}),
           OneOf("cast_to", {"TO_FLOAT", "TO_STRING", "TO_INT64"}), InRange("max_map", 0)});
  AddRows(table, {"ai.onnx.ml.CategoryMapper"}, {SameLength({"cats_int64s", "cats_strings"})});
  AddRows(table, {"ai.onnx.ml.LabelEncoder"},
          {SameLength({"keys_floats", "keys_int64s", "keys_strings", "keys_tensor", "values_floats",
                       "values_int64s", "values_strings", "values_tensor"})});
  AddRows(table, {"ai.onnx.ml.FeatureVectorizer"}, {EachInRange("inputdimensions", 0)});
  AddRows(table,
          {"ai.onnx.ml.ArrayFeatureExtractor", "ai.onnx.ml.Binarizer", "ai.onnx.ml.DictVectorizer"},
          {});
  AddRows(table, {"ai.onnx.preview.training.Adam"}, {Optimizer(4, 3)});
  AddRows(table, {"ai.onnx.preview.training.Adagrad"}, {Optimizer(3, 2)});
  AddRows(table, {"ai.onnx.preview.training.Momentum"},
          {Optimizer(3, 2), OneOf("mode", {"standard", "nesterov"})});
  // Lowering knows the graph that its names belong to.
  AddRows(table, {"ai.onnx.preview.training.Gradient"}, {});
}

}  // namespace onward::constraints
