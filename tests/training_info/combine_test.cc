// SPDX-License-Identifier: Apache-2.0
// docs/training-info.md: the training graph.
#include "training_info/combine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onnx/onnx_pb.h"
#include "tests/support/text_model.h"
#include "training_info/import.h"
#include "training_info/validate.h"

namespace onward::combine_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

// h = x*W is an intermediate value.
constexpr char kTwoNodes[] =
    "m (float[2] x) => (float[2] y) <float[2] W = {1, 2}, float[2] B = {10, 20}> { h = Mul(x, W) y "
    "= Add(h, B) }";

std::vector<std::string> Names(const std::vector<NamedType>& values) {
  std::vector<std::string> names;
  for (const NamedType& v : values) names.push_back(v.name);
  return names;
}

Graph Combined(const Model& model, int entry = 0) {
  auto spec = ImportTraining(model);
  EXPECT_TRUE(spec.ok()) << spec.status();
  auto combined = Combine(*spec, entry);
  EXPECT_TRUE(combined.ok()) << combined.status();
  return combined.ok() ? *combined : Graph{};
}

TEST(TrainingInfo, CombinesInStandardOrder) {
  const Graph graph =
      Combined(TextModel(kTwoNodes, {{"a (float[2] t) => (float[2] e, float[2] n) <float[2] S = "
                                      "{0, 0}> { e = Sub(y, t) n = Add(e, S) }",
                                      {{"S", "n"}}}}));
  EXPECT_THAT(Names(graph.inputs), ElementsAre("x", "t"));
  EXPECT_THAT(Names(graph.outputs), ElementsAre("y", "e", "n"));
  std::vector<std::string> computed;
  for (const Node& node : graph.nodes) computed.push_back(node.outputs[0]);
  EXPECT_THAT(computed, ElementsAre("h", "y", "e", "n"));
  std::vector<std::string> initializers;
  for (const auto& [name, tensor] : graph.initializers) initializers.push_back(name);
  EXPECT_THAT(initializers, UnorderedElementsAre("W", "B", "S"));
}

TEST(TrainingInfo, AlgorithmReadsInferenceValues) {
  auto model = Open(TextModel(
      kTwoNodes,
      {{"a () => (float[2] n) <float[2] S = {0, 0}> { n = Sum(x, W, h, y) }", {{"S", "n"}}}}));
  ASSERT_TRUE(model->Step({{"x", Floats({1, 1})}}).ok());
  EXPECT_THAT(ValueOf(*model, "S"), ElementsAre(1 + 1 + 1 + 11, 1 + 2 + 2 + 22));
}

TEST(TrainingInfo, InferenceStandsAlone) {
  for (const char* algorithm : {"a (float[2] t) => (float[2] n) { n = Add(W, t) }",
                                "a () => (float[2] n) <float[2] t = {1, 2}> { n = Add(W, t) }",
                                "a () => (float[2] n) { t = Add(W, W) n = Add(W, t) }"}) {
    const std::string refusal = Refusal(TextModel(
        "m (float[2] x) => (float[2] y) <float[2] W = {1, 2}> { h = Mul(x, W) y = Add(h, t) }",
        {{algorithm, {{"W", "n"}}}}));
    EXPECT_THAT(refusal, HasSubstr("[undefined-value] graph")) << algorithm;
    EXPECT_THAT(refusal, HasSubstr("reads 't', which nothing produces")) << algorithm;
  }
}

TEST(TrainingInfo, RefusesNameClash) {
  const std::pair<const char*, const char*> clashes[] = {
      {"a (float[2] x) => (float[2] n) { n = Add(W, x) }", "input 'x'"},
      {"a () => (float[2] n) <float[2] B = {10, 20}> { n = Add(W, B) }", "initializer 'B'"},
      {"a () => (float[2] n) { h = Add(W, W) n = Add(W, h) }", "value 'h'"},
      {"a (float[2] h) => (float[2] n) { n = Add(W, h) }", "input 'h'"},
      {"a () => (float[2] n) <float[2] y = {1, 2}> { n = Add(W, y) }", "initializer 'y'"},
  };
  for (const auto& [algorithm, what] : clashes) {
    const std::string refusal = Refusal(TextModel(kTwoNodes, {{algorithm, {{"W", "n"}}}}));
    EXPECT_THAT(refusal, HasSubstr("[name-clash] training_info[0].algorithm"));
    EXPECT_THAT(refusal, HasSubstr(std::string(what) + " exists in the inference graph too"));
  }
  // Twice within the algorithm.
  EXPECT_THAT(Refusal(TextModel(kTwoNodes, {{"a () => (float[2] n) { n = Add(W, x) n = Sub(W, x) }",
                                             {{"W", "n"}}}})),
              HasSubstr("value 'n' is defined twice"));
}

