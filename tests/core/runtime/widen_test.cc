// SPDX-License-Identifier: Apache-2.0
// Products of 16-bit floats run on the CPU's float kernels, and give what its plain kernels give.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "core/runtime/compile/compile.h"
#include "core/runtime/compile/evaluate.h"
#include "core/runtime/session.h"
#include "core/tensor/dispatch.h"
#include "environment/environment.h"
#include "tests/support/far_device.h"

namespace onward::widen_test {

using testing::ElementsAre;

struct Call {
  std::string op;
  std::vector<Shape> inputs;
  std::vector<Shape> outputs;
  Attributes attributes = {};
  std::string domain = "";
  int read = 2;  // inputs that are more than a shape
};
void PrintTo(const Call& call, std::ostream* out) { *out << call.op; }

std::string InputName(size_t i) { return "i" + std::to_string(i); }
std::string OutputName(size_t i) { return "o" + std::to_string(i); }

Node NodeOf(const std::string& op, std::vector<std::string> inputs,
            std::vector<std::string> outputs) {
  Node node;
  node.op_type = op;
  node.inputs = std::move(inputs);
  node.outputs = std::move(outputs);
  return node;
}

Graph GraphOf(const Call& call, DType dtype) {
  Graph graph;
  graph.opsets = {{"", kCanonicalOpset}, {std::string(kOnwardDomain), kOnwardVersion}};
  Node node = NodeOf(call.op, {}, {});
  node.domain = call.domain;
  node.attributes = call.attributes;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    node.inputs.push_back(InputName(i));
    graph.inputs.push_back({InputName(i), ValueType::Of(dtype, call.inputs[i])});
  }
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    node.outputs.push_back(OutputName(i));
    graph.outputs.push_back({OutputName(i), ValueType::Of(dtype, call.outputs[i])});
  }
  graph.nodes = {std::move(node)};
  return graph;
}

Tensor Random(DType dtype, const Shape& shape, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  Tensor t(dtype, shape);
  DispatchFloating(dtype, [&]<typename T>() {
    for (int64_t i = 0; i < t.elements(); ++i) t.data<T>()[i] = FromDouble<T>(normal(random));
  });
  return t;
}

TensorMap RandomFeeds(const Graph& graph) {
  TensorMap feeds;
  for (const NamedType& in : graph.FeedInputs()) {
    feeds[in.name] = Random(in.type.dtype, *in.type.StaticShape(), 1 + feeds.size());
  }
  return feeds;
}

std::shared_ptr<const Plan> PlanOf(const Graph& graph, CompileOptions options) {
  for (const NamedType& in : graph.FeedInputs()) {
    options.feeds[in.name] = {in.type.dtype, *in.type.StaticShape()};
  }
  auto plan = Compile(graph, options);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *plan : nullptr;
}

std::shared_ptr<const Plan> PlanOf(const Graph& graph) {
  return PlanOf(graph, DefaultEnvironment().compile_options());
}

std::vector<std::string> StepsOf(const Plan& plan) {
  std::vector<std::string> steps;
  for (const PlanStep& step : plan.compute) {
    if (step.node.op_type != "Reorder") steps.push_back(step.node.op_type);
  }
  return steps;
}

// By the one kernel that takes these types.
std::vector<Tensor> Plain(const Graph& graph, const TensorMap& feeds) {
  const Node& node = graph.nodes[0];
  std::vector<ValueType> types(node.inputs.size());
  std::vector<InputFact> facts;
  for (size_t i = 0; i < types.size(); ++i) {
    const Tensor& value = feeds.at(node.inputs[i]);
    types[i] = ValueType::Of(value.dtype(), value.shape());
    facts.push_back({&types[i], &value});
  }
  std::vector<ValueType> results;
  for (const NamedType& out : graph.outputs) results.push_back(out.type);
  auto values = EvaluateNode(node, facts, results,
                             {&DefaultEnvironment().cpu(), &DefaultEnvironment().operators(),
                              &graph.opsets, RandomState()});
  EXPECT_TRUE(values.ok()) << values.status();
  return *values;
}

