// SPDX-License-Identifier: Apache-2.0
// Operators of ai.onnx.ml beyond their rows: gradients, missing values, empty batches, and
// what files ask for that no ensemble has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autograd/differentiate.h"
#include "core/graph/builder.h"
#include "core/graph/infer.h"
#include "core/graph/inline.h"
#include "core/runtime/session.h"
#include "environment/environment.h"
#include "tests/ops/cases.h"
#include "tests/support/case_draws.h"
#include "tests/support/test_environment.h"

namespace onward::ml_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsNan;

constexpr char kMl[] = "ai.onnx.ml";

absl::StatusOr<TensorMap> Results(const Graph& graph, const std::vector<std::string>& wanted,
                                  const TensorMap& feeds) {
  CompileOptions options = TestEnvironment().compile_options();
  options.outputs = wanted;
  Variables none;
  return Session(graph, std::move(options)).Run(feeds, &none);
}

// One node on x; its last output.
absl::StatusOr<Tensor> Apply(const std::string& op, const Tensor& x, Attributes attributes,
                             int outputs = 1, int version = 3) {
  Graph graph;
  graph.opsets = {{"", kCanonicalOpset}, {kMl, version}};
  GraphBuilder b(&graph, &DefaultEnvironment().operators());
  const Expr input = b.Input("x", ValueType::Of(x.dtype(), x.shape()));
  const std::string y = b.Ops(op, {input}, outputs, std::move(attributes), kMl).back().name();
  if (!b.status().ok()) return b.status();
  absl::StatusOr<TensorMap> found = Results(graph, {y}, {{"x", x}});
  if (!found.ok()) return found.status();
  return found->at(y);
}

std::vector<float> FloatsOfResult(const absl::StatusOr<Tensor>& t) {
  if (!t.ok()) {
    ADD_FAILURE() << t.status();
    return {};
  }
  const auto values = t->values<float>();
  return {values.begin(), values.end()};
}

const float kNan = std::numeric_limits<float>::quiet_NaN();
using List = std::vector<int64_t>;
using Numbers = std::vector<float>;
using Names = std::vector<std::string>;

// x0 <= 0.5 ? 1 : 2
Attributes Stump() {
  return {
      {"nodes_treeids", List{0, 0, 0}},      {"nodes_nodeids", List{0, 1, 2}},
      {"nodes_featureids", List{0, 0, 0}},   {"nodes_modes", Names{"BRANCH_LEQ", "LEAF", "LEAF"}},
      {"nodes_values", Numbers{0.5f, 0, 0}}, {"nodes_truenodeids", List{1, 0, 0}},
      {"nodes_falsenodeids", List{2, 0, 0}}, {"target_treeids", List{0, 0}},
      {"target_nodeids", List{1, 2}},        {"target_ids", List{0, 0}},
      {"target_weights", Numbers{1, 2}},     {"n_targets", 1}};
}

Attributes With(Attributes attributes, const std::string& name, Attribute value) {
  attributes.insert_or_assign(name, std::move(value));
  return attributes;
}

TEST(MlNan, IsMissingOrShows) {
  const Tensor x = Tensor::FromValues<float>(Shape{3, 1}, {0.25f, kNan, 0.75f});
  EXPECT_THAT(FloatsOfResult(Apply("TreeEnsembleRegressor", x, Stump())), ElementsAre(1, 2, 2));
  EXPECT_THAT(
      FloatsOfResult(Apply("TreeEnsembleRegressor", x,
                           With(Stump(), "nodes_missing_value_tracks_true", List{1, 0, 0}))),
      ElementsAre(1, 1, 2));
  EXPECT_THAT(
      FloatsOfResult(Apply("Imputer", x,
                           {{"imputed_value_floats", Numbers{7}}, {"replaced_value_float", kNan}})),
      ElementsAre(0.25f, 7, 0.75f));
  EXPECT_THAT(FloatsOfResult(Apply("Scaler", x, {{"offset", Numbers{1}}, {"scale", Numbers{2}}})),
              ElementsAre(-1.5f, IsNan(), -0.5f));
  const Tensor rows = Tensor::FromValues<float>(Shape{2, 2}, {kNan, 1, 3, 4});
  for (const char* norm : {"L1", "L2", "MAX"}) {
    const std::vector<float> y = FloatsOfResult(Apply("Normalizer", rows, {{"norm", norm}}));
    EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1]) && !std::isnan(y[2])) << norm;
  }
  EXPECT_THAT(FloatsOfResult(Apply("LinearRegressor", rows, {{"coefficients", Numbers{1, 1}}})),
              ElementsAre(IsNan(), 7));
  EXPECT_THAT(FloatsOfResult(Apply("Binarizer", x, {{"threshold", 0.5f}})), ElementsAre(0, 0, 1));
}

