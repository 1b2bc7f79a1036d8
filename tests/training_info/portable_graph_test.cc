// SPDX-License-Identifier: Apache-2.0
// Steps for other runtimes: nothing computes in 16 bits, statistics are nobody else's, and the
// numbers are the same.
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/str_replace.h"
#include "core/graph/infer.h"
#include "environment/environment.h"
#include "tests/support/text_model.h"
#include "training_info/lower.h"
#include "training_info/surgery/portable.h"

namespace onward::portable_graph_test {

constexpr char kNetwork[] = R"(<ir_version: 10, opset_import: ["" : 22]>
  m (float[2, 3] x, bool deep) => (float[2, 3] y, TYPE[2, 3] z)
  <float[3, 3] W = {0.3, -0.7, 0.11, 1.3, 0.21, -0.4, 0.9, 0.33, 0.77}, float[3] b = {0.1, 0.2, 0.3}> {
    v = Cast <to = CODE> (x)
    w = Cast <to = CODE> (W)
    c = Cast <to = CODE> (b)
    t = Transpose (w)
    p = MatMul (v, t)
    s = Add (p, c)
    shape = Shape (s)
    ones = ConstantOfShape <value = TYPE[1] {1}> (shape)
    z = Add (s, ones)
    r = If (deep) <
      then_branch = d () => (TYPE[2, 3] a) { h = MatMul (s, w)  a = Tanh (h) },
      else_branch = e () => (TYPE[2, 3] k) { k = Identity (s) }>
    y = Cast <to = 1> (r)
  })";

// Nodes that have to do with 16-bit numbers, those of bodies included.
void AddHalves(const Graph& graph, std::set<std::string>* ops) {
  Graph typed = graph;
  ASSERT_TRUE(InferTypes(&typed, DefaultEnvironment().operators()).ok());
  const auto half = [&](const std::vector<std::string>& values) {
    for (const std::string& value : values) {
      const ValueType* type = typed.TypeOf(value);
      if (type == nullptr || !type->is_tensor()) continue;
      if (type->dtype == DType::kBFloat16 || type->dtype == DType::kFloat16) return true;
    }
    return false;
  };
  for (const Node& node : typed.nodes) {
    if (half(node.inputs) || half(node.outputs)) ops->insert(node.op_type);
    ForEachBody(node, [&](const std::string&, const Graph& body) {
      Graph whole = body;
      whole.opsets = typed.opsets;
      for (const std::string& value : CapturedValues(body)) {
        whole.inputs.push_back({value, *typed.TypeOf(value)});
        whole.types[value] = *typed.TypeOf(value);
      }
      AddHalves(whole, ops);
    });
  }
}

TensorMap Outputs(const Graph& graph, bool deep) {
  auto lowered = Lower(graph, DefaultEnvironment());
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  Session session(*std::move(lowered), DefaultEnvironment().compile_options());
  auto out = session.Run({{"x", Floats({2, 3}, {0.5f, -1.3f, 2.7f, 0.01f, 0.99f, -0.37f})},
                          {"deep", Tensor::Scalar<bool>(deep)}},
                         nullptr);
  EXPECT_TRUE(out.ok()) << out.status();
  TensorMap copies;
  for (const auto& [name, value] : *out) copies[name] = value.Clone();
  return copies;
}

class HalvesInFloat : public testing::TestWithParam<DType> {};

TEST_P(HalvesInFloat, KeepsTheNumbers) {
  const std::string text = absl::StrReplaceAll(
      kNetwork,
      {{"TYPE", DTypeName(GetParam())}, {"CODE", std::to_string(static_cast<int>(GetParam()))}});
  const Graph graph = InferenceGraph(TextModel(text)).value();
  std::set<std::string> before, after;
  AddHalves(graph, &before);
  EXPECT_TRUE(before.contains("MatMul") && before.contains("Tanh") && before.contains("Add"));
  Graph wide = graph;
  const absl::Status status = ComputeHalvesInFloat(DefaultEnvironment().operators(), &wide);
  ASSERT_TRUE(status.ok()) << status;
  AddHalves(wide, &after);
  EXPECT_EQ(after, (std::set<std::string>{"Cast", "Identity", "If", "Shape", "Transpose"}));
  for (const bool deep : {false, true}) {
    const TensorMap ours = Outputs(graph, deep), theirs = Outputs(wide, deep);
    for (const auto& [name, value] : ours) {
      EXPECT_EQ(Values(value), Values(theirs.at(name))) << name << ", deep " << deep;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, HalvesInFloat, testing::Values(DType::kFloat16, DType::kBFloat16),
                         [](const auto& info) { return DTypeName(info.param); });

TEST(HalvesIn, AreNotLookedForInFloat) {
  const Graph graph =
      InferenceGraph(
          TextModel("m (float[2] x) => (float[2] y) <float[2] W = {1, 2}> { y = Mul(x, W) }"))
          .value();
  Graph wide = graph;
  ASSERT_TRUE(ComputeHalvesInFloat(DefaultEnvironment().operators(), &wide).ok());
  EXPECT_EQ(ToText(wide), ToText(graph));
}

// M is read by both nodes, D by one.
TEST(TrainedStatistics, AreCopiedWhereOthersReadThem) {
  Graph graph = InferenceGraph(TextModel(R"(
      m (float[2, 3] x) => (float[2, 3] y, float[3] mean, float[3] var, float[3] old)
      <float[3] S = {1, 2, 3}, float[3] B = {0, 0, 1}, float[3] M = {1, 1, 0}, float[3] D = {1, 2, 1}> {
        y, mean, var = BatchNormalization <training_mode = 1> (x, S, B, M, D)
        old = Neg (M)
      })"))
                    .value();
  ASSERT_TRUE(CopyTrainedStatistics(&graph).ok());
  ASSERT_EQ(graph.nodes.size(), 3u);
  EXPECT_TRUE(graph.nodes[0].Is("Max"));
  EXPECT_EQ(graph.nodes[0].inputs, std::vector<std::string>{"M"});
  EXPECT_EQ(graph.nodes[1].inputs,
            (std::vector<std::string>{"x", "S", "B", graph.nodes[0].outputs[0], "D"}));
  EXPECT_EQ(graph.nodes[2].inputs, std::vector<std::string>{"M"});
}

}  // namespace onward::portable_graph_test
