// SPDX-License-Identifier: Apache-2.0
// Constraints of ai.onnx.ml and of the training operators.
#include "core/graph/constraints/rules.h"

namespace onward::constraints {
namespace {

Rule PostTransform() {
  return OneOf("post_transform", {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"});
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
  };
}

}  // namespace

void AddLearningRows(Table& table) {
  AddRows(table, {"ai.onnx.ml.LinearClassifier", "ai.onnx.ml.LinearRegressor"},
          {PostTransform(), InRange("targets", 1)});
  AddRows(table, {"ai.onnx.ml.SVMClassifier", "ai.onnx.ml.SVMRegressor"},
          {PostTransform(), OneOf("kernel_type", {"LINEAR", "POLY", "RBF", "SIGMOID"}),
           EachInRange("vectors_per_class", 0), InRange("n_supports", 0)});
  AddRows(table, {"ai.onnx.ml.TreeEnsembleClassifier", "ai.onnx.ml.TreeEnsembleRegressor"},
          {PostTransform(), OneOf("aggregate_function", {"AVERAGE", "SUM", "MIN", "MAX"}),
           InRange("n_targets", 1),
           SameLength({"nodes_nodeids", "nodes_treeids", "nodes_featureids", "nodes_modes",
                       "nodes_truenodeids", "nodes_falsenodeids"}),
           SameLength({"class_ids", "class_nodeids", "class_treeids", "class_weights"}),
           SameLength({"target_ids", "target_nodeids", "target_treeids", "target_weights"})});
  AddRows(table, {"ai.onnx.ml.TreeEnsemble"},
          {OneOfNumbers("aggregate_function", {0, 1, 2, 3}), InRange("n_targets", 1),
           OneOfNumbers("post_transform", {0, 1, 2, 3, 4}), EachInRange("tree_roots", 0),
           SameLength({"nodes_splits", "nodes_featureids", "nodes_modes", "nodes_truenodeids",
                       "nodes_falsenodeids", "nodes_trueleafs", "nodes_falseleafs"}),
           SameLength({"leaf_targetids", "leaf_weights"})});
  AddRows(table, {"ai.onnx.ml.Normalizer"}, {OneOf("norm", {"MAX", "L1", "L2"})});
  AddRows(table, {"ai.onnx.ml.CastMap"},
          {OneOf("map_form", {"DENSE", "SPARSE"}),
           OneOf("cast_to", {"TO_FLOAT", "TO_STRING", "TO_INT64"}), InRange("max_map", 0)});
  AddRows(table, {"ai.onnx.ml.CategoryMapper"}, {SameLength({"cats_int64s", "cats_strings"})});
  AddRows(table, {"ai.onnx.ml.LabelEncoder"},
          {SameLength({"keys_floats", "keys_int64s", "keys_strings", "keys_tensor", "values_floats",
                       "values_int64s", "values_strings", "values_tensor"})});
  AddRows(table, {"ai.onnx.ml.FeatureVectorizer"}, {EachInRange("inputdimensions", 0)});
  AddRows(
      table,
      {"ai.onnx.ml.ArrayFeatureExtractor", "ai.onnx.ml.Binarizer", "ai.onnx.ml.DictVectorizer",
       "ai.onnx.ml.Imputer", "ai.onnx.ml.OneHotEncoder", "ai.onnx.ml.Scaler", "ai.onnx.ml.ZipMap"},
      {});
  AddRows(table, {"ai.onnx.preview.training.Adam"}, {Optimizer(4, 3)});
  AddRows(table, {"ai.onnx.preview.training.Adagrad"}, {Optimizer(3, 2)});
  AddRows(table, {"ai.onnx.preview.training.Momentum"},
          {Optimizer(3, 2), OneOf("mode", {"standard", "nesterov"})});
  // Lowering knows the graph that its names belong to.
  AddRows(table, {"ai.onnx.preview.training.Gradient"}, {});
}

}  // namespace onward::constraints
