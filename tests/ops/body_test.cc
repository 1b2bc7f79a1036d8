// SPDX-License-Identifier: Apache-2.0
// Rules against bodies: an operator that the standard writes as a function, differentiated by
// its own rule and through that body, has the same gradient.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "autograd/rule.h"
#include "core/runtime/session.h"
#include "environment/environment.h"
#include "tests/ops/cases.h"
#include "tests/support/test_environment.h"

namespace onward {

std::vector<OpCase> SingleCases() {
  const auto linear = [](const char* rule) {
    return Attributes{{"kv_num_heads", 1}, {"q_num_heads", 1}, {"update_rule", rule}};
  };
  const Arg step = Real({1, 3, 2});
  return {
      Case("CausalConvWithState", {Real({1, 2, 5}), Real({2, 1, 3}), Real({2})}).Outputs(2, {0}),
      Case("CausalConvWithState_past",
           {Real({1, 2, 4}), Real({2, 1, 3}), Omitted(), Real({1, 2, 2})}, {{"activation", "silu"}})
          .Outputs(2, {0}),
      // Its statistics are floats.
      Case("LayerNormalization_mean", {Real({2, 3}), Real({3})}).Outputs(2, {1}).By({0}),
      Case("LayerNormalization_statistics", {Real({2, 3}), Real({3})}).Outputs(3, {1, 2}).By({0}),
      Case("MeanVarianceNormalization", {Real({2, 2, 2, 3})}),
      Case("MeanVarianceNormalization_axes", {Real({3, 4})}, {{"axes", std::vector<int64_t>{1}}}),
      Case("RotaryEmbedding", {Real({1, 2, 3, 4}), Real({1, 3, 2}), Real({1, 3, 2})}),
      Case("LinearAttention", {step, step, step}, linear("linear")).Outputs(2, {0, 1}),
      Case("LinearAttention_gated", {step, step, step, Omitted(), Real({1, 3, 1}, -1, 0)},
           linear("gated"))
          .Outputs(2, {0, 1}),
  };
}

namespace body_test {

// Row or operator -> why the two are not compared.
const std::map<std::string, std::string>& NotCompared() {
  static const auto* const reasons = new std::map<std::string, std::string>{
      {"AffineGrid", "its body tells the number of axes at run time only"},
      {"Range", "its body is a Loop"},
      {"LayerNormalization_broadcast", "its body takes no scale of lower rank"},
  };
  return *reasons;
}

// The numbers that the body's casts to float leave.
constexpr double kTolerance = 2e-5;

bool HasBody(const OpCase& c) {
  Node node;
  node.op_type = c.op;
  node.attributes = c.attributes;
  std::vector<ValueType> types;
  for (const Arg& arg : c.args) {
    DType dtype = DType::kDouble;
    if (arg.kind == Arg::Kind::kIntegers) dtype = arg.integers;
    if (arg.kind == Arg::Kind::kConstant) dtype = DType::kInt64;
    if (arg.kind == Arg::Kind::kFlags || arg.kind == Arg::Kind::kTrue) dtype = DType::kBool;
    node.inputs.push_back(arg.kind == Arg::Kind::kOmitted ? "" : "x");
    types.push_back(ValueType::Of(dtype, arg.shape));
  }
  for (int i = 0; i < c.outputs; ++i) node.outputs.push_back("y" + std::to_string(i));
  std::vector<InputFact> facts(types.size());
  for (size_t i = 0; i < types.size(); ++i) {
    if (!node.inputs[i].empty()) facts[i].type = &types[i];
  }
  auto body = DefaultEnvironment().operators().FunctionBody(node, facts, {{"", kCanonicalOpset}});
  return body.ok() && body->has_value();
}

std::vector<OpCase> Compared() {
  std::vector<OpCase> cases;
  for (OpCase& c : OpCases()) {
    const RuleTable::Entry* entry = DefaultEnvironment().rules().Find(c.op, c.domain);
    if (!c.domain.empty() || entry == nullptr || entry->rule == nullptr) continue;
    if (NotCompared().contains(c.op) || NotCompared().contains(c.name)) continue;
    if (HasBody(c)) cases.push_back(std::move(c));
  }
  return cases;
}

RuleTable RulesWithout(const std::string& op) {
  RuleTable rules;
  for (const auto& [key, entry] : DefaultEnvironment().rules().all()) {
    if (key.first.empty() && key.second == op) continue;
    if (entry.rule == nullptr) {
      rules.AddZero(key.second, key.first);
    } else {
      rules.Add(key.second, entry.rule, key.first);
    }
  }
  return rules;
}

// The gradients of a row at its numbers.
std::vector<std::vector<double>> Gradients(const CaseGraph& row) {
  CompileOptions options = TestEnvironment().compile_options();
  std::vector<std::string> wanted;
  for (const NamedType& output : row.graph.outputs) wanted.push_back(output.name);
  options.outputs = wanted;
  Session session(row.graph, options);
  TensorMap feeds;
  for (const NamedType& input : session.graph().inputs) {
    feeds[input.name] = row.feeds.at(input.name);
  }
  Variables none;
  const absl::StatusOr<TensorMap> found = session.Run(feeds, &none);
  EXPECT_TRUE(found.ok()) << found.status();
  std::vector<std::vector<double>> gradients;
  for (const std::string& name : wanted) gradients.push_back(*ToDoubles(found->at(name)));
  return gradients;
}

void ExpectNear(const std::vector<double>& actual, const std::vector<double>& expected,
                double tolerance, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  double scale = 1;
  for (const double v : expected) scale = std::max(scale, std::abs(v));
  for (size_t k = 0; k < actual.size(); ++k) {
    EXPECT_LE(std::abs(actual[k] - expected[k]), tolerance * scale)
        << what << ", element " << k << " is " << actual[k] << ", expected " << expected[k];
  }
}

class BodyTest : public testing::TestWithParam<OpCase> {};

TEST_P(BodyTest, HasTheSameGradient) {
  const OpCase& c = GetParam();
  const auto direct = Gradients(GradientGraph(c, DType::kDouble));
  const auto through = Gradients(GradientGraph(c, DType::kDouble, RulesWithout(c.op)));
  ASSERT_EQ(direct.size(), through.size());
  for (size_t i = 0; i < direct.size(); ++i) {
    ExpectNear(through[i], direct[i], kTolerance, "gradient " + std::to_string(i));
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, BodyTest, testing::ValuesIn(Compared()),
                         [](const auto& info) { return info.param.name; });

TEST(Bodies, OfManyOperatorsAreCompared) {
  std::set<std::string> operators;
  for (const OpCase& c : Compared()) operators.insert(c.op);
  for (const char* op : {"Celu", "Clip", "DepthToSpace", "Einsum", "Elu", "Gelu",
                         "GroupNormalization", "LayerNormalization", "LogSoftmax", "PRelu",
                         "ReduceLogSumExp", "Relu", "Softmax", "SoftmaxCrossEntropyLoss"}) {
    EXPECT_TRUE(operators.contains(op)) << op;
  }
}

class SingleTest : public testing::TestWithParam<OpCase> {};

// Differences of results in float are good to a percent.
TEST_P(SingleTest, AgreesWithDifferences) {
  constexpr double kStep = 1e-2;
  const OpCase& c = GetParam();
  const CaseGraph row = GradientGraph(c, DType::kFloat);
  const auto gradients = Gradients(row);
  CaseRun run(c, DType::kFloat);
  const auto loss_at = [&](const std::string& input, int64_t k, double value) {
    const std::vector<Tensor> ys = run.With(input, k, value);
    double loss = 0;
    for (size_t i = 0; i < c.used.size(); ++i) {
      const std::vector<double> y = *ToDoubles(ys[c.used[i]]);
      const std::vector<double> factor = *ToDoubles(row.feeds.at("c" + std::to_string(i)));
      for (size_t e = 0; e < y.size(); ++e) loss += y[e] * factor[e];
    }
    return loss;
  };
  size_t next = 0;
  for (size_t i = 0; i < c.args.size(); ++i) {
    const bool by = c.by.empty() || std::count(c.by.begin(), c.by.end(), static_cast<int>(i)) > 0;
    if (c.args[i].kind != Arg::Kind::kReal || !by) continue;
    const std::string input = "x" + std::to_string(i);
    std::vector<double> slopes;
    for (int64_t k = 0; k < c.args[i].shape.elements(); ++k) {
      const double here = run.At(input, k);
      slopes.push_back((loss_at(input, k, here + kStep) - loss_at(input, k, here - kStep)) /
                       (2 * kStep));
    }
    ExpectNear(gradients[next++], slopes, 1e-2, "gradient of " + input);
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, SingleTest, testing::ValuesIn(SingleCases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace body_test
}  // namespace onward