// Sums that differ in their last bits as floats are rounded to the same number or to neighbours;
// small ones among large summands are as exact as those.
void ExpectOneRounding(const Tensor& found, const Tensor& expected) {
  ASSERT_EQ(found.dtype(), expected.dtype());
  ASSERT_EQ(found.shape(), expected.shape());
  const double step = found.dtype() == DType::kBFloat16 ? 0x1p-7 : 0x1p-10;
  const std::vector<double> a = *ToDoubles(found), b = *ToDoubles(expected);
  double largest = 0;
  for (const double v : b) largest = std::max(largest, std::abs(v));
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_LE(std::abs(a[i] - b[i]), step * std::abs(b[i]) + 2e-5 * largest) << i;
  }
}

class Widen : public testing::TestWithParam<std::tuple<Call, DType>> {};

TEST_P(Widen, RunsTheFloatKernelAndAgrees) {
  const auto& [call, dtype] = GetParam();
  const Graph graph = GraphOf(call, dtype);
  const auto plan = PlanOf(graph);
  ASSERT_NE(plan, nullptr);
  std::vector<std::string> steps(call.read, "Cast");
  steps.push_back(call.op);
  steps.insert(steps.end(), call.outputs.size(), "Cast");
  EXPECT_EQ(StepsOf(*plan), steps) << plan->ToText();
  for (const PlanStep& step : plan->compute) {
    if (step.node.op_type != call.op) continue;
    for (int i = 0; i < static_cast<int>(step.inputs.size()); ++i) {
      EXPECT_EQ(plan->values[step.inputs[i]].dtype, i < call.read ? DType::kFloat : dtype) << i;
    }
    for (const int id : step.outputs) EXPECT_EQ(plan->values[id].dtype, DType::kFloat);
  }
  const TensorMap feeds = RandomFeeds(graph);
  Executor executor(plan);
  const auto found = executor.Run(feeds, nullptr, {});
  ASSERT_TRUE(found.ok()) << found.status();
  const std::vector<Tensor> expected = Plain(graph, feeds);
  for (size_t i = 0; i < expected.size(); ++i) {
    ExpectOneRounding(found->at(OutputName(i)), expected[i]);
  }
}

TEST_P(Widen, LeavesOtherTypesAlone) {
  const Call& call = std::get<0>(GetParam());
  for (const DType dtype : {DType::kFloat, DType::kDouble}) {
    const auto plan = PlanOf(GraphOf(call, dtype));
    ASSERT_NE(plan, nullptr);
    EXPECT_THAT(StepsOf(*plan), ElementsAre(call.op));
  }
}

const Attributes kPadded = {{"pads", std::vector<int64_t>{1, 1, 1, 1}}};

INSTANTIATE_TEST_SUITE_P(
    Calls, Widen,
    testing::Combine(testing::ValuesIn(std::vector<Call>{
                         {"MatMul", {{6, 40}, {40, 24}}, {{6, 24}}},
                         {"MatMul", {{2, 3, 6, 8}, {2, 3, 8, 5}}, {{2, 3, 6, 5}}},
                         {"Gemm",
                          {{40, 6}, {24, 40}, {24}},
                          {{6, 24}},
                          {{"transA", 1}, {"transB", 1}, {"alpha", 0.5f}},
                          "",
                          3},
                         {"Conv", {{2, 3, 12, 12}, {8, 3, 5, 5}, {8}}, {{2, 8, 8, 8}}, {}, "", 3},
                         {"Conv", {{2, 16, 12, 12}, {16, 16, 3, 3}}, {{2, 16, 12, 12}}, kPadded},
                         {"ConvTranspose", {{2, 16, 6, 6}, {16, 8, 3, 3}}, {{2, 8, 8, 8}}},
                         {"ConvInputGrad",
                          {{2, 16, 12, 12}, {16, 8, 3, 3}, {2, 8, 12, 12}},
                          {{2, 8, 12, 12}},
                          kPadded,
                          std::string(kOnwardDomain)},
                         {"ConvWeightGrad",
                          {{2, 16, 12, 12}, {2, 8, 12, 12}, {16, 8, 3, 3}},
                          {{16, 8, 3, 3}, {16}},
                          kPadded,
                          std::string(kOnwardDomain)},
                         {"ConvWeightGrad",
                          {{2, 8, 12, 12}, {2, 1, 12, 12}, {8, 1, 3, 3}},
                          {{8, 1, 3, 3}},
                          kPadded,
                          std::string(kOnwardDomain)},
                     }),
                     testing::Values(DType::kBFloat16, DType::kFloat16)),
    [](const auto& info) {
      return std::get<0>(info.param).op + "_" + std::string(DTypeName(std::get<1>(info.param))) +
             "_" + std::to_string(info.index);
    });

