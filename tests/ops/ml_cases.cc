// SPDX-License-Identifier: Apache-2.0
// ai.onnx.ml gives float whatever it takes, so that its gradients are compared elsewhere:
// tests/ops/ml_test.cc has them.
#include "tests/ops/cases.h"

namespace onward {
namespace {

using List = std::vector<int64_t>;
using Numbers = std::vector<float>;
using Names = std::vector<std::string>;

OpCase Ml(const char* name, std::vector<Arg> args, Attributes attributes) {
  OpCase c = Case(name, std::move(args), std::move(attributes));
  c.domain = "ai.onnx.ml";
  return c;
}

Attributes Joined(Attributes a, const Attributes& b) {
  for (const auto& [name, value] : b) a.insert_or_assign(name, value);
  return a;
}

// Two trees: one of three leaves, one of two.
Attributes Nodes(const std::string& mode) {
  return {{"nodes_treeids", List{0, 0, 0, 0, 0, 1, 1, 1}},
          {"nodes_nodeids", List{0, 1, 2, 3, 4, 0, 1, 2}},
          {"nodes_featureids", List{0, 0, 1, 0, 0, 2, 0, 0}},
          {"nodes_modes", Names{mode, "LEAF", mode, "LEAF", "LEAF", mode, "LEAF", "LEAF"}},
          {"nodes_values", Numbers{0.25f, 0, -0.5f, 0, 0, 0.125f, 0, 0}},
          {"nodes_truenodeids", List{1, 0, 3, 0, 0, 1, 0, 0}},
          {"nodes_falsenodeids", List{2, 0, 4, 0, 0, 2, 0, 0}}};
}

Attributes Weights(const std::string& prefix, const List& ids, const Numbers& weights) {
  return {{prefix + "_treeids", List{0, 0, 0, 1, 1}},
          {prefix + "_nodeids", List{1, 3, 4, 1, 2}},
          {prefix + "_ids", ids},
          {prefix + "_weights", weights}};
}

std::vector<OpCase> TreeCases() {
  const Arg x = Real({11, 3}), many = Real({75, 3});
  // No two of the positive ones, one of each tree, add up to the 1/2 that decides a class.
  const Numbers mixed = {0.5f, -1.25f, 2, -0.75f, 0.3f},
                positive = {0.1f, 0.45f, 0.2f, 0.35f, 0.04f};
  const Attributes one = Joined(Nodes("BRANCH_LEQ"), Weights("target", {0, 0, 0, 0, 0}, mixed));
  const Attributes two = Joined(Joined(Nodes("BRANCH_LT"), {{"n_targets", 2}}),
                                Weights("target", {0, 1, 0, 1, 0}, mixed));
  std::vector<OpCase> cases = {
      Ml("TreeEnsembleRegressor", {x}, one),
      Ml("TreeEnsembleRegressor_many", {many},
         Joined(one, {{"nodes_missing_value_tracks_true", List{1, 0, 0, 0, 0, 1, 0, 0}}})),
      Ml("TreeEnsembleRegressor_average", {x},
         Joined(one, {{"aggregate_function", "AVERAGE"}, {"base_values", Numbers{0.5f}}})),
      Ml("TreeEnsembleRegressor_min", {x}, Joined(two, {{"aggregate_function", "MIN"}})),
      Ml("TreeEnsembleRegressor_max", {x},
         Joined(two, {{"aggregate_function", "MAX"}, {"base_values", Numbers{0.5f, -1}}})),
      Ml("TreeEnsembleRegressor_logistic", {many}, Joined(two, {{"post_transform", "LOGISTIC"}})),
      Ml("TreeEnsemble", {x},
         {{"nodes_featureids", List{0, 1, 2}},
          {"nodes_splits", Tensor::FromValues<double>(Shape{3}, {0.25, -0.5, 0.125})},
          {"nodes_modes", Tensor::FromValues<uint8_t>(Shape{3}, {0, 3, 2})},
          {"nodes_truenodeids", List{0, 1, 3}},
          {"nodes_trueleafs", List{1, 1, 1}},
          {"nodes_falsenodeids", List{1, 2, 4}},
          {"nodes_falseleafs", List{0, 1, 1}},
          {"leaf_targetids", List{0, 1, 0, 1, 0}},
          {"leaf_weights", Tensor::FromValues<double>(Shape{5}, {0.5, -1.25, 2, -0.75, 0.3})},
          {"tree_roots", List{0, 2}},
          {"n_targets", 2}}),
  };
  for (const char* mode : {"BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"}) {
    cases.push_back(Ml("TreeEnsembleRegressor_mode", {x}, Joined(one, Nodes(mode))));
    cases.back().name += mode;
  }
  const auto classifier = [&](const char* name, const List& ids, const Numbers& weights,
                              const List& labels, const char* transform) {
    cases.push_back(Ml(name, {x},
                       Joined(Joined(Nodes("BRANCH_LEQ"), Weights("class", ids, weights)),
                              {{"classlabels_int64s", labels}, {"post_transform", transform}})));
    cases.back().outputs = 2;
  };
  classifier("TreeEnsembleClassifier", {0, 0, 0, 0, 0}, positive, {4, 5}, "NONE");
  classifier("TreeEnsembleClassifier_mixed", {0, 0, 0, 0, 0}, mixed, {4, 5}, "NONE");
  classifier("TreeEnsembleClassifier_logistic", {0, 0, 0, 0, 0}, mixed, {4, 5}, "LOGISTIC");
  classifier("TreeEnsembleClassifier_shares", {0, 0, 0, 0, 0}, positive, {4, 5}, "LOGISTIC");
  classifier("TreeEnsembleClassifier_both", {0, 1, 0, 1, 0}, positive, {4, 5}, "NONE");
  classifier("TreeEnsembleClassifier_three", {0, 1, 2, 1, 0}, positive, {7, 8, 9}, "LOGISTIC");
  return cases;
}

std::vector<OpCase> ModelCases() {
  const Arg x = Real({5, 3});
  const Numbers six = {1, -0.5f, 0.25f, 0.75f, -1, 2}, three = {0.5f, -1, 0.25f};
  const Numbers supports = {0.5f, -1, 0.25f, 1, 0, -0.5f, -0.25f, 0.75f, 1};
  const Attributes machine = {{"support_vectors", supports},
                              {"coefficients", Numbers{1, -0.5f, 0.75f}},
                              {"rho", Numbers{0.125f}},
                              {"kernel_params", Numbers{0.5f, 0.25f, 3}}};
  std::vector<OpCase> cases = {
      Ml("SVMRegressor_linear", {x}, {{"coefficients", three}, {"rho", Numbers{0.5f}}}),
      Ml("SVMRegressor_one", {x},
         Joined(machine, {{"kernel_type", "RBF"}, {"n_supports", 3}, {"one_class", 1}})),
      Ml("LinearRegressor_vector", {Real({3})}, {{"coefficients", three}}),
  };
  for (const std::string transform : {"NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"}) {
    const Attributes labels = {{"classlabels_ints", List{4, 7}}, {"post_transform", transform}};
    const auto add = [&](const char* name, int outputs, Attributes attributes) {
      cases.push_back(
          Ml(name, {x}, Joined(std::move(attributes), {{"post_transform", transform}})));
      cases.back().name += "_" + transform;
      cases.back().outputs = outputs;
    };
    add("LinearRegressor_one", 1, {{"coefficients", three}, {"intercepts", Numbers{0.5f}}});
    add("LinearRegressor_two", 1,
        {{"coefficients", six}, {"intercepts", Numbers{0.5f, -1}}, {"targets", 2}});
    add("LinearClassifier_one", 2,
        Joined(labels, {{"coefficients", three}, {"intercepts", Numbers{0.5f}}}));
    add("LinearClassifier_two", 2,
        Joined(labels, {{"coefficients", six}, {"intercepts", Numbers{0.5f, -1}}}));
    add("SVMClassifier_two", 2,
        Joined(Joined(labels, machine),
               {{"kernel_type", "RBF"}, {"vectors_per_class", List{2, 1}}}));
    add("SVMClassifier_three", 2,
        Joined(machine, {{"kernel_type", "LINEAR"},
                         {"vectors_per_class", List{1, 1, 1}},
                         {"coefficients", six},
                         {"rho", Numbers{0.125f, -0.25f, 0.5f}},
                         {"classlabels_ints", List{3, 2, 1}}}));
  }
  for (const std::string transform : {"NONE", "SOFTMAX"}) {
    const Attributes chances = {{"prob_a", Numbers{-1.5f, -0.5f, -2}},
                                {"prob_b", Numbers{0.25f, -0.125f, 0.5f}},
                                {"post_transform", transform}};
    const auto add = [&](const char* name, Attributes attributes) {
      cases.push_back(Ml(name, {x}, Joined(Joined(machine, chances), attributes)));
      cases.back().name += "_" + transform;
      cases.back().outputs = 2;
    };
    add("SVMClassifier_chances", {{"kernel_type", "RBF"},
                                  {"vectors_per_class", List{1, 1, 1}},
                                  {"coefficients", six},
                                  {"rho", Numbers{0.125f, -0.25f, 0.5f}},
                                  {"classlabels_ints", List{3, 2, 1}}});
    add("SVMClassifier_chances_two", {{"kernel_type", "RBF"},
                                      {"vectors_per_class", List{2, 1}},
                                      {"prob_a", Numbers{-1.5f}},
                                      {"prob_b", Numbers{0.25f}},
                                      {"classlabels_ints", List{4, 7}}});
  }
  cases.push_back(
      Ml("SVMClassifier_linear", {x},
         {{"coefficients", six}, {"rho", Numbers{0.25f}}, {"classlabels_ints", List{4, 7}}}));
  cases.back().outputs = 2;
  for (const std::string kind : {"LINEAR", "POLY", "RBF", "SIGMOID"}) {
    cases.push_back(
        Ml("SVMRegressor", {x}, Joined(machine, {{"kernel_type", kind}, {"n_supports", 3}})));
    cases.back().name += "_" + kind;
  }
  return cases;
}

std::vector<OpCase> FeatureCases() {
  const Arg x = Real({3, 4});
  return {
      Ml("Scaler", {x}, {{"offset", Numbers{1, 2, 3, 4}}, {"scale", Numbers{0.5f, -1, 2, 0.25f}}}),
      Ml("Scaler_one", {x}, {{"offset", Numbers{1}}, {"scale", Numbers{0.5f}}}),
      Ml("Normalizer_l1", {x}, {{"norm", "L1"}}),
      Ml("Normalizer_l2", {x}, {{"norm", "L2"}}),
      Ml("Normalizer_max", {Positive({3, 4})}, {{"norm", "MAX"}}),
      Ml("Imputer", {x}, {{"imputed_value_floats", Numbers{7}}, {"replaced_value_float", 0.0f}}),
      Ml("Binarizer", {x}, {{"threshold", 0.5f}}),
      Ml("FeatureVectorizer", {x, Real({3, 2})}, {{"inputdimensions", List{4, 2}}}),
      Ml("FeatureVectorizer_fit", {x, Real({3, 2})}, {{"inputdimensions", List{3, 4}}}),
      Ml("ArrayFeatureExtractor", {x, Fed({1, 3}, {2, 0, 2})}, {}),
      Ml("ArrayFeatureExtractor_vector", {Real({4}), Fed({2}, {3, 1})}, {}),
      Ml("OneHotEncoder", {Below({2, 3}, 5)}, {{"cats_int64s", List{3, 0, 4}}}),
      Ml("OneHotEncoder_fractions", {x}, {{"cats_int64s", List{-1, 0, 1}}}),
      Ml("LabelEncoder", {Below({2, 3}, 5)},
         {{"keys_int64s", List{3, 0, 4}},
          {"values_floats", Numbers{1.5f, 2, -3}},
          {"default_float", 9.0f}}),
      Ml("CategoryMapper", {Below({2, 3}, 5)},
         {{"cats_int64s", List{3, 0, 4}},
          {"cats_strings", Names{"30", "10", "40"}},
          {"default_string", "99"}}),
  };
}

}  // namespace

std::vector<OpCase> MlCases() { return {}; }

std::vector<OpCase> MlForwardCases() {
  std::vector<OpCase> cases;
  for (auto* table : {TreeCases, ModelCases, FeatureCases}) {
    for (OpCase& c : table()) cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace onward
