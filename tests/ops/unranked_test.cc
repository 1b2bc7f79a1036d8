// SPDX-License-Identifier: Apache-2.0
// Gradients of graphs that declare no shapes: every row of the operator table once more, with
// ranks or sizes of its inputs unknown. They are those of the row with shapes, also in standard
// operators alone, and of the second order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/infer.h"
#include "tests/ops/cases.h"
#include "tests/support/case_draws.h"
#include "tests/support/case_graph.h"
#include "tests/support/test_environment.h"
#include "training_info/lower.h"

namespace onward::unranked_test {

// How far two formulas for one gradient may be apart, relative to the largest value; attributes of
// bodies are floats.
constexpr double kAlike = 1e-7, kAlikeInFloat = 1e-4;

// Which inputs are declared without a shape: what a model is fed, its weights having shapes, or
// all; or all have ranks, of sizes that are not known.
enum class Open { kFirst, kAll, kSizes };

Graph WithoutShapes(Graph graph, Open open) {
  for (NamedType& in : graph.inputs) {
    const bool weight = in.name[0] == 'x' && in.name != "x0";
    if (open == Open::kSizes) in.type.dims.assign(in.type.dims.size(), Dim{});
    if (open == Open::kAll || (open == Open::kFirst && !weight)) {
      in.type = ValueType::Unranked(in.type.dtype);
    }
  }
  graph.types.clear();
  for (NamedType& out : graph.outputs) out.type = {};
  Must(InferTypes(&graph, DefaultEnvironment().operators()));
  return graph;
}

// The gradients as a graph of standard operators.
Graph Plain(const Gradients& gradients) {
  Graph graph = gradients.graph;
  Must(ExpandForeignCalls(DefaultEnvironment(), &graph));
  return Must(InlineOwnFunctions(graph, DefaultEnvironment()));
}

struct Twice {
  Gradients first, second;
  std::vector<std::string> directions;
};

// The gradients of the loss by the xs, and of their sum in given directions by the xs and by what
// arrives.
Twice Differentiated(const Built& built, const Graph& graph) {
  Twice twice;
  twice.first = Derive(graph, built.loss, built.xs);
  Graph along = twice.first.graph;
  GraphBuilder b(&along, &DefaultEnvironment().operators(), "h");
  std::vector<Expr> values;
  for (const std::string& g : twice.first.values) values.push_back(b.Value(g));
  const std::string h = WeightedSum(b, values, "v", &twice.directions).name();
  Must(b.status());
  std::vector<std::string> xs = built.xs;
  xs.insert(xs.end(), built.cotangents.begin(), built.cotangents.end());
  twice.second = Derive(along, h, xs);
  return twice;
}

void ExpectAlike(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected,
                 double alike, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_EQ(actual[i].shape(), expected[i].shape()) << what << " " << i;
    const std::vector<double> a = *ToDoubles(actual[i]), e = *ToDoubles(expected[i]);
    double largest = 1;
    for (const double value : e) largest = std::max(largest, std::abs(value));
    for (size_t k = 0; k < a.size(); ++k) {
      ASSERT_NEAR(a[k], e[k], alike * largest) << what << " " << i << ", element " << k;
    }
  }
}

// What has to be said to the person where the gradient needs it; "" where it needs nothing.
std::string Refusal(const OpCase& c, Open open) {
  if (open == Open::kFirst) return "";
  if (c.op == "DeformConv") return "(DeformConv): the shape of W is not known; declare it";
  if (c.op == "CausalConvWithState") {  // the weight tells the channels
    return "it has no function body for inputs whose shapes are not known; declare them";
  }
  if (open == Open::kSizes) return "";
  if (c.op != "Conv" && c.op != "ConvTranspose") return "";
  for (const char* tells : {"kernel_shape", "strides", "dilations", "pads"}) {
    if (c.attributes.contains(tells)) return "";
  }
  return c.by == std::vector<int>{2} ? "" : "tells how many spatial axes there are; declare";
}

// A row with its shapes: what it is fed, and its gradients.
struct Shaped {
  Built built;
  TensorMap feeds;
  std::vector<Tensor> first, second;
};

Shaped WithShapes(const OpCase& c, DType dtype) {
  Shaped s;
  Draws draws(c.name);
  const auto draw = [&](const Tensor& like) {
    return InType(DrawArg(Real(like.shape()), draws), like.dtype());
  };
  for (size_t i = 0; i < c.args.size(); ++i) {
    if (IsFed(c.args[i])) s.feeds[ArgName(i)] = InType(DrawArg(c.args[i], draws), dtype);
  }
  s.built = Build(c, dtype, /*unknown=*/false);
  const std::vector<Tensor> ys = GraphEvaluation(s.built.forward, s.built.ys).Run(s.feeds);
  for (size_t i = 0; i < ys.size(); ++i) s.feeds[s.built.cotangents[i]] = draw(ys[i]);
  const Twice twice = Differentiated(s.built, s.built.graph);
  s.first = GraphEvaluation(twice.first.graph, twice.first.values).Run(s.feeds);
  for (size_t i = 0; i < s.first.size(); ++i) s.feeds[twice.directions[i]] = draw(s.first[i]);
  s.second = GraphEvaluation(twice.second.graph, twice.second.values).Run(s.feeds);
  return s;
}

void ExpectSameWithout(const Shaped& shaped, Open open, double alike) {
  const Twice twice = Differentiated(shaped.built, WithoutShapes(shaped.built.graph, open));
  const std::vector<std::string>& values = twice.first.values;
  ExpectAlike(GraphEvaluation(twice.first.graph, values).Run(shaped.feeds), shaped.first, alike,
              "gradient");
  ExpectAlike(GraphEvaluation(Plain(twice.first), values).Run(shaped.feeds), shaped.first, alike,
              "gradient in standard operators");
  ExpectAlike(GraphEvaluation(Plain(twice.second), twice.second.values).Run(shaped.feeds),
              shaped.second, alike, "second gradient");
}

void CheckWithoutShapes(const OpCase& c, DType dtype, double alike) {
  if (OnDevice()) GTEST_SKIP() << "the graphs are those of the CPU";
  const Shaped shaped = WithShapes(c, dtype);
  for (const auto& [name, open] : std::map<std::string, Open>{
           {"the first input without a shape", Open::kFirst},
           {"all inputs without shapes", Open::kAll},
           {"all inputs without sizes", Open::kSizes},
       }) {
    SCOPED_TRACE(name);
    const std::string refusal = Refusal(c, open);
    try {
      ExpectSameWithout(shaped, open, alike);
      EXPECT_EQ(refusal, "") << "has a gradient";
    } catch (const std::runtime_error& error) {
      if (refusal.empty()) throw;
      EXPECT_THAT(error.what(), testing::HasSubstr(refusal));
    }
  }
}

class UnrankedTest : public testing::TestWithParam<OpCase> {};

TEST_P(UnrankedTest, Holds) { CheckWithoutShapes(GetParam(), DType::kDouble, kAlike); }

INSTANTIATE_TEST_SUITE_P(Ops, UnrankedTest, testing::ValuesIn(OpCases()),
                         [](const auto& info) { return info.param.name; });

// Those that are of float alone.
class UnrankedSingleTest : public testing::TestWithParam<OpCase> {};

TEST_P(UnrankedSingleTest, Holds) { CheckWithoutShapes(GetParam(), DType::kFloat, kAlikeInFloat); }

INSTANTIATE_TEST_SUITE_P(Ops, UnrankedSingleTest, testing::ValuesIn(SingleCases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace onward::unranked_test