const Call kProduct{"MatMul", {{6, 40}, {40, 24}}, {{6, 24}}};

TEST(WidenedGraph, CastsConstantsOnce) {
  Graph graph = GraphOf(kProduct, DType::kBFloat16);
  graph.initializers["i1"] = Random(DType::kBFloat16, {40, 24}, 5);
  Node again = graph.nodes[0];
  again.outputs = {"second"};
  graph.nodes.push_back(again);
  graph.outputs.push_back({"second", graph.outputs[0].type});
  const auto plan = PlanOf(graph);
  ASSERT_NE(plan, nullptr);
  EXPECT_THAT(StepsOf(*plan), ElementsAre("Cast", "MatMul", "Cast", "Cast", "MatMul", "Cast"));
  int copies = 0;
  for (const PlanValue& v : plan->values) {
    copies += v.storage == PlanValue::Storage::kConstant && v.dtype == DType::kFloat;
  }
  EXPECT_EQ(copies, 1);
}

// Fused in 16 bits, and taken apart again for want of a kernel.
TEST(WidenedGraph, HoldsInBodies) {
  Graph graph = GraphOf({"Conv", {{1, 8, 12, 12}, {8, 8, 3, 3}}, {{1, 8, 12, 12}}, kPadded},
                        DType::kBFloat16);
  graph.nodes.push_back(NodeOf("Relu", {"o0"}, {"y"}));
  graph.outputs[0].name = "y";
  const auto plan = PlanOf(graph);
  ASSERT_NE(plan, nullptr);
  EXPECT_THAT(StepsOf(*plan), ElementsAre("Cast", "Cast", "Conv", "Cast+Relu"));
}

// (1 + 2^-9) - 1, where the first sum is 1 in bfloat16.
TEST(WidenedGraph, RoundsBetweenProducts) {
  const auto bfloat16 = [](const Shape& shape, const std::vector<double>& values) {
    Tensor t(DType::kBFloat16, shape);
    for (size_t i = 0; i < values.size(); ++i) {
      t.data<BFloat16>()[i] = FromDouble<BFloat16>(values[i]);
    }
    return t;
  };
  Graph graph = GraphOf({"MatMul", {{2, 2}, {2, 1}}, {{2, 1}}}, DType::kBFloat16);
  graph.inputs.push_back({"i2", ValueType::Of(DType::kBFloat16, {1, 2})});
  graph.nodes.push_back(NodeOf("MatMul", {"i2", "o0"}, {"y"}));
  graph.outputs = {{"y", ValueType::Of(DType::kBFloat16, {1, 1})}};
  const auto plan = PlanOf(graph);
  ASSERT_NE(plan, nullptr);
  Executor executor(plan);
  const auto found = executor.Run({{"i0", bfloat16({2, 2}, {1, 0x1p-9, -1, 0})},
                                   {"i1", bfloat16({2, 1}, {1, 1})},
                                   {"i2", bfloat16({1, 2}, {1, 1})}},
                                  nullptr, {});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(static_cast<float>(*found->at("y").data<BFloat16>()), 0);
}

// An accelerator that has a kernel gets the call as it is; for one that has none, casts are made
// where the product is, and what crosses has 16 bits.
TEST(WidenedGraph, IsTheHostsAlone) {
  const auto steps_with = [](const FarOptions& device) {
    EnvironmentOptions options;
    options.accelerators.push_back([&](const Device& cpu) {
      return absl::StatusOr<std::unique_ptr<const Device>>(
          MakeFarDevice(cpu, device, std::make_shared<FarCounters>()));
    });
    const auto environment = Environment::Make(options).value();
    Graph graph = GraphOf(kProduct, DType::kBFloat16);
    const auto plan = PlanOf(graph, environment->compile_options());
    std::vector<std::string> steps;
    for (const PlanStep& step : plan->compute) {
      steps.push_back(step.node.op_type + "@" + plan->DeviceOf(step.device).name());
    }
    return steps;
  };
  EXPECT_THAT(steps_with({}), testing::Contains("MatMul@far"));
  EXPECT_THAT(steps_with({}), testing::Not(testing::Contains(testing::StartsWith("Cast"))));
  EXPECT_THAT(steps_with({.without = {"MatMul"}}),
              ElementsAre("Cast@cpu", "Cast@cpu", "MatMul@cpu", "Cast@cpu"));
}

}  // namespace onward::widen_test
