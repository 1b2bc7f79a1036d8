// SPDX-License-Identifier: Apache-2.0
// The attention kernels against the bodies of the functions they serve.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/graph/builder.h"
#include "core/runtime/session.h"
#include "environment/environment.h"
#include "tests/support/text_model.h"
#include "training_info/lower.h"

namespace onward::attention_test {

constexpr float kNever = -std::numeric_limits<float>::infinity();

struct Row {
  std::string name;
  Shape q, k, v;
  Shape mask = {};         // of rank 0: none
  float masked = -2;       // smallest value of the mask
  bool first_row = false;  // of queries looks at nothing
  bool permuted = false;   // stored as [batch, sequence, heads, depth]
  Attributes attributes = {};
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

Tensor Wave(const Shape& shape, int seed) {
  Tensor t(DType::kFloat, shape);
  for (int64_t i = 0; i < t.elements(); ++i) {
    t.data<float>()[i] = static_cast<float>(2 * std::sin(static_cast<double>(i * i % 1009 + seed)));
  }
  return t;
}

Tensor MaskOf(const Row& row) {
  Tensor mask = Wave(row.mask, 3);
  const int64_t columns = row.mask[row.mask.rank() - 1];
  for (int64_t i = 0; i < mask.elements(); ++i) {
    float& value = mask.data<float>()[i];
    if (value < -1 || (row.first_row && i < columns)) value = row.masked;
  }
  return mask;
}

constexpr int64_t kTurn[] = {0, 2, 1, 3};

// Two axes exchanged in the declaration, and exchanged back in the graph.
Expr Declared(GraphBuilder& b, const std::string& name, const Tensor& value, bool permuted,
              TensorMap* feeds) {
  Shape shape = value.shape();
  if (permuted) std::swap(shape[1], shape[2]);
  (*feeds)[name] =
      Tensor(DType::kFloat, shape, const_cast<void*>(value.raw()), std::make_shared<Tensor>(value));
  const Expr e = b.Input(name, ValueType::Of(DType::kFloat, shape));
  return permuted ? Transpose(e, {std::begin(kTurn), std::end(kTurn)}) : e;
}

struct Case {
  Graph graph;
  TensorMap feeds;
  std::vector<std::string> results;
};

// y, dq, dk, dv and the gradient of the scores of one row.
Case GraphOf(const Row& row) {
  Case c;
  c.graph.opsets = {{"", kCanonicalOpset}, {std::string(kOnwardDomain), 1}};
  GraphBuilder b(&c.graph, &DefaultEnvironment().operators());
  Shape y = row.q;
  y[y.rank() - 1] = row.v[row.v.rank() - 1];
  const Expr dy = Declared(b, "dy", Wave(y, 7), row.permuted, &c.feeds);
  std::vector<Expr> inputs = {Declared(b, "q", Wave(row.q, 0), row.permuted, &c.feeds),
                              Declared(b, "k", Wave(row.k, 1), row.permuted, &c.feeds),
                              Declared(b, "v", Wave(row.v, 2), row.permuted, &c.feeds)};
  if (row.mask.rank() > 0) inputs.push_back(Declared(b, "mask", MaskOf(row), false, &c.feeds));
  std::vector<Expr> results = {
      b.Op("ScaledDotProductAttention", inputs, row.attributes, kOnwardDomain)};
  inputs.insert(inputs.begin(), dy);
  for (const Expr& e :
       b.Ops("ScaledDotProductAttentionGrad", inputs, 4, row.attributes, kOnwardDomain)) {
    results.push_back(e);
  }
  for (const Expr& e : results) {
    const bool turned = row.permuted && c.results.size() < 4;
    const Expr out = turned ? Transpose(e, {std::begin(kTurn), std::end(kTurn)}) : e;
    b.Output(out);
    c.results.push_back(out.name());
  }
  EXPECT_TRUE(b.status().ok()) << b.status();
  return c;
}

TensorMap Evaluate(const Graph& graph, const TensorMap& feeds, std::string* plan) {
  CompileOptions options;
  options.device = &DefaultEnvironment().cpu();
  options.operators = &DefaultEnvironment().operators();
  Session session(graph, options);
  auto values = session.Run(feeds, nullptr);
  EXPECT_TRUE(values.ok()) << values.status();
  std::map<std::string, FeedType> types;
  for (const auto& [name, tensor] : feeds) types[name] = {tensor.dtype(), tensor.shape()};
  *plan = (*session.Prepare(types))->plan().ToText();
  return values.ok() ? *values : TensorMap();
}

void ExpectSame(const Tensor& actual, const Tensor& expected, const std::string& what) {
  ASSERT_EQ(actual.shape(), expected.shape()) << what;
  const std::vector<double> a = Values(actual), e = Values(expected);
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(e[i])) {
      ASSERT_TRUE(std::isnan(a[i])) << what << " " << i;
    } else {
      ASSERT_NEAR(a[i], e[i], 2e-5 * (1 + std::fabs(e[i]))) << what << " " << i;
    }
  }
}

