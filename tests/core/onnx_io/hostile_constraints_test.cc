// SPDX-License-Identifier: Apache-2.0
// Attributes and operand types that break what an operator demands: refused with the
// node and a remedy before inference, folding, fusion or a kernel trusts them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/graph/constraints/constraints.h"
#include "core/runtime/session.h"
#include "environment/environment.h"
#include "onnx/defs/schema.h"
#include "tests/support/attempt.h"
#include "tests/support/guard.h"
#include "tests/support/text_model.h"
#include "training_info/lower.h"
#include "training_info/validate.h"

namespace onward::hostile_constraints_test {

using ::testing::HasSubstr;
using Rows = std::vector<Hostile>;

constexpr char kRemedy[] = "mend the node's attributes or its inputs";

class BrokenDemand : public testing::TestWithParam<Hostile> {};

TEST_P(BrokenDemand, IsRefused) { ExpectRefused(GetParam()); }

Hostile Row(std::string name, const std::string& inputs, const std::string& body,
            const std::string& says, int opset = 18) {
  const std::string text = absl::StrCat("<ir_version: 10, opset_import: [\"\" : ", opset, "]>\nm (",
                                        inputs, ") => (y) { ", body, " }");
  return {std::move(name), [text] { return TextModel(text); }, says};
}

// What is between them is fused, folded or typed before the node is compiled.
Rows Attributes() {
  const std::string cube = "float[2, 3, 4] x", image = "float[1, 4, 6, 6] x";
  return {
      Row("PermShort", cube, "a = Neg(x) [n] t = Transpose <perm = [2]> (a) y = Neg(t)", "perm is"),
      Row("PermBeyond", cube, "a = Neg(x) [n] t = Transpose <perm = [0, 7, 1]> (a) y = Neg(t)",
          "perm is [0, 7, 1]"),
      Row("PermLong", cube,
          "a = Neg(x) [n] t = Transpose <perm = [0, 2, 1, 4294967296]> (a) "
          "y = Neg(t)",
          "perm is"),
      Row("PermOfComputedRank", cube,
          "s = Shape(x) r = Reshape(x, s) a = Neg(r) [n] t = Transpose <perm = [2, 0, 1, 3]> (a) "
          "y = Neg(t)",
          "perm"),
      Row("LayerNormAxisLargest", cube + ", float[4] w",
          "[n] y, m, i = LayerNormalization <axis = 9223372036854775807> (x, w)", "axis is"),
      Row("LayerNormAxisBeyond", cube + ", float[4] w",
          "[n] y, m, i = LayerNormalization <axis = 9> (x, w)", "outside [-3, 2]"),
      Row("QuantizeAxisBeyond", cube + ", float[3] s", "[n] y = QuantizeLinear <axis = 9> (x, s)",
          "axis is", 21),
      Row("QuantizeAxisLowest", cube + ", float[3] s",
          "[n] y = QuantizeLinear <axis = -9223372036854775808> (x, s)", "axis is", 21),
      Row("QuantizeBlockNegative", cube + ", float[2, 3, 4] s",
          "[n] y = QuantizeLinear <block_size = -1> (x, s)", "block_size is -1", 21),
      Row("QuantizeBlocksMissing", cube + ", float[2, 1, 4] s",
          "[n] y = QuantizeLinear <block_size = 2> (x, s)", "has 1 scales for blocks of 2", 21),
      Row("QuantizeScalesMissing", cube + ", float[2] s", "[n] y = QuantizeLinear(x, s)",
          "one scale for each slice", 21),
      Row("QuantizeToNothing", cube + ", float s",
          "[n] y = QuantizeLinear <output_dtype = 9999> (x, s)", "output_dtype", 21),
      Row("DequantizeBlockLargest", "uint8[2, 3, 4] x, float[2, 3, 4] s",
          "[n] y = DequantizeLinear <block_size = 9223372036854775807> (x, s)", "block_size is",
          21),
      Row("LayerNormStash", cube + ", float[4] w",
          "[n] y, m = LayerNormalization <stash_type = 9999> (x, w)", "stash_type"),
      Row("GatherNDBatchNegative", cube + ", int64[2, 1] i",
          "[n] y = GatherND <batch_dims = -3> (x, i)", "batch_dims is -3"),
      Row("GatherNDBatchLarge", cube + ", int64[2, 1] i",
          "[n] y = GatherND <batch_dims = 2> (x, i)", "batch_dims is 2"),
      Row("SplitCount", "float[6] x", "[n] y, z = Split <num_outputs = 300000000> (x)",
          "num_outputs is 300000000, but the node has 2 outputs"),
      Row("SplitCountWraps", "float[6] x", "[n] y, z = Split <num_outputs = 4294967296> (x)",
          "num_outputs is"),
      Row("ReduceTwice", cube, "a = Constant <value_ints = [1, -2]> () [n] y = ReduceSum(x, a)",
          "names an axis twice"),
      Row("ArgMaxAxis", cube, "[n] y = ArgMax <axis = 3> (x)", "axis is 3"),
      Row("OneHotAxis", "int64[2] x, int64 d, float[2] v", "[n] y = OneHot <axis = 3> (x, d, v)",
          "outside [-2, 1]"),
      Row("ResizeMode", image + ", float[4] s", "[n] y = Resize <mode = \"round\"> (x, \"\", s)",
          "mode is 'round'"),
      Row("ResizeScales", image,
          "s = Constant <value_floats = [1.0, 1.0, 0.0, 2.0]> () [n] y = Resize(x, \"\", s)",
          "scales holds 0"),
      Row("GroupNorm", image + ", float[4] w",
          "[n] y = GroupNormalization <num_groups = 3> (x, w, w)", "do not divide into 3 groups",
          21),
      Row("LstmHidden", "float[3, 2, 4] x, float[1, 20, 4] w, float[1, 20, 5] r",
          "[n] y = LSTM <hidden_size = 6> (x, w, r)", "the input weights"),
      Row("LstmDirection", "float[3, 2, 4] x, float[1, 20, 4] w, float[1, 20, 5] r",
          "[n] y = LSTM <hidden_size = 5, direction = \"sideways\"> (x, w, r)", "direction is"),
      Row("ScatterReduction", cube + ", int64[1, 1, 1] i, float[1, 1, 1] u",
          "[n] y = ScatterElements <reduction = \"most\"> (x, i, u)", "reduction is 'most'"),
      // onnx's inference would read the second one for ever.
      Row("EinsumEllipses", cube, "[n] y = Einsum <equation = \"......->...\"> (x)",
          "cannot be read at character 3"),
      Row("EinsumTerms", cube, "[n] y = Einsum <equation = \"ij,jk->ik\"> (x)", "terms"),
      Row("LossReduction", "float[2, 3] x, int64[2] l",
          "[n] y = SoftmaxCrossEntropyLoss <reduction = \"all\"> (x, l)", "reduction is 'all'"),
      Row("AttentionHeads", "float[1, 2, 6] x",
          "[n] y = Attention <q_num_heads = 4, kv_num_heads = 4> (x, x, x)", "divide", 24),
      Row("GemmBias", "float[2, 3] x, float[3, 4] w, float[3] b", "[n] y = Gemm(x, w, b)",
          "input 2, the bias, is [3], which is not broadcast to [2, 4]"),
      Row("LayerNormScale", cube + ", float[3] w", "[n] y = LayerNormalization(x, w)",
          "input 1, the scale, is [3], which is not broadcast to [2, 3, 4]"),
      Row("LayerNormShift", cube + ", float[4] w, float[2, 2, 3, 4] b",
          "[n] y = LayerNormalization(x, w, b)", "input 2, the shift"),
      Row("ReshapeCount", cube, "s = Constant<value_ints = [0, 5]>() [n] y = Reshape(x, s)",
          "the new shape [0, 5] does not hold 24 elements"),
      Row("ReshapeRest", cube, "s = Constant<value_ints = [7, -1]>() [n] y = Reshape(x, s)",
          "does not hold 24 elements"),
      Row("ShapeOfNoTensor", "float[1099511627776, 1099511627776] x", "[n] y = Neg(x)",
          "too many elements"),
      Row("BodyAxis", "bool c, float[2, 3] x",
          "[n] y = If (c) <then_branch = t () => (a) { [m] a = Softmax <axis = 40> (x) }, "
          "else_branch = e () => (b) { b = Neg(x) }>",
          "axis is 40"),
      Row("StrayReference", "float[2, 3] x", "[n] y = Softmax <axis : int = @outer> (x)",
          "refers to 'outer'"),
  };
}
INSTANTIATE_TEST_SUITE_P(Attribute, BrokenDemand, testing::ValuesIn(Attributes()),
                         [](const auto& row) { return row.param.name; });

Rows Types() {
  const std::string channels = "c = Constant <value_floats = [1.0, 1.0]> () ";
  return {
      Row("Gemm", "float16[1, 4] x, float[4, 3] w", "[n] y = Gemm(x, w)",
          "both must be of one type"),
      Row("Lstm", "float16[3, 2, 4] x, float[1, 20, 4] w, float[1, 20, 5] r",
          "[n] y = LSTM <hidden_size = 5> (x, w, r)", "both must be of one type"),
      Row("AddAfterNorm", "float[2, 2, 8, 8] x",
          channels + "z = Cast <to = 2> (x) b = BatchNormalization(x, c, c, c, c) "
                     "[n] q = Add(b, z) r = Relu(q) y = Exp(r)",
          "both must be of one type"),
      Row("BitwiseOfFloats", "float[2] x", "[n] y = BitwiseNot(x)", "not defined for"),
      Row("EyeOfText", "float[2, 2] x", "[n] y = EyeLike <dtype = 8> (x)", "output 0"),
  };
}
INSTANTIATE_TEST_SUITE_P(Type, BrokenDemand, testing::ValuesIn(Types()),
                         [](const auto& row) { return row.param.name; });

// `check` says all of them, each with its remedy.
TEST(BrokenDemands, AreReportedAtOnce) {
  const Model model = TextModel(
      "m (float[2, 3] x, double[2, 3] d) => (y) { [a] p = Transpose <perm = [5]> (x) "
      "[b] q = Softmax <axis = 7> (x) [c] y = Add(x, d) }");
  const auto findings = CheckModel(model, DefaultEnvironment());
  ASSERT_TRUE(findings.ok());
  ASSERT_EQ(findings->size(), 3u);
  const char* nodes[] = {"node 'a'", "node 'b'", "node 'c'"};
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT((*findings)[i].place, HasSubstr(nodes[i]));
    EXPECT_EQ((*findings)[i].fix, kRemedy);
  }
}