TEST(MlEmpty, BatchesStayEmpty) {
  const Tensor x(DType::kFloat, Shape{0, 1});
  EXPECT_TRUE(FloatsOfResult(Apply("TreeEnsembleRegressor", x, Stump())).empty());
  EXPECT_TRUE(FloatsOfResult(Apply("LinearRegressor", x, {{"coefficients", Numbers{1}}})).empty());
  EXPECT_TRUE(FloatsOfResult(Apply("Normalizer", x, {{"norm", "L2"}})).empty());
  EXPECT_TRUE(
      FloatsOfResult(Apply("SVMRegressor", x, {{"coefficients", Numbers{1}}, {"rho", Numbers{1}}}))
          .empty());
}

// A comparison with a double is as exact as one in double.
TEST(Trees, CompareFloatsWithDoubles) {
  const double split = 0.1;  // below the float that is nearest to it
  Attributes trees =
      With(Stump(), "nodes_values_as_tensor", Tensor::FromValues<double>(Shape{3}, {split, 0, 0}));
  trees.erase("nodes_values");
  const Tensor x = Tensor::FromValues<float>(Shape{2, 1}, {0.1f, std::nextafter(0.1f, 0.0f)});
  EXPECT_THAT(FloatsOfResult(Apply("TreeEnsembleRegressor", x, trees)), ElementsAre(2, 1));
}

struct Refused {
  std::string attribute;
  Attribute value;
  std::string says;
};

TEST(Trees, WhatNoTreeHasIsRefused) {
  const Tensor x(DType::kFloat, Shape{2, 1});
  const std::vector<Refused> rows = {
      {"nodes_truenodeids", List{7, 0, 0}, "has no node 7"},
      {"nodes_truenodeids", List{0, 0, 0}, "circle"},
      {"nodes_falsenodeids", List{1, 0, 0}, "more than one root"},
      {"nodes_nodeids", List{0, 1, 1}, "two nodes 1"},
      {"nodes_nodeids", List{0, 1}, "nodes_"},
      {"nodes_values", Numbers{0.5f}, "nodes_values has 1"},
      {"nodes_modes", Names{"BRANCH_ALWAYS", "LEAF", "LEAF"}, "is no mode"},
      {"nodes_featureids", List{-3, 0, 0}, "feature -3"},
      {"nodes_featureids", List{5, 0, 0}, "ask for 6 features"},
      {"target_ids", List{0, 4}, "target_ids holds 4"},
      {"target_nodeids", List{0, 2}, "no leaf"},
      {"target_nodeids", List{1, 9}, "has no node 9"},
      {"target_weights", Numbers{1}, "target_weights has 1"},
      {"base_values", Numbers{1, 2, 3}, "base_values has 3"},
      {"nodes_missing_value_tracks_true", List{1}, "tracks_true has 1"},
      {"n_targets", int64_t{1} << 40, "n_targets"},
  };
  for (const Refused& row : rows) {
    const absl::StatusOr<Tensor> y =
        Apply("TreeEnsembleRegressor", x, With(Stump(), row.attribute, row.value));
    ASSERT_FALSE(y.ok()) << row.attribute << ", " << row.says;
    EXPECT_THAT(std::string(y.status().message()), HasSubstr(row.says)) << row.attribute;
  }
}

// Two nodes that share both children, thirty deep: 2^30 paths, sixty nodes.
TEST(Trees, SharedBranchesAreWalkedOnce) {
  List features, yes, no, leafs;
  constexpr int kDepth = 30;
  for (int i = 0; i < kDepth; ++i) {
    features.push_back(0);
    yes.push_back(i + 1 < kDepth ? i + 1 : 0);
    no.push_back(yes.back());
    leafs.push_back(i + 1 < kDepth ? 0 : 1);
  }
  const absl::StatusOr<Tensor> y =
      Apply("TreeEnsemble", Tensor::FromValues<float>(Shape{1, 1}, {0}),
            {{"nodes_featureids", features},
             {"nodes_splits", Tensor::Zeros(DType::kFloat, Shape{kDepth})},
             {"nodes_modes", Tensor::Zeros(DType::kUint8, Shape{kDepth})},
             {"nodes_truenodeids", yes},
             {"nodes_trueleafs", leafs},
             {"nodes_falsenodeids", no},
             {"nodes_falseleafs", leafs},
             {"leaf_targetids", List{0}},
             {"leaf_weights", Tensor::FromValues<float>(Shape{1}, {3})},
             {"tree_roots", List{0}}},
            1, 5);
  EXPECT_THAT(FloatsOfResult(y), ElementsAre(3));
}

// Rows whose results are differentiated by their first input, against central differences. The
// standard has float results, which would hide all but three digits: so the operator's body,
// which is what is differentiated, is computed without the rounding at its end, in double; and
// the gradient of the operator itself has to be that one to the precision of float. That kernels
// give what bodies give is held in kernel_test.cc.
class MlGradient : public testing::TestWithParam<OpCase> {};

constexpr double kStep = 1e-5, kTolerance = 1e-6, kOfFloat = 1e-5;

struct MlLoss {
  Graph graph;
  TensorMap feeds;
  std::string loss;
};