class AttentionKernel : public testing::TestWithParam<Row> {};

TEST_P(AttentionKernel, AgreesWithTheBody) {
  const Case c = GraphOf(GetParam());
  auto inlined = InlineOwnFunctions(c.graph, DefaultEnvironment());
  ASSERT_TRUE(inlined.ok()) << inlined.status();
  std::string plan, plain;
  const TensorMap actual = Evaluate(c.graph, c.feeds, &plan);
  const TensorMap expected = Evaluate(*inlined, c.feeds, &plain);
  EXPECT_NE(plan.find("ScaledDotProductAttentionGrad("), std::string::npos) << plan;
  EXPECT_NE(plan.find("ScaledDotProductAttention("), std::string::npos) << plan;
  EXPECT_EQ(plan.find("Reorder"), std::string::npos) << plan;
  for (const std::string& name : c.results) ExpectSame(actual.at(name), expected.at(name), name);
}

INSTANTIATE_TEST_SUITE_P(
    Rows, AttentionKernel,
    testing::ValuesIn(std::vector<Row>{
        {"Usual", {2, 3, 16, 32}, {2, 3, 16, 32}, {2, 3, 16, 32}},
        {"OneKey", {2, 2, 1, 8}, {2, 2, 1, 8}, {2, 2, 1, 8}},
        {"OneQuery", {2, 2, 1, 8}, {2, 2, 37, 8}, {2, 2, 37, 8}},
        {"OddSizes",
         {2, 3, 13, 26},
         {2, 3, 13, 26},
         {2, 3, 13, 26},
         {},
         0,
         false,
         false,
         {{"scale", 0.196}}},
        {"Cross",
         {1, 2, 19, 10},
         {1, 2, 45, 10},
         {1, 2, 45, 7},
         {},
         0,
         false,
         false,
         {{"scale", 0.3}}},
        {"NegativeScale",
         {1, 2, 9, 5},
         {1, 2, 9, 5},
         {1, 2, 9, 5},
         {},
         0,
         false,
         false,
         {{"scale", -0.3}}},
        {"SeveralBlocks",
         {1, 3, 300, 16},
         {1, 3, 270, 16},
         {1, 3, 270, 16},
         {},
         0,
         false,
         false,
         {{"scale", 0.25}}},
        {"FewPairs", {1, 1, 200, 24}, {1, 1, 150, 24}, {1, 1, 150, 40}},
        {"LongKeys", {1, 2, 70, 8}, {1, 2, 1500, 8}, {1, 2, 1500, 8}},
        {"Stack", {3, 11, 12}, {3, 14, 12}, {3, 14, 9}},
        {"StackMask", {3, 11, 12}, {3, 14, 12}, {3, 14, 9}, {3, 1, 14}},
        {"Permuted", {2, 3, 17, 16}, {2, 3, 17, 16}, {2, 3, 17, 16}, {}, 0, false, true},
        {"PermutedMask",
         {2, 3, 17, 16},
         {2, 3, 12, 16},
         {2, 3, 12, 8},
         {2, 1, 1, 12},
         -1e9f,
         false,
         true},
        {"MaskWhole", {2, 3, 9, 6}, {2, 3, 11, 6}, {2, 3, 11, 6}, {2, 3, 9, 11}, kNever},
        {"MaskOfBatch", {2, 3, 9, 6}, {2, 3, 11, 6}, {2, 3, 11, 6}, {2, 1, 1, 11}, -1e4f},
        {"MaskOfHeads", {2, 3, 9, 6}, {2, 3, 11, 6}, {2, 3, 11, 6}, {3, 1, 11}, -1e4f},
        {"MaskOfQueries", {2, 3, 9, 6}, {2, 3, 11, 6}, {2, 3, 11, 6}, {9, 1}},
        {"MaskOfPairs", {2, 3, 9, 6}, {2, 3, 11, 6}, {2, 3, 11, 6}, {9, 11}, kNever},
        {"MaskOfKeys", {2, 3, 9, 6}, {2, 3, 11, 6}, {2, 3, 11, 6}, {11}, -1e9f},
        {"RowOfInfinities", {2, 3, 9, 6}, {2, 3, 11, 6}, {2, 3, 11, 6}, {9, 11}, kNever, true},
        {"RowOfLargeNumbers",
         {2, 3, 9, 6},
         {2, 3, 11, 6},
         {2, 3, 11, 6},
         {2, 1, 9, 11},
         -1e30f,
         true},
    }),
    [](const auto& info) { return info.param.name; });