// Somebody has looked at every operator there is.
TEST(BrokenDemands, EveryOperatorHasARow) {
  std::vector<std::string> missing;
  for (const onnx::OpSchema& schema : onnx::OpSchemaRegistry::get_all_schemas()) {
    const std::string op =
        schema.domain().empty() ? schema.Name() : absl::StrCat(schema.domain(), ".", schema.Name());
    if (!HasConstraints(op)) missing.push_back(op);
  }
  EXPECT_THAT(missing, testing::IsEmpty());
}

std::vector<Attribute> OddValues(const onnx::OpSchema::Attribute& attribute) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max(), kLeast = -kMost - 1;
  const std::vector<int64_t> odd = {
      kMost, kLeast, int64_t{1} << 40, -(int64_t{1} << 32), 40, -40, 9, -9, -3, 0};
  std::vector<Attribute> values;
  switch (attribute.type) {
    case onnx::AttributeProto::INT:
      for (int64_t v : odd) values.emplace_back(v);
      break;
    case onnx::AttributeProto::INTS:
      for (int64_t v : odd) {
        for (size_t n : {1, 2, 4}) values.emplace_back(std::vector<int64_t>(n, v));
      }
      values.emplace_back(std::vector<int64_t>());
      values.emplace_back(std::vector<int64_t>(50, 1));
      break;
    case onnx::AttributeProto::STRING:
      for (const char* v : {"", "odd", "->", "...,...", "bidirectional"}) values.emplace_back(v);
      break;
    case onnx::AttributeProto::STRINGS:
      values.emplace_back(std::vector<std::string>{});
      values.emplace_back(std::vector<std::string>{"odd"});
      break;
    case onnx::AttributeProto::FLOAT:
      for (float v : {0.0f, -1.0f, 1e38f}) values.emplace_back(v);
      break;
    case onnx::AttributeProto::FLOATS: values.emplace_back(std::vector<float>{}); break;
    default: break;
  }
  return values;
}

