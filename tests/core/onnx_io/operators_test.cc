// SPDX-License-Identifier: Apache-2.0
// What the standard's schemas say of a node: types, and bodies of functions.
#include "core/onnx_io/operators.h"

#include <gtest/gtest.h>

#include "core/graph/constant.h"
#include "core/onnx_io/model.h"
#include "training_info/library.h"

namespace onward {
namespace {

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
  auto body = Operators().FunctionBody(node, {&fact, 1}, {{"", kCanonicalOpset}});
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
  auto types = Operators().Infer(node, {&unknown, 1}, {{"", kCanonicalOpset}});
  ASSERT_TRUE(types.ok()) << types.status();
  EXPECT_EQ((*types)[0].dtype, DType::kUndefined);
}

}  // namespace
}  // namespace onward
