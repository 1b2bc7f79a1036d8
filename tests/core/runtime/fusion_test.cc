// SPDX-License-Identifier: Apache-2.0
// What compiling joins, and that the joined steps give what the nodes give one
// by one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <map>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "core/graph/infer.h"
#include "core/graph/inline.h"
#include "core/onnx_io/model.h"
#include "core/runtime/compile/evaluate.h"
#include "core/runtime/rewrite/fuse.h"
#include "core/runtime/session.h"
#include "environment/environment.h"
#include "tests/support/text_model.h"
#include "training_info/lower.h"

namespace onward::fusion_test {

struct Row {
  std::string name, text;
  std::vector<std::string> steps;
  double tolerance = 2e-5;  // of the largest value
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

Tensor Random(const Shape& shape, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  Tensor t(DType::kFloat, shape);
  for (int64_t i = 0; i < t.elements(); ++i) t.data<float>()[i] = normal(random);
  return t;
}

// Inputs other than x, z, q and k stand for weights: they become initializers
// with random values.
Graph GraphOf(const std::string& text) {
  auto graph = RunnableGraph(TextModel(text), DefaultEnvironment());
  EXPECT_TRUE(graph.ok()) << graph.status();
  uint64_t seed = 100;
  std::vector<NamedType> fed;
  for (const NamedType& in : graph->inputs) {
    if (in.name == "x" || in.name == "z" || in.name == "q" || in.name == "k") {
      fed.push_back(in);
      continue;
    }
    Tensor value = Random(*in.type.StaticShape(), seed++);
    for (int64_t i = 0; in.name == "var" && i < value.elements(); ++i) {
      value.data<float>()[i] = std::abs(value.data<float>()[i]) + 0.5f;
    }
    graph->initializers.emplace(in.name, std::move(value));
  }
  graph->inputs = std::move(fed);
  return *graph;
}

// What every node computes by its own kernel; fused operators by their bodies.
TensorMap OneByOne(const Graph& graph, const TensorMap& feeds) {
  EvaluateContext context{
      &DefaultEnvironment().cpu(), &DefaultEnvironment().operators(), &graph.opsets, {}};
  TensorMap values = feeds;
  for (const auto& [name, tensor] : graph.initializers) values[name] = tensor;
  std::deque<Node> work(graph.nodes.begin(), graph.nodes.end());
  for (; !work.empty(); work.pop_front()) {
    const Node node = work.front();
    std::vector<Tensor> in;
    for (const std::string& v : node.inputs) in.push_back(v.empty() ? Tensor() : values.at(v));
    std::vector<ValueType> types(in.size());
    std::vector<InputFact> facts(in.size());
    for (size_t i = 0; i < in.size(); ++i) {
      types[i] = ValueType::Of(in[i].dtype(), in[i].shape());
      if (!node.inputs[i].empty()) facts[i] = {&types[i], &in[i]};
    }
    if (node.op_type.starts_with("Fused") || node.op_type.find("Rows") != std::string::npos) {
      auto body = DefaultEnvironment().operators().FunctionBody(node, facts, graph.opsets);
      NameScope names(graph);
      auto nodes = ExpandCall(**body, node, node.outputs[0] + "__", &names);
      EXPECT_TRUE(nodes.ok()) << nodes.status();
      work.insert(work.begin() + 1, nodes->begin(), nodes->end());
      continue;
    }
    auto out_types = DefaultEnvironment().operators().Infer(node, facts, graph.opsets);
    EXPECT_TRUE(out_types.ok()) << out_types.status();
    auto out = EvaluateNode(node, facts, *out_types, context);
    EXPECT_TRUE(out.ok()) << out.status();
    for (size_t i = 0; i < node.outputs.size(); ++i) values[node.outputs[i]] = (*out)[i];
  }
  return values;
}

TensorMap RandomFeeds(const Graph& graph) {
  TensorMap feeds;
  uint64_t seed = 1;
  for (const NamedType& in : graph.FeedInputs()) {
    feeds[in.name] = Random(*in.type.StaticShape(), seed++);
  }
  return feeds;
}

void ExpectAgreement(const TensorMap& results, const TensorMap& expected, double tolerance) {
  for (const auto& [name, tensor] : results) {
    const Tensor& want = expected.at(name);
    ASSERT_EQ(tensor.shape(), want.shape());
    double worst = 0, largest = 0;
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      worst = std::max<double>(worst, std::abs(tensor.data<float>()[i] - want.data<float>()[i]));
      largest = std::max<double>(largest, std::abs(want.data<float>()[i]));
    }
    EXPECT_LE(worst, tolerance * largest) << name;
  }
}

class Fusion : public testing::TestWithParam<Row> {};

TEST_P(Fusion, JoinsAndAgrees) {
  const Graph graph = GraphOf(GetParam().text);
  const TensorMap feeds = RandomFeeds(graph);
  CompileOptions options;
  options.device = &DefaultEnvironment().cpu();
  options.operators = &DefaultEnvironment().operators();
  for (const auto& [name, tensor] : feeds) options.feeds[name] = {tensor.dtype(), tensor.shape()};
  auto plan = Compile(graph, options);
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::vector<std::string> steps;
  for (const PlanStep& step : (*plan)->compute) {
    if (step.node.op_type != "Reorder") steps.push_back(step.node.op_type);
  }
  EXPECT_EQ(steps, GetParam().steps) << (*plan)->ToText();
  Executor executor(*plan);
  auto results = executor.Run(feeds, nullptr, {});
  ASSERT_TRUE(results.ok()) << results.status();
  ExpectAgreement(*results, OneByOne(graph, feeds), GetParam().tolerance);
}

TEST_P(Fusion, BodiesSayTheSame) {
  const Graph graph = GraphOf(GetParam().text);
  const TensorMap feeds = RandomFeeds(graph), expected = OneByOne(graph, feeds);
  Graph joined = graph;
  ASSERT_TRUE(InferTypes(&joined, DefaultEnvironment().operators()).ok());
  FuseFollowers({}, nullptr, &joined);
  FuseBatchNormalization({}, &joined);
  UpdateRowsOnly({}, DefaultEnvironment().operators(), &joined);
  JoinPads({}, &joined);
  const TensorMap values = OneByOne(joined, feeds);
  TensorMap results;
  for (const NamedType& out : graph.outputs) results[out.name] = values.at(out.name);
  ExpectAgreement(results, expected, 2e-5);
}

const std::vector<Row>& Rows() {
  static const auto* rows = new std::vector<Row>{
      {"Elementwise",
       R"(g (float[4, 64] x, float[64] b) => (float[4, 64] y)
          { a = Mul(x, x) c = Add(a, b) d = Tanh(c) y = Sub(d, x) })",
       {"Mul+Add+Tanh+Sub"}},
      {"ElementwiseKeepsWhatOthersRead",
       R"(g (float[4, 64] x) => (float[4, 64] y, float[4] s)
          <int64[1] axis = {1}> { a = Mul(x, x) y = Exp(a) s = ReduceSum <keepdims = 0> (a, axis) })",
       {"Mul+Exp", "ReduceSum"}},
      {"ElementwiseWithFlags",
       R"(g (float[4, 64] x, float[4, 64] z) => (float[4, 64] y)
          { f = Greater(x, z) a = Add(x, z) y = Where(f, a, x) })",
       {"Greater+Add+Where"}},
      {"ElementwiseLeavesEarlyReadersAlone",
       R"(g (float[4, 64] x) => (float[4, 64] y)
          <int64[1] axis = {1}> { a = Mul(x, x) s = ReduceSum(a, axis) y = Div(a, s) })",
       {"Mul", "ReduceSum", "Div"}},
      {"ElementwiseLeavesViewsAlone",
       R"(g (float[4, 1] x, float[4, 1] z) => (float[4, 1] y)
          <int64[1] axis = {1}> { a = Mul(x, z) s = ReduceSum(a, axis) b = Mul(x, s) y = Sub(a, b) })",
       {"Mul", "Mul+Sub"}},
      {"PiecesOfAWholeAreJoined",
       R"(g (float[3, 4] x, float[3, 1] z, float[3, 5] u) => (float[3, 10] y)
          <int64[1] axis = {1}, int64[2] px = {1, 5}, int64[2] pz = {0, 9}, int64[2] pu = {5, 0}>
          { a = Pad(x, px, , axis) b = Pad(z, pz, , axis) c = Pad(u, pu, , axis) s = Add(c, a) y = Add(s, b) })",
       {"Concat"}},
      {"PiecesThatOverlapAreSummed",
       R"(g (float[3, 4] x, float[3, 4] z) => (float[3, 6] y)
          <int64[4] px = {0, 0, 0, 2}, int64[4] pz = {0, 2, 0, 0}>
          { a = Pad(x, px) b = Pad(z, pz) y = Add(a, b) })",
       {"Pad", "Pad", "Add"}},
      {"PiecesWithAGapAreSummed",
       R"(g (float[3, 2] x, float[3, 2] z) => (float[3, 5] y)
          <int64[4] px = {0, 0, 0, 3}, int64[4] pz = {0, 3, 0, 0}>
          { a = Pad(x, px) b = Pad(z, pz) y = Add(a, b) })",
       {"Pad", "Pad", "Add"}},
      {"ConvNormRelu",
       R"(g (float[2, 8, 9, 9] x, float[16, 8, 1, 1] w, float[16] s, float[16] b, float[16] m, float[16] var) => (float[2, 16, 9, 9] y)
          { c = Conv(x, w) n = BatchNormalization(c, s, b, m, var) y = Relu(n) })",
       {"FusedConv"}},
      {"ConvNorm",
       R"(g (float[2, 8, 9, 9] x, float[16, 8, 3, 3] w, float[16] kb, float[16] s, float[16] b, float[16] m, float[16] var) => (float[2, 16, 9, 9] y)
          { c = Conv <pads = [1, 1, 1, 1]> (x, w, kb) y = BatchNormalization(c, s, b, m, var) })",
       {"Conv"}},
      {"ConvResidualRelu",
       R"(g (float[2, 16, 9, 9] x, float[16, 16, 3, 3] w, float[16] kb) => (float[2, 16, 9, 9] y)
          { c = Conv <pads = [1, 1, 1, 1]> (x, w, kb) a = Add(x, c) y = Relu(a) })",
       {"FusedConv"}},
      {"ConvClip",
       R"(g (float[2, 8, 9, 9] x, float[8, 1, 3, 3] w) => (float[2, 8, 9, 9] y)
          <float low = {0}, float high = {6}> { c = Conv <group = 8, pads = [1, 1, 1, 1]> (x, w) y = Clip(c, low, high) })",
       {"FusedConv"}},
      {"ConvReadTwiceStays",
       R"(g (float[2, 8, 9, 9] x, float[8, 8, 1, 1] w) => (float[2, 8, 9, 9] y, float[2, 8, 9, 9] c)
          { c = Conv(x, w) y = Relu(c) })",
       {"Conv", "Relu"}},
      {"BatchNormRelu",
       R"(g (float[3, 5, 4, 4] x, float[5] s, float[5] b, float[5] m, float[5] var) => (float[3, 5, 4, 4] y, float[5] rm, float[5] rv)
          { n, rm, rv = BatchNormalization <training_mode = 1> (x, s, b, m, var) y = Relu(n) })",
       {"FusedBatchNormalization"}},
      // Channels beyond 12 of the blocked layout must stay zero: the second convolution sums them
      // up.
      {"BatchNormClipInBlocks",
       R"(g (float[2, 16, 6, 6] x, float[12, 16, 1, 1] w, float[12] s, float[12] b, float[12] m, float[12] var, float[16, 12, 1, 1] v) => (float[2, 16, 6, 6] y, float[12] rm)
          <float low = {0.5}, float high = {2}>
          { c = Conv(x, w) n, rm, rv = BatchNormalization <training_mode = 1> (c, s, b, m, var) a = Clip(n, low, high) y = Conv(a, v) })",
       {"Conv", "FusedBatchNormalization", "Conv"}},
      {"BatchNormResidualRelu",
       R"(g (float[3, 5, 4, 4] x, float[3, 5, 4, 4] z, float[5] s, float[5] b, float[5] m, float[5] var) => (float[3, 5, 4, 4] y, float[5] rm)
          { n, rm, rv = BatchNormalization <training_mode = 1> (x, s, b, m, var) a = Add(z, n) y = Relu(a) })",
       {"FusedBatchNormalization"}},
      {"BatchNormReluGrad",
       R"(<ir_version: 8, opset_import: ["" : 18, "ai.onward" : 1]>
          g (float[3, 5, 4, 4] x, float[3, 5, 4, 4] z, float[5] s, float[5] b, float[5] m, float[5] var)
          => (float[3, 5, 4, 4] y, float[3, 5, 4, 4] dx, float[5] ds, float[5] db)
          { n, rm, rv = BatchNormalization <training_mode = 1> (x, s, b, m, var) y = Relu(n)
            dn = ai.onward.ReluGrad(z, y) dx, ds, db = ai.onward.BatchNormalizationGrad(dn, x, s) })",
       {"FusedBatchNormalization", "FusedBatchNormalizationGrad"}},
      {"BatchNormClipGrad",
       R"(<ir_version: 8, opset_import: ["" : 18, "ai.onward" : 1]>
          g (float[3, 5, 4, 4] x, float[3, 5, 4, 4] z, float[5] s, float[5] b, float[5] m, float[5] var)
          => (float[3, 5, 4, 4] y, float[3, 5, 4, 4] dx, float[5] ds, float[5] db) <float low = {-0.5}, float high = {0.7}>
          { n, rm, rv = BatchNormalization <training_mode = 1> (x, s, b, m, var) y = Clip(n, low, high)
            dn = ai.onward.ClipGrad(z, n, y) dx, ds, db = ai.onward.BatchNormalizationGrad(dn, x, s) })",
       {"FusedBatchNormalization", "FusedBatchNormalizationGrad"}},
      // The gradient of another normalisation keeps the input of Clip alive.
      {"BatchNormClipGradReadElsewhere",
       R"(<ir_version: 8, opset_import: ["" : 18, "ai.onward" : 1]>
          g (float[3, 5, 4, 4] x, float[3, 5, 4, 4] z, float[5] s, float[5] b, float[5] m, float[5] var)
          => (float[3, 5, 4, 4] y, float[3, 5, 4, 4] dn) <float low = {-0.5}, float high = {0.7}>
          { n, rm, rv = BatchNormalization <training_mode = 1> (x, s, b, m, var) y = Clip(n, low, high)
            dn = ai.onward.ClipGrad(z, n, y) })",
       {"BatchNormalization", "Clip+ClipGrad"}},
      {"BatchNormOfRunningStatistics",
       R"(g (float[3, 5, 4, 4] x, float[5] z) => (float[3, 5, 4, 4] y) <float[5] one = {1, 1, 1, 1, 1}>
          { v = Mul(z, z) var = Add(v, one) n = BatchNormalization(x, z, z, z, var) y = Relu(n) })",
       {"Mul+Add", "FusedBatchNormalization"}},
      // Only the rows that are named change, and by the same bits.
      {"SgdOfFewRows",
       R"(<ir_version: 8, opset_import: ["" : 18, "ai.onward" : 1]>
          g (float[2, 2, 3] x, float[9, 3] w) => (float[9, 3] y) <int64[2, 2] at = {5, 2, -4, 0}, float r = {0.1}>
          { d = ai.onward.GatherGrad(x, at, w) y = ai.onward.SgdStep(r, w, d) })",
       {"GatherGradRows", "SgdRowsStep"},
       0},
      {"AdagradOfFewRows",
       R"(<ir_version: 8, opset_import: ["" : 18, "ai.onward" : 1, "ai.onnx.preview.training" : 1]>
          g (float[4, 3] x, float[9, 3] w, float[9, 3] var) => (float[9, 3] y, float[9, 3] h)
          <int64[4] at = {1, 1, 1, 8}, float r = {0.1}, int64 t = {3}>
          { d = ai.onward.GatherGrad(x, at, w) y, h = ai.onnx.preview.training.Adagrad(r, t, w, d, var) })",
       {"GatherGradRows", "AdagradRowsStep"},
       0},
      {"SgdOfManyRows",
       R"(<ir_version: 8, opset_import: ["" : 18, "ai.onward" : 1]>
          g (float[4, 3] x, float[7, 3] w) => (float[7, 3] y) <int64[4] at = {5, 2, 3, 0}, float r = {0.1}>
          { d = ai.onward.GatherGrad(x, at, w) y = ai.onward.SgdStep(r, w, d) })",
       {"GatherGrad", "SgdStep"}},
      {"WeightDecayMovesEveryRow",
       R"(<ir_version: 8, opset_import: ["" : 18, "ai.onward" : 1]>
          g (float[2, 3] x, float[7, 3] w) => (float[7, 3] y) <int64[2] at = {5, 2}, float r = {0.1}>
          { d = ai.onward.GatherGrad(x, at, w) y = ai.onward.SgdStep <weight_decay = 0.1> (r, w, d) })",
       {"GatherGrad", "SgdStep"}},
      // Channels beyond 12 of the blocked layout must stay zero here too.
      {"PoolOfConvReluAndGradient",
       R"(<ir_version: 8, opset_import: ["" : 18, "ai.onward" : 1]>
          g (float[2, 16, 6, 6] x, float[2, 12, 3, 3] z, float[12, 16, 1, 1] w, float[16, 12, 1, 1] v)
          => (float[2, 12, 3, 3] y, float[2, 16, 6, 6] dx)
          { c = Conv(x, w) r = Relu(c) y = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (r)
            g = ai.onward.MaxPoolGrad <kernel_shape = [2, 2], strides = [2, 2]> (z, r)
            dr = ai.onward.ReluGrad(g, r) dx = Conv(dr, v) })",
       {"FusedConv", "MaxPoolWinners", "MaxPoolWinnersGrad", "Conv"}},
      {"PoolOfReluAndGradient",
       R"(<ir_version: 8, opset_import: ["" : 18, "ai.onward" : 1]>
          g (float[2, 19, 7] x, float[2, 19, 3] z) => (float[2, 19, 3] y, float[2, 19, 7] dx)
          { r = Relu(x) y = MaxPool <kernel_shape = [2], strides = [2]> (r)
            g = ai.onward.MaxPoolGrad <kernel_shape = [2], strides = [2]> (z, r) dx = ai.onward.ReluGrad(g, r) })",
       {"Relu", "MaxPoolWinners", "MaxPoolWinnersGrad"},
       0},
      {"OverlappingPoolAndGradient",
       R"(<ir_version: 8, opset_import: ["" : 18, "ai.onward" : 1]>
          g (float[2, 5, 7, 8] x, float[2, 5, 4, 4] z) => (float[2, 5, 4, 4] y, float[2, 5, 7, 8] dx)
          { y = MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (x)
            dx = ai.onward.MaxPoolGrad <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (z, x) })",
       {"MaxPoolWinners", "MaxPoolWinnersGrad"},
       0},
      {"GradientOfAnotherPool",
       R"(<ir_version: 8, opset_import: ["" : 18, "ai.onward" : 1]>
          g (float[2, 5, 7, 8] x, float[2, 5, 7, 8] z) => (float[2, 5, 4, 4] y, float[2, 5, 7, 8] dx)
          { y = MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (x)
            dx = ai.onward.MaxPoolGrad <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (z, x) })",
       {"MaxPool", "MaxPoolGrad"},
       0},
      {"WindowsWithMoreTapsThanAByteNumbers",
       R"(<ir_version: 8, opset_import: ["" : 18, "ai.onward" : 1]>
          g (float[1, 2, 300] x, float[1, 2, 1] z) => (float[1, 2, 1] y, float[1, 2, 300] dx)
          { y = MaxPool <kernel_shape = [300]> (x) dx = ai.onward.MaxPoolGrad <kernel_shape = [300]> (z, x) })",
       {"MaxPool", "MaxPoolGrad"},
       0},
      {"MatMulBiasResidual",
       R"(g (float[2, 5, 8] x, float[2, 5, 12] z, float[8, 12] w, float[12] b) => (float[2, 5, 12] y)
          { p = MatMul(x, w) a = Add(b, p) y = Add(a, z) })",
       {"FusedMatMul"}},
      // What is added may be larger than what it is added to.
      {"ConvSpreadByItsResidual",
       R"(g (float[2, 8, 1, 1] x, float[2, 16, 4, 4] z, float[16, 8, 1, 1] w) => (float[2, 16, 4, 4] y)
          { c = Conv(x, w) a = Add(z, c) y = Relu(a) })",
       {"Conv", "Add", "Relu"}},
      {"BatchNormSpreadByItsResidual",
       R"(g (float[3, 5, 1, 1] x, float[3, 5, 4, 4] z, float[5] s, float[5] b, float[5] m, float[5] var) => (float[3, 5, 4, 4] y, float[5] rm)
          { n, rm, rv = BatchNormalization <training_mode = 1> (x, s, b, m, var) y = Add(z, n) })",
       {"BatchNormalization", "Add"}},
      {"MatMulSpreadByItsBias",
       R"(g (float[2, 5, 8] x, float[8, 1] w, float[12] b) => (float[2, 5, 12] y)
          { p = MatMul(x, w) y = Add(b, p) })",
       {"MatMul", "Add"}},
      {"GemmSpreadByItsResidual",
       R"(g (float[5, 8] x, float[5, 12] z, float[1, 8] w) => (float[5, 12] y)
          { p = Gemm <transB = 1> (x, w) y = Add(z, p) })",
       {"Gemm", "Add"}},
      {"GemmRelu",
       R"(g (float[5, 8] x, float[12, 8] w, float[12] b) => (float[5, 12] y)
          { p = Gemm <transB = 1> (x, w, b) y = Relu(p) })",
       {"FusedGemm"}},
      {"TransposesCostNothing",
       R"(g (float[2, 6, 3, 8] q, float[2, 6, 3, 8] k) => (float[2, 6, 6, 3] y)
          { a = Transpose <perm = [0, 2, 1, 3]> (q) b = Transpose <perm = [0, 2, 3, 1]> (k)
            p = MatMul(a, b) y = Transpose <perm = [0, 2, 3, 1]> (p) })",
       {"MatMul"}},
      {"TransposedWeights",
       R"(g (float[4, 8] x) => (float[4, 12] y)
          { w = Transpose(x) p = MatMul(x, w) a = Concat <axis = 1> (p, x) y = Identity(a) })",
       {"MatMul", "Concat"}},
  };
  return *rows;
}

INSTANTIATE_TEST_SUITE_P(Graphs, Fusion, testing::ValuesIn(Rows()),
                         [](const auto& info) { return info.param.name; });

}  // namespace onward::fusion_test