DType FirstTensorType(const onnx::OpSchema::FormalParameter& formal) {
  for (const auto& [dtype, name] :
       {std::pair(DType::kFloat, "tensor(float)"), std::pair(DType::kInt64, "tensor(int64)"),
        std::pair(DType::kBool, "tensor(bool)"), std::pair(DType::kUint8, "tensor(uint8)"),
        std::pair(DType::kString, "tensor(string)")}) {
    for (const std::string* allowed : formal.GetTypes()) {
      if (*allowed == name) return dtype;
    }
  }
  return DType::kFloat;
}

// A call of the operator with inputs of one rank, constant where they are integers.
struct Call {
  Node node;
  std::vector<ValueType> types;
  std::vector<Tensor> constants;
  std::vector<InputFact> facts;

  Call(const onnx::OpSchema& schema, int rank) {
    node.op_type = schema.Name();
    node.domain = schema.domain();
    for (int i = 0; i < std::min(schema.max_output(), 3); ++i) {
      node.outputs.push_back(absl::StrCat("y", i));
    }
    const size_t inputs = std::min<size_t>(schema.inputs().size(), 8);
    types.resize(inputs);
    constants.resize(inputs);
    facts.resize(inputs);
    for (size_t i = 0; i < inputs; ++i) {
      node.inputs.push_back(absl::StrCat("x", i));
      const DType dtype = FirstTensorType(schema.inputs()[i]);
      const bool listed = dtype == DType::kInt64 && i > 0;
      const Shape shape(std::vector<int64_t>(listed ? 1 : rank, 2));
      types[i] = ValueType::Of(dtype, shape);
      facts[i].type = &types[i];
      if (!listed) continue;
      constants[i] = Tensor::FromValues<int64_t>(shape, {int64_t{1}, int64_t{1}});
      facts[i].constant = &constants[i];
    }
  }
};

