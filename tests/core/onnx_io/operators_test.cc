// SPDX-License-Identifier: Apache-2.0
// What the standard's schemas say of a node: types, and bodies of functions.
#include "core/onnx_io/operators.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "core/graph/constant.h"
#include "core/onnx_io/model.h"
#include "core/runtime/session.h"
#include "environment/environment.h"
#include "tests/support/text_model.h"
#include "training_info/lower.h"

namespace onward::operators_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The body of MeanVarianceNormalization is written for opset 13, where axes are
// attributes; the newer ReduceMean takes them as an input.
TEST(Operators, RaisedBodiesKeepTheCallsAttributes) {
  Node node;
  node.op_type = "MeanVarianceNormalization";
  node.inputs = {"x"};
  node.outputs = {"y"};
  node.attributes["axes"] = std::vector<int64_t>{2};
  const ValueType type = ValueType::Of(DType::kFloat, Shape{2, 3, 4});
  const InputFact fact{&type, nullptr};
  auto body =
      DefaultEnvironment().operators().FunctionBody(node, {&fact, 1}, {{"", kCanonicalOpset}});
  ASSERT_TRUE(body.ok()) << body.status();
  ASSERT_TRUE(body->has_value());
  int reductions = 0;
  for (const Node& inner : (*body)->body.nodes) {
    if (!inner.Is("ReduceMean")) continue;
    ++reductions;
    ASSERT_EQ(inner.inputs.size(), 2u);
    for (const Node& source : (*body)->body.nodes) {
      if (source.outputs != std::vector<std::string>{inner.inputs[1]}) continue;
      const std::optional<Tensor> axes = ConstantValue(source);
      ASSERT_TRUE(axes.has_value());
      ASSERT_EQ(axes->elements(), 1);
      EXPECT_EQ(axes->data<int64_t>()[0], 2);
    }
  }
  EXPECT_GT(reductions, 0);
}

// After If, Loop or Scan a value has no type; what reads it has none either.
TEST(Operators, UntypedInputsGiveUntypedOutputs) {
  Node node;
  node.op_type = "Relu";
  node.inputs = {"x"};
  node.outputs = {"y"};
  const InputFact unknown{};
  auto types = DefaultEnvironment().operators().Infer(node, {&unknown, 1}, {{"", kCanonicalOpset}});
  ASSERT_TRUE(types.ok()) << types.status();
  EXPECT_EQ((*types)[0].dtype, DType::kUndefined);
}

// y of a model in text, raised from its opset and run.
std::vector<double> RaisedResult(const std::string& text, const TensorMap& feeds) {
  auto graph = InferenceGraph(TextModel(text));
  EXPECT_TRUE(graph.ok()) << graph.status();
  auto raised = RaiseOpset(*graph, kCanonicalOpset);
  EXPECT_TRUE(raised.ok()) << raised.status();
  if (!raised.ok()) return {};
  CompileOptions options;
  options.device = &DefaultEnvironment().cpu();
  options.operators = &DefaultEnvironment().operators();
  auto values = Session(*raised, options).Run(feeds, nullptr);
  EXPECT_TRUE(values.ok()) << values.status();
  return values.ok() ? Values(values->at("y")) : std::vector<double>();
}

// Raising the old broadcast wants the shape of r, which the file does not give.
TEST(Operators, OldBroadcastOfAnInnerValueIsRaised) {
  EXPECT_EQ(
      RaisedResult(R"(<ir_version: 3, opset_import: ["" : 6]>
                            g (float[2, 3] x, float[3] b) => (float[2, 3] y)
                            { r = Relu(x) y = Add <broadcast = 1> (r, b) })",
                   {{"x", Floats({2, 3}, {1, -2, 3, -4, 5, 6})}, {"b", Floats({10, 20, 30})}}),
      (std::vector<double>{11, 20, 33, 10, 25, 36}));
}

// Batch and channels are equally long, and the batch may be one: nothing else would tell that
// the operand lies along the wrong axis.
TEST(Operators, OldOperandsLieAlongTheirAxis) {
  const auto sums = [](const char* shapes, const char* attributes, Tensor x) {
    return RaisedResult(
        absl::StrCat(R"(<ir_version: 3, opset_import: ["" : 6]> g ()", shapes,
                     "{ r = Neg(x) y = Sub <broadcast = 1", attributes, "> (r, b) }"),
        {{"x", std::move(x)}, {"b", Floats({10, 20})}});
  };
  const Tensor two = Floats({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const char cube[] = "float[2, 2, 2] x, float[2] b) => (float[2, 2, 2] y)";
  EXPECT_THAT(sums(cube, ", axis = 0", two), ElementsAre(-11, -12, -13, -14, -25, -26, -27, -28));
  EXPECT_THAT(sums(cube, ", axis = 1", two), ElementsAre(-11, -12, -23, -24, -15, -16, -27, -28));
  EXPECT_THAT(sums(cube, ", axis = -2", two), ElementsAre(-11, -12, -23, -24, -15, -16, -27, -28));
  EXPECT_THAT(sums(cube, ", axis = 2", two), ElementsAre(-11, -22, -13, -24, -15, -26, -17, -28));
  EXPECT_THAT(sums(cube, "", two), ElementsAre(-11, -22, -13, -24, -15, -26, -17, -28));
  EXPECT_THAT(sums("float[1, 2, 2, 1] x, float[2] b) => (float[1, 2, 2, 1] y)", ", axis = 1",
                   Floats({1, 2, 2, 1}, {1, 2, 3, 4})),
              ElementsAre(-11, -12, -23, -24));
}

// onnx's checker refuses these, too.
TEST(Operators, WithdrawnOperatorsAreNamed) {
  const Graph graph = InferenceGraph(TextModel(R"(<ir_version: 8, opset_import: ["" : 18]>
      g (float[2] x, int64[1] i, float[1] u) => (float[2] y) { y = Scatter (x, i, u) })"))
                          .value();
  const std::vector<Finding> findings = CheckGraph(graph);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_THAT(findings[0].what, HasSubstr("has withdrawn operator Scatter"));
}

TEST(Operators, OldSlopesOfPReluGoAlongTheChannels) {
  EXPECT_EQ(RaisedResult(R"(<ir_version: 3, opset_import: ["" : 6]>
                            g (float[1, 2, 3] x, float[2] s) => (float[1, 2, 3] y)
                            { r = Neg(x) y = PRelu(r, s) })",
                         {{"x", Floats({1, 2, 3}, {1, -2, 3, -4, 5, 6})}, {"s", Floats({2, 3})}}),
            (std::vector<double>{-2, 2, -6, 4, -15, -18}));
}

}  // namespace onward::operators_test