MlLoss LossOf(const OpCase& c) {
  MlLoss made;
  made.graph.opsets = {
      {"", kCanonicalOpset}, {kMl, 1}, {std::string(kOnwardDomain), kOnwardVersion}};
  GraphBuilder b(&made.graph, &DefaultEnvironment().operators());
  Draws draws(c.name);
  std::vector<Expr> inputs;
  for (size_t i = 0; i < c.args.size(); ++i) {
    const Tensor value = DrawArg(c.args[i], draws);
    inputs.push_back(b.Input(absl::StrCat("x", i), ValueType::Of(value.dtype(), value.shape())));
    made.feeds[absl::StrCat("x", i)] = value;
  }
  const Expr y = Cast(b.Ops(c.op, inputs, c.outputs, c.attributes, kMl).back(), DType::kDouble);
  const Tensor weights = Doubles(y.type().StaticShape().value(), [&] {
    std::vector<double> values(y.type().StaticShape()->elements());
    for (double& v : values) v = draws.Unit() - 0.5;
    return values;
  }());
  made.loss = ReduceSumAll(y * b.Constant(weights)).name();
  EXPECT_TRUE(b.status().ok()) << b.status();
  return made;
}

// The operator as its body; what that rounds to float stays double.
Graph WithoutRounding(Graph graph) {
  NameScope names(graph);
  std::vector<Node> nodes;
  for (const Node& node : graph.nodes) {
    std::vector<InputFact> facts;
    for (const std::string& name : node.inputs) facts.push_back({graph.TypeOf(name), nullptr});
    std::optional<Function> body;
    if (node.domain == kMl) {
      body = DefaultEnvironment().operators().FunctionBody(node, facts, graph.opsets).value();
    }
    if (!body.has_value()) {
      nodes.push_back(node);
      continue;
    }
    const std::vector<Node> inner = ExpandCall(*body, node, "body", &names).value();
    nodes.insert(nodes.end(), inner.begin(), inner.end());
  }
  graph.nodes = std::move(nodes);
  for (Node& node : graph.nodes) {
    const Tensor* value = node.TensorAttribute("value");
    if (node.Is("Constant") && value != nullptr && value->dtype() == DType::kFloat) {
      node.attributes["value"] = Doubles(value->shape(), *ToDoubles(*value));
    }
    if (!node.Is("Cast") || node.Int("to", 0) != static_cast<int64_t>(DType::kFloat)) continue;
    node.op_type = "Identity";
    node.attributes.clear();
  }
  graph.types.clear();
  const absl::Status inferred = InferTypes(&graph, DefaultEnvironment().operators());
  EXPECT_TRUE(inferred.ok()) << inferred;
  return graph;
}

std::vector<double> GradientOf(const Graph& graph, const MlLoss& of) {
  DifferentiateOptions options;
  options.operators = &DefaultEnvironment().operators();
  options.rules = &DefaultEnvironment().rules();
  const auto gradients = Differentiate(graph, of.loss, {"x0"}, options);
  EXPECT_TRUE(gradients.ok()) << gradients.status();
  if (!gradients.ok()) return {};
  const auto found = Results(gradients->graph, {gradients->values[0]}, of.feeds);
  EXPECT_TRUE(found.ok()) << found.status();
  return found.ok() ? *ToDoubles(found->at(gradients->values[0])) : std::vector<double>();
}

TEST_P(MlGradient, AgreesWithCentralDifferences) {
  MlLoss of = LossOf(GetParam());
  const Graph graph = WithoutRounding(of.graph);
  const std::vector<double> gradient = GradientOf(graph, of), in_float = GradientOf(of.graph, of);
  Tensor x = of.feeds["x0"].Clone();
  of.feeds["x0"] = x;
  ASSERT_EQ(static_cast<int64_t>(gradient.size()), x.elements());
  ASSERT_EQ(gradient.size(), in_float.size());
  for (int64_t i = 0; i < x.elements(); ++i) {
    double& element = x.data<double>()[i];
    const double here = element;
    element = here + kStep;
    const double above = Results(graph, {of.loss}, of.feeds)->at(of.loss).data<double>()[0];
    element = here - kStep;
    const double below = Results(graph, {of.loss}, of.feeds)->at(of.loss).data<double>()[0];
    element = here;
    const double slope = (above - below) / (2 * kStep);
    EXPECT_NEAR(gradient[i], slope, kTolerance * (1 + std::abs(slope))) << "element " << i;
    EXPECT_NEAR(in_float[i], slope, kOfFloat * (1 + std::abs(slope))) << "element " << i;
  }
}

std::vector<OpCase> SmoothCases() {
  const std::set<std::string> ops = {"LinearRegressor",
                                     "LinearClassifier",
                                     "SVMRegressor",
                                     "SVMClassifier",
                                     "Scaler",
                                     "Normalizer",
                                     "Imputer",
                                     "FeatureVectorizer",
                                     "ArrayFeatureExtractor",
                                     "TreeEnsembleRegressor"};
  std::vector<OpCase> cases = MlForwardCases();
  std::erase_if(cases, [&](const OpCase& c) { return !ops.contains(c.op); });
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Ops, MlGradient, testing::ValuesIn(SmoothCases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace onward::ml_test
