// SPDX-License-Identifier: Apache-2.0
// Gradients of products whose operands have ranks that only the data tell.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/graph_case.h"

namespace onward::any_rank_test {

constexpr char kProduct[] =
    R"(g (double[12] x, double[12] w, int64[K] s, int64[L] t) => (double y) {
  a = Reshape (x, s)
  b = Reshape (w, t)
  p = MatMul (a, b)
  q = Sin (p)
  y = ReduceSum <keepdims = 0> (q)
})";

// The rank of one side is known.
constexpr char kLeftKnown[] = R"(g (double[3, 4] x, double[12] w, int64[K] t) => (double y) {
  b = Reshape (w, t)
  p = MatMul (x, b)
  q = Sin (p)
  y = ReduceSum <keepdims = 0> (q)
})";

Tensor Shape1(std::vector<int64_t> sizes) {
  return Tensor::FromValues<int64_t>({static_cast<int64_t>(sizes.size())}, sizes);
}

std::vector<GraphCase> Cases() {
  const auto product = [](const char* name, std::vector<int64_t> s, std::vector<int64_t> t) {
    return GraphCase{name, kProduct, {{"s", Shape1(std::move(s))}, {"t", Shape1(std::move(t))}}};
  };
  return {
      product("Matrices", {3, 4}, {4, 3}),
      product("Vectors", {12}, {12}),
      product("VectorTimesMatrix", {12}, {12, 1}),
      product("VectorTimesStack", {12}, {1, 12, 1}),
      product("MatrixTimesVector", {1, 12}, {12}),
      product("StackTimesVector", {1, 1, 12}, {12}),
      product("StackTimesMatrix", {2, 2, 3}, {3, 4}),
      product("MatrixTimesStack", {6, 2}, {3, 2, 2}),
      product("StacksBroadcast", {3, 1, 2, 2}, {3, 2, 2}),
      {"LeftKnown", kLeftKnown, {{"t", Shape1({4, 3})}}},
      {"LeftKnownStack", kLeftKnown, {{"t", Shape1({3, 4, 1})}}},
  };
}

class AnyRankGradient : public testing::TestWithParam<GraphCase> {};

TEST_P(AnyRankGradient, IsThatOfDifferences) { CheckGraphCase(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Autograd, AnyRankGradient, testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace onward::any_rank_test
