// SPDX-License-Identifier: Apache-2.0
// What is checked of a row, and of a graph written as text.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/graph/infer.h"
#include "core/onnx_io/model.h"
#include "tests/support/case_draws.h"
#include "tests/support/case_graph.h"
#include "tests/support/graph_case.h"
#include "tests/support/op_case.h"
#include "tests/support/test_environment.h"
#include "tests/support/text_model.h"
#include "training_info/lower.h"

namespace onward {
namespace {

constexpr double kStep = 1e-5;             // of the central differences
constexpr double kDifferences = 1e-6;      // their accuracy in double
constexpr double kSameFormula = 1e-9;      // double against double
constexpr double kSinglePrecision = 1e-4;  // float against double

void ExpectNear(const Tensor& actual, const Tensor& expected, double tolerance,
                const std::string& what) {
  ASSERT_EQ(actual.shape(), expected.shape()) << what;
  const std::vector<double> a = Must(ToDoubles(actual)), e = Must(ToDoubles(expected));
  double scale = 1;
  for (const double v : e) scale = std::max(scale, std::abs(v));
  for (size_t i = 0; i < a.size(); ++i) {
    // Not-a-number fails too.
    ASSERT_TRUE(std::abs(a[i] - e[i]) <= tolerance * scale)
        << what << ": element " << i << " of " << expected.shape().ToString() << " is " << a[i]
        << ", expected " << e[i];
  }
}

// d(scalar)/dx for each x, element by element.
std::vector<Tensor> CentralDifferences(const Graph& graph, const std::string& scalar,
                                       const std::vector<std::string>& xs, const TensorMap& feeds) {
  GraphEvaluation evaluation(graph, {scalar});
  std::vector<Tensor> slopes;
  for (const std::string& name : xs) {
    TensorMap moved = feeds;
    Tensor x = feeds.at(name).Clone(), slope(DType::kDouble, x.shape());
    moved[name] = x;
    for (int64_t i = 0; i < x.elements(); ++i) {
      double& element = x.data<double>()[i];
      const double here = element;
      element = here + kStep;
      const double above = evaluation.Run(moved)[0].data<double>()[0];
      element = here - kStep;
      const double below = evaluation.Run(moved)[0].data<double>()[0];
      element = here;
      slope.data<double>()[i] = (above - below) / (2 * kStep);
    }
    slopes.push_back(std::move(slope));
  }
  return slopes;
}

// The gradients that are expected. On the CPU those of the differences; on another device, where
// so many runs would take long, what the CPU computes and the same row compares with them there.
std::vector<Tensor> ExpectedGradients(const Gradients& gradients, const std::string& scalar,
                                      const std::vector<std::string>& xs, const TensorMap& feeds,
                                      const Graph& graph) {
  if (!OnDevice()) return CentralDifferences(graph, scalar, xs, feeds);
  return GraphEvaluation(gradients.graph, gradients.values, DefaultEnvironment()).Run(feeds);
}

void ExpectAllNear(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected,
                   const std::vector<std::string>& names, double tolerance,
                   const std::string& what) {
  for (size_t i = 0; i < names.size(); ++i) {
    ExpectNear(actual[i], expected[i], tolerance, absl::StrCat(what, " of ", names[i]));
  }
}

void ExpectInferredTypes(const OpCase& c, const Built& built, const std::vector<Tensor>& ys,
                         bool unknown) {
  for (size_t i = 0; i < ys.size(); ++i) {
    const ValueType actual = ValueType::Of(ys[i].dtype(), ys[i].shape());
    const ValueType* inferred = built.graph.TypeOf(built.ys[i]);
    ASSERT_NE(inferred, nullptr);
    if (!unknown && !c.data_dependent) {
      EXPECT_EQ(inferred->ToString(), actual.ToString());
      continue;
    }
    EXPECT_EQ(inferred->dtype, actual.dtype);
    if (!inferred->has_rank) continue;
    ASSERT_EQ(inferred->rank(), actual.rank());
    for (int d = 0; d < actual.rank(); ++d) {
      if (!inferred->dims[d].known()) continue;
      EXPECT_EQ(inferred->dims[d].value, actual.dims[d].value);
    }
  }
}

void ExpectStandard(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    EXPECT_EQ(node.domain, "") << node.Describe();
    ForEachBody(node, [](const std::string&, const Graph& body) { ExpectStandard(body); });
  }
}

void CheckInlined(const Gradients& gradients, const std::vector<std::string>& xs,
                  const TensorMap& feeds, const std::vector<Tensor>& expected) {
  Graph plain = gradients.graph;
  Must(ExpandForeignCalls(DefaultEnvironment(), &plain));
  Graph inlined = Must(InlineOwnFunctions(plain, DefaultEnvironment()));
  inlined.opsets = {{"", kCanonicalOpset}};
  ExpectStandard(inlined);
  for (const Finding& finding : CheckGraph(inlined)) ADD_FAILURE() << finding.ToString();
  ExpectAllNear(GraphEvaluation(inlined, gradients.values).Run(feeds), expected, xs, kSameFormula,
                "gradient with functions inlined");
}

// h = sum of (gradient of each x) * (a random direction); its gradient by the xs
// and by the cotangents.
void CheckTwice(const Built& built, Gradients first, TensorMap feeds,
                const std::vector<Tensor>& gradients, Draws& draws,
                double tolerance = kDifferences) {
  GraphBuilder b(&first.graph, &DefaultEnvironment().operators(), "h");
  std::vector<Expr> values;
  for (const std::string& g : first.values) values.push_back(b.Value(g));
  std::vector<std::string> directions;
  const std::string h = WeightedSum(b, values, "v", &directions).name();
  Must(b.status());
  for (size_t i = 0; i < directions.size(); ++i) {
    feeds[directions[i]] = DrawArg(Real(gradients[i].shape()), draws);
  }
  std::vector<std::string> xs = built.xs;
  xs.insert(xs.end(), built.cotangents.begin(), built.cotangents.end());
  const Gradients second = Derive(first.graph, h, xs);
  const std::vector<Tensor> actual = GraphEvaluation(second.graph, second.values).Run(feeds);
  ExpectAllNear(actual, ExpectedGradients(second, h, xs, feeds, first.graph), xs, tolerance,
                "second gradient");
}

void CheckDeclared(const OpCase& c, bool unknown) {
  Draws draws(c.name);
  TensorMap feeds;
  for (size_t i = 0; i < c.args.size(); ++i) {
    if (IsFed(c.args[i])) feeds[ArgName(i)] = DrawArg(c.args[i], draws);
  }
  const Built built = Build(c, DType::kDouble, unknown);
  const std::vector<Tensor> ys = GraphEvaluation(built.forward, built.ys).Run(feeds);
  ExpectInferredTypes(c, built, ys, unknown);
  for (size_t i = 0; i < ys.size(); ++i) {
    feeds[built.cotangents[i]] = DrawArg(Real(ys[i].shape()), draws);
  }

  const Built single = Build(c, DType::kFloat, unknown);
  const TensorMap single_feeds = InType(feeds, DType::kFloat);
  ExpectAllNear(GraphEvaluation(single.graph, single.ys).Run(single_feeds), ys, single.ys,
                kSinglePrecision, "float result");

  const Gradients gradients = Derive(built.graph, built.loss, built.xs);
  const std::vector<Tensor> dxs = GraphEvaluation(gradients.graph, gradients.values).Run(feeds);
  ExpectAllNear(dxs, ExpectedGradients(gradients, built.loss, built.xs, feeds, gradients.graph),
                built.xs, kDifferences, "gradient");
  CheckInlined(gradients, built.xs, feeds, dxs);

  const Gradients in_float = Derive(single.graph, single.loss, single.xs);
  ExpectAllNear(GraphEvaluation(in_float.graph, in_float.values).Run(single_feeds), dxs, single.xs,
                kSinglePrecision, "float gradient");
  CheckTwice(built, gradients, feeds, dxs, draws);
}

}  // namespace