TEST(TrainingInfo, OutputListedTwiceStandsOnce) {
  const Model file =
      TextModel(kTwoNodes, {{"a () => (float[2] y, float[2] n) { n = Add(W, y) }", {{"W", "n"}}}});
  EXPECT_THAT(Names(Combined(file).outputs), ElementsAre("y", "n"));
  auto out = Open(file)->Step({{"x", Floats({1, 1})}});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT(Values(out->at("y")), ElementsAre(11, 22));
}

TEST(TrainingInfo, StepInputsAreBothGraphs) {
  // s has a default value in the file.
  auto model = Open(TextModel(
      kTwoNodes,
      {{"a (float[2] t, float[2] s = {1, 1}) => (float[2] n) { e = Sub(y, t) n = Mul(e, s) }",
        {{"W", "n"}}}}));
  EXPECT_THAT(Names(model->StepInputs()), ElementsAre("x", "t"));
  auto missing = model->Step({{"x", Floats({1, 1})}});
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("a step needs the input 't'"));
  auto wrong = model->Step({{"x", Floats({1, 1})}, {"t", Floats({1, 2, 3})}});
  ASSERT_FALSE(wrong.ok());
  EXPECT_THAT(std::string(wrong.status().message()), HasSubstr("input 't' must be float[2]"));
  ASSERT_TRUE(model->Step({{"x", Floats({1, 1})}, {"t", Floats({1, 2})}}).ok());
  EXPECT_THAT(ValueOf(*model, "W"), ElementsAre(10, 20));
}

TEST(TrainingInfo, AlgorithmCallsModelFunctions) {
  auto model = Open(
      TextModel(std::string(kTwoNodes) + R"(
      <domain: "local", opset_import: ["" : 18]>
      Axpy <a> (p, q) => (r) {
        c = Constant <value_float : float = @a> ()
        ap = Mul(c, p)
        r = Add(ap, q)
      })",
                {{"a () => (float[2] n) { n = local.Axpy <a = -0.5> (x, W) }", {{"W", "n"}}}}));
  ASSERT_TRUE(model->Step({{"x", Floats({2, 4})}}).ok());
  EXPECT_THAT(ValueOf(*model, "W"), ElementsAre(0, 0));
}

TEST(TrainingInfo, UnneededInferenceIsPruned) {
  auto model = Open(TextModel(
      "m (float[2] x, float[2] z) => (float[2] y) <float[2] W = {1, 2}> { h = Mul(x, W) y = Add(h, "
      "z) }",
      {{"a () => (float loss, float[2] n) { loss = ReduceSum <keepdims = 0> (h) n = Add(W, h) }",
        {{"W", "n"}}}}));
  EXPECT_THAT(Names(model->StepInputs(-1, {"loss"})), ElementsAre("x"));
  auto out = model->Step({{"x", Floats({1, 1})}}, {"loss"});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT(Values(out->at("loss")), ElementsAre(3));
  EXPECT_THAT(ValueOf(*model, "W"), ElementsAre(2, 4));
  // All outputs are wanted here, y too.
  EXPECT_THAT(Names(model->StepInputs()), ElementsAre("x", "z"));
  EXPECT_FALSE(model->Step({{"x", Floats({1, 1})}}).ok());
}

TEST(TrainingInfo, StepKeepsNodeModes) {
  auto model = Open(TextModel(
      R"(m (float[2, 1] x) => (float[2, 1] y)
         <float[1] s = {1}, float[1] b = {0}, float[1] mean = {1}, float[1] var = {4}> {
           y = BatchNormalization <epsilon = 0.0> (x, s, b, mean, var)
         })",
      {{"a () => (float[1] n) { n = ReduceMean <keepdims = 0> (y) }"}}));
  auto out = model->Step({{"x", Floats({2, 1}, {3, 5})}});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT(Values(out->at("y")), ElementsAre(1, 2));
}

// Files of the 1.7 kind: the algorithm is complete and calls the inference graph.
constexpr char kCalled[] =
    "m (float[2] x) => (float[2] y) <float[2] W = {1, 2}> { h = Mul(x, W) y = Relu(h) }";

