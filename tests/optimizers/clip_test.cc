// SPDX-License-Identifier: Apache-2.0
#include "optimizers/clip.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace onward::clip_test {

using ::testing::HasSubstr;

int CountOf(const Graph& graph, const char* op) {
  int count = 0;
  for (const Node& node : graph.nodes) count += node.Is(op);
  return count;
}

TEST(ClipByGlobalNorm, MeasuresAllAndScalesEach) {
  Graph graph;
  GraphBuilder b(&graph, nullptr);
  const std::vector<Expr> grads = {b.Input("a", ValueType::Of(DType::kFloat, {2, 3})),
                                   b.Input("b", ValueType::Of(DType::kFloat, {4}))};
  const std::vector<Expr> clipped = ClipByGlobalNorm(b, grads, 1.0);
  ASSERT_TRUE(b.status().ok()) << b.status();
  ASSERT_EQ(clipped.size(), 2u);
  EXPECT_EQ(CountOf(graph, "ReduceSumSquare"), 2);
  EXPECT_EQ(CountOf(graph, "Sqrt"), 1);
  EXPECT_EQ(CountOf(graph, "Mul"), 2);
}

TEST(ClipByGlobalNorm, MeasuresHalvesInFloat) {
  Graph graph;
  GraphBuilder b(&graph, nullptr);
  ClipByGlobalNorm(b, {b.Input("a", ValueType::Of(DType::kFloat16, {4}))}, 1.0);
  ASSERT_TRUE(b.status().ok()) << b.status();
  EXPECT_TRUE(graph.nodes[0].Is("Cast"));
  EXPECT_EQ(graph.nodes[0].Int("to", 0), static_cast<int64_t>(DType::kFloat));
}

TEST(ClipByGlobalNorm, RefusesNormsThatAreNotPositive) {
  for (const double norm : {0.0, -1.0}) {
    Graph graph;
    GraphBuilder b(&graph, nullptr);
    ClipByGlobalNorm(b, {b.Input("a", ValueType::Of(DType::kFloat, {4}))}, norm);
    EXPECT_THAT(std::string(b.status().message()), HasSubstr("'max_norm' has to be a number > 0"));
  }
}

TEST(ClipByGlobalNorm, OfNothingIsNothing) {
  Graph graph;
  GraphBuilder b(&graph, nullptr);
  EXPECT_TRUE(ClipByGlobalNorm(b, {}, 1.0).empty());
  EXPECT_TRUE(graph.nodes.empty());
}

TEST(ClipByValue, LimitsEachElement) {
  Graph graph;
  GraphBuilder b(&graph, nullptr);
  ClipByValue(b, {b.Input("a", ValueType::Of(DType::kFloat, {4}))}, 0.5);
  EXPECT_EQ(CountOf(graph, "Clip"), 1);
  ClipByValue(b, {b.Value("a")}, 0);
  EXPECT_THAT(std::string(b.status().message()), HasSubstr("'clip_value' has to be a number > 0"));
}

}  // namespace onward::clip_test