// Any odd value of any attribute of any version of any operator: inference and function
// bodies of the onnx library survive, because the table stands before them.
TEST(BrokenDemands, OddAttributesOfEveryOperator) {
  for (const onnx::OpSchema& schema : onnx::OpSchemaRegistry::get_all_schemas_with_history()) {
    const std::map<std::string, int> opsets = {{schema.domain(), schema.since_version()}};
    Guard guard;
    for (const auto& [name, attribute] : schema.attributes()) {
      for (const Attribute& value : OddValues(attribute)) {
        for (int rank : {0, 1, 2, 3, 4}) {
          Call call(schema, rank);
          call.node.attributes[name] = value;
          guard.Trying(absl::StrCat(schema.domain(), " ", ToText(call.node), " rank ", rank));
          DefaultEnvironment()
              .operators()
              .Infer(call.node, call.facts, opsets)
              .status()
              .IgnoreError();
          DefaultEnvironment()
              .operators()
              .FunctionBody(call.node, call.facts, opsets)
              .status()
              .IgnoreError();
        }
      }
    }
    EXPECT_LT(guard.GrownBytes(), size_t{256} << 20) << schema.Name();
  }
}

// Onward's own functions have no schema; every mixture of element types gives a result
// or a refusal, never memory that nobody wrote.
TEST(OwnFunction, RefusesMixedOperands) {
  const auto model = [](const char* scale) {
    return TextModel(
        absl::StrCat("<ir_version: 8, opset_import: [\"\" : 18, \"ai.onward\" : 2]>\n"
                     "m (float[2, 3, 4] x, ",
                     scale,
                     "[3] s) => (y) "
                     "{ [n] y, ds, db = ai.onward.BatchNormalizationGrad(x, x, s) }"));
  };
  EXPECT_TRUE(Attempt(model("float")).ok());
  for (const char* type : {"bool", "int64", "string"}) {
    EXPECT_THAT(std::string(Attempt(model(type)).message()),
                HasSubstr("expected floating-point numbers"))
        << type;
  }
}

TEST(OwnFunction, SurvivesMixedOperands) {
  const char* kTypes[] = {"float", "double", "float16", "bool", "int64", "uint8"};
  for (const auto& [key, def] : DefaultEnvironment().functions().all()) {
    const int inputs = std::max(def.required, 2);
    for (const char* shape : {"[2, 3, 4]", "[3]"}) {
      for (int odd = 0; odd < inputs; ++odd) {
        for (const char* type : kTypes) {
          std::vector<std::string> declared, given;
          for (int i = 0; i < inputs; ++i) {
            given.push_back(absl::StrCat("x", i));
            declared.push_back(
                absl::StrCat(i == odd ? type : "float", i == odd ? shape : "[2, 3, 4]", " x", i));
          }
          const std::string text =
              absl::StrCat("<ir_version: 8, opset_import: [\"\" : 18, \"ai.onward\" : 2]>\nm (",
                           absl::StrJoin(declared, ", "), ") => (y) { y = ai.onward.", key.name,
                           "(", absl::StrJoin(given, ", "), ") }");
          Guard guard;
          guard.Trying(text);
          Attempt(TextModel(text)).IgnoreError();
        }
      }
    }
  }
}

// Factors beyond the integers saturate, as casts do.
TEST(HostileArithmetic, GemmOfIntegersSaturatesItsFactors) {
  const Model model = TextModel(
      "m (int64[1, 1] x) => (y) { one = Constant <value_ints = [1]> () s = Constant <value_ints = "
      "[1, 1]> () w = Reshape(one, s) [n] y = Gemm <alpha = 1e30> (w, w) }");
  auto graph = RunnableGraph(model, DefaultEnvironment());
  ASSERT_TRUE(graph.ok());
  CompileOptions options;
  options.device = &DefaultEnvironment().cpu();
  options.operators = &DefaultEnvironment().operators();
  Session session(*std::move(graph), options);
  const auto result = session.Run({{"x", Tensor::Zeros(DType::kInt64, {1, 1})}}, nullptr);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(*result->begin()->second.data<int64_t>(), std::numeric_limits<int64_t>::max());
}

}  // namespace onward::hostile_constraints_test