void CheckGraphCase(const GraphCase& c) {
  Draws draws(c.name);
  Built built;
  built.graph = Must(RunnableGraph(TextModel(c.text), DefaultEnvironment()));
  Must(InferTypes(&built.graph, DefaultEnvironment().operators()));
  TensorMap feeds = c.given;
  for (const NamedType& in : built.graph.inputs) {
    if (in.type.dtype != DType::kDouble || !in.type.is_tensor()) continue;
    built.xs.push_back(in.name);
    if (!feeds.contains(in.name)) {
      feeds[in.name] = DrawArg(Real(in.type.StaticShape().value()), draws);
    }
  }
  for (const NamedType& out : built.graph.outputs) built.ys.push_back(out.name);
  const std::vector<Tensor> ys = GraphEvaluation(built.graph, built.ys).Run(feeds);
  GraphBuilder b(&built.graph, &DefaultEnvironment().operators(), "loss");
  std::vector<Expr> values;
  for (const std::string& y : built.ys) values.push_back(b.Value(y));
  built.loss = WeightedSum(b, values, "cotangent", &built.cotangents).name();
  Must(b.status());
  for (size_t i = 0; i < ys.size(); ++i) {
    feeds[built.cotangents[i]] = DrawArg(Real(ys[i].shape()), draws);
  }
  const Gradients gradients = Derive(built.graph, built.loss, built.xs);
  const std::vector<Tensor> dxs = GraphEvaluation(gradients.graph, gradients.values).Run(feeds);
  ExpectAllNear(dxs, ExpectedGradients(gradients, built.loss, built.xs, feeds, gradients.graph),
                built.xs, c.tolerance, "gradient");
  CheckInlined(gradients, built.xs, feeds, dxs);
  if (c.twice) CheckTwice(built, gradients, feeds, dxs, draws, c.tolerance);
}

void CheckCase(const OpCase& c) {
  CheckDeclared(c, /*unknown=*/false);
  if (c.unknown.empty() || testing::Test::HasFatalFailure()) return;
  SCOPED_TRACE("first dimension unknown");
  CheckDeclared(c, /*unknown=*/true);
}

}  // namespace onward