TEST(TrainingInfo, GraphCallIsInlined) {
  const Model file = TextModel(
      kCalled,
      {{R"(a (float[2] batch, float[2] t) => (float loss, float[2] W_new) <float R = {0.5}> {
             p = ai.onnx.preview.training.GraphCall <graph_name = "m"> (batch)
             e = Sub(p, t)
             loss = ReduceSumSquare <keepdims = 0> (e)
             G = ai.onnx.preview.training.Gradient <xs = ["W"], y = "loss"> (W)
             d = Mul(R, G)
             W_new = Sub(W, d)
           })",
        {{"W", "W_new"}}}});
  auto model = Open(file);
  EXPECT_THAT(Names(model->StepInputs()), ElementsAre("batch", "t"));
  EXPECT_THAT(Names(Combined(file).outputs), ElementsAre("loss", "W_new"));
  auto out = model->Step({{"batch", Floats({1, 2})}, {"t", Floats({0, 5})}});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT(Values(out->at("loss")), ElementsAre(1 + 1));
  EXPECT_THAT(ValueOf(*model, "W"), ElementsAre(1 - 1, 2 + 2));
}

// Both graphs of such a file have names of their own, and a graph may be called
// more than once.
TEST(TrainingInfo, GraphCallsKeepNamesApart) {
  auto model = Open(TextModel(kCalled, {{R"(a (float[2] x, float[2] t) => (float[2] W_new) {
             y = ai.onnx.preview.training.GraphCall <graph_name = "m"> (x)
             h = ai.onnx.preview.training.GraphCall <graph_name = "m"> (t)
             W_new = Add(y, h)
           })",
                                         {{"W", "W_new"}}}}));
  ASSERT_TRUE(model->Step({{"x", Floats({1, 1})}, {"t", Floats({10, 10})}}).ok());
  EXPECT_THAT(ValueOf(*model, "W"), ElementsAre(11, 22));
}

// Variables are common to both graphs, so these names are taken.
TEST(TrainingInfo, RefusesGraphCallNextToAClash) {
  const char* call = "{ n = ai.onnx.preview.training.GraphCall <graph_name = \"m\"> (W) }";
  for (const char* head :
       {"a (float[2] W) => (float[2] n) ", "a () => (float[2] n) <float[2] W = {1, 1}> "}) {
    EXPECT_THAT(Refusal(TextModel(kCalled, {{std::string(head) + call, {{"W", "n"}}}})),
                HasSubstr("[name-clash]"));
  }
}

TEST(TrainingInfo, RefusesGraphCallOfAnotherGraph) {
  EXPECT_THAT(Refusal(TextModel(kCalled, {{R"(a (float[2] t) => (float[2] n) {
             n = ai.onnx.preview.training.GraphCall <graph_name = "other"> (t)
           })",
                                           {{"W", "n"}}}})),
              HasSubstr("calls graph 'other', but the model's graph is 'm'"));
  // Too few, too many.
  for (const char* inputs : {"()", "(t, t)"}) {
    EXPECT_NE(
        Refusal(TextModel(
            kCalled, {{std::string("a (float[2] t) => (float[2] n) { n = "
                                   "ai.onnx.preview.training.GraphCall <graph_name = \"m\"> ") +
                           inputs + " }",
                       {{"W", "n"}}}})),
        "")
        << inputs;
  }
}

TEST(TrainingInfo, GraphCallOmittedInputIsTheVariable) {
  const char* graph =
      "m (float[2] x, float[2] W = {1, 2}, float[2] B = {10, 20}) => (float[2] y) "
      "{ h = Mul(x, W) y = Add(h, B) }";
  const std::pair<const char*, std::vector<double>> cases[] = {
      {"t", {13, 26}}, {"t, t", {19, 29}}, {"t, \"\", t", {6, 9}}};
  for (const auto& [inputs, expected] : cases) {
    auto model = Open(TextModel(
        graph, {{std::string("a (float[2] t) => (float[2] n) { n = "
                             "ai.onnx.preview.training.GraphCall <graph_name = \"m\"> (") +
                     inputs + ") }",
                 {{"W", "n"}}}}));
    ASSERT_TRUE(model->Step({{"t", Floats({3, 3})}}).ok()) << inputs;
    EXPECT_EQ(ValueOf(*model, "W"), expected) << inputs;
  }
}

}  // namespace onward::combine_test