// Attention with its inner products as a further output has no kernel.
class StandardAttention : public testing::TestWithParam<Row> {};

TEST_P(StandardAttention, AgreesWithTheBody) {
  const Row& row = GetParam();
  Graph graph;
  graph.opsets = {{"", kCanonicalOpset}};
  GraphBuilder b(&graph, &DefaultEnvironment().operators());
  TensorMap feeds;
  std::vector<Expr> inputs = {Declared(b, "q", Wave(row.q, 0), row.permuted, &feeds),
                              Declared(b, "k", Wave(row.k, 1), row.permuted, &feeds),
                              Declared(b, "v", Wave(row.v, 2), row.permuted, &feeds)};
  if (row.mask.rank() > 0) {
    Expr mask = Declared(b, "mask", MaskOf(row), false, &feeds);
    inputs.push_back(row.masked == 0 ? Less(mask, b.Scalar(0.5, mask)) : mask);
  }
  const Expr fused = b.Op("Attention", inputs, row.attributes);
  const Expr plain = b.Ops("Attention", inputs, 4, row.attributes)[0];
  b.Output(fused);
  b.Output(plain);
  ASSERT_TRUE(b.status().ok()) << b.status();
  std::string plan;
  const TensorMap values = Evaluate(graph, feeds, &plan);
  EXPECT_NE(plan.find("= Attention("), std::string::npos) << plan;
  ExpectSame(values.at(fused.name()), values.at(plain.name()), "y");
}

INSTANTIATE_TEST_SUITE_P(
    Rows, StandardAttention,
    testing::ValuesIn(std::vector<Row>{
        {"Usual", {2, 3, 16, 32}, {2, 3, 16, 32}, {2, 3, 16, 32}},
        {"Causal",
         {2, 3, 13, 8},
         {2, 3, 13, 8},
         {2, 3, 13, 8},
         {},
         0,
         false,
         false,
         {{"is_causal", 1}}},
        {"CausalCross",
         {1, 2, 7, 8},
         {1, 2, 12, 8},
         {1, 2, 12, 6},
         {},
         0,
         false,
         false,
         {{"is_causal", 1}}},
        {"CausalFewKeys",
         {1, 2, 12, 8},
         {1, 2, 5, 8},
         {1, 2, 5, 6},
         {},
         0,
         false,
         false,
         {{"is_causal", 1}}},
        {"CausalBlocks",
         {1, 2, 300, 8},
         {1, 2, 300, 8},
         {1, 2, 300, 8},
         {},
         0,
         false,
         false,
         {{"is_causal", 1}}},
        {"CausalMask",
         {2, 3, 9, 6},
         {2, 3, 11, 6},
         {2, 3, 11, 6},
         {2, 1, 9, 11},
         kNever,
         true,
         false,
         {{"is_causal", 1}}},
        {"Mask", {2, 3, 9, 6}, {2, 3, 11, 6}, {2, 3, 11, 6}, {9, 11}, kNever, true},
        {"Flags", {2, 3, 9, 6}, {2, 3, 11, 6}, {2, 3, 11, 6}, {2, 1, 9, 11}, 0},
        {"Grouped",
         {2, 6, 9, 6},
         {2, 2, 11, 6},
         {2, 2, 11, 4},
         {9, 11},
         -1e9f,
         true,
         false,
         {{"scale", 0.4}}},
        {"Permuted", {2, 4, 9, 6}, {2, 2, 11, 6}, {2, 2, 11, 4}, {}, 0, false, true},
        {"JoinedHeads",
         {2, 9, 24},
         {2, 11, 12},
         {2, 11, 16},
         {},
         0,
         false,
         false,
         {{"kv_num_heads", 2}, {"q_num_heads", 4}}},
    }),
    [](const auto& info) { return info.param.name; });

}  // namespace onward::attention_test
