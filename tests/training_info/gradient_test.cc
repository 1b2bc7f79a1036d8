// SPDX-License-Identifier: Apache-2.0
// docs/training-info.md: the Gradient operator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onnx/onnx_pb.h"
#include "tests/support/text_model.h"

namespace onward::gradient_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// An inference graph that does nothing of interest, and an algorithm around
// Gradient nodes. "Gradient" stands for the operator with its domain.
Model GradientModel(std::string algorithm) {
  const std::string op = "= Gradient";
  for (size_t at = 0; (at = algorithm.find(op, at)) != std::string::npos; at += op.size()) {
    algorithm.insert(at + 2, "ai.onnx.preview.training.");
  }
  return TextModel("m (float[2] x) => (float[2] id) <float[2] W = {3, 5}> { id = Identity(x) }",
                   {{algorithm}});
}

// Runs the algorithm once with x = (1, 2).
TensorMap Results(const std::string& algorithm) {
  auto out = Open(GradientModel(algorithm))->Step({{"x", Floats({1, 2})}});
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? *out : TensorMap{};
}

std::vector<double> Result(const std::string& algorithm, const std::string& value) {
  const TensorMap results = Results(algorithm);
  auto it = results.find(value);
  return it == results.end() ? std::vector<double>{} : Values(it->second);
}

TEST(TrainingInfo, GradientHasTypeOfX) {
  const TensorMap out = Results(R"(a () => (double[2, 1] G, float[2] GW) <double[2, 1] D = {2, 7}> {
    f = CastLike(D, W)
    all = Constant <value_ints = [-1]> ()
    flat = Reshape(f, all)
    p = Mul(flat, W)
    y = ReduceSum <keepdims = 0> (p)
    G, GW = Gradient <xs = ["D", "W"], y = "y"> (D, W)
  })");
  ASSERT_EQ(out.size(), 3u);
  EXPECT_EQ(out.at("G").dtype(), DType::kDouble);
  EXPECT_EQ(out.at("G").shape(), (Shape{2, 1}));
  EXPECT_THAT(Values(out.at("G")), ElementsAre(3, 5));
  EXPECT_EQ(out.at("GW").dtype(), DType::kFloat);
  EXPECT_THAT(Values(out.at("GW")), ElementsAre(2, 7));
}

TEST(TrainingInfo, GradientAtAnotherPoint) {
  // f(W) = sum(W^2 * x): at P the gradient is 2*P*x, whatever W is.
  EXPECT_THAT(Result(R"(a () => (float[2] G) <float[2] P = {10, 20}> {
    s = Mul(W, W)
    p = Mul(s, x)
    y = ReduceSum <keepdims = 0> (p)
    G = Gradient <xs = ["W"], y = "y"> (P)
  })",
                     "G"),
              ElementsAre(20, 80));
  // A z elsewhere: f = sum(W*x) by W at x = P.
  EXPECT_THAT(Result(R"(a () => (float[2] G) <float[2] P = {10, 20}> {
    p = Mul(W, x)
    y = ReduceSum <keepdims = 0> (p)
    G = Gradient <xs = ["W"], zs = ["x"], y = "y"> (W, P)
  })",
                     "G"),
              ElementsAre(10, 20));
  // The point may be a value of the same graph, even one that depends on W.
  EXPECT_THAT(Result(R"(a () => (float[2] G) {
    P = Add(W, W)
    s = Mul(W, W)
    y = ReduceSum <keepdims = 0> (s)
    G = Gradient <xs = ["W"], y = "y"> (P)
  })",
                     "G"),
              ElementsAre(12, 20));
}

TEST(TrainingInfo, GradientHoldsZsConstant) {
  // h = x*W depends on W; held constant, only the direct W remains.
  const TensorMap out = Results(R"(a () => (float[2] G, float[2] total) {
    h = Mul(x, W)
    p = Mul(h, W)
    y = ReduceSum <keepdims = 0> (p)
    G = Gradient <xs = ["W"], zs = ["h"], y = "y"> (W, h)
    total = Gradient <xs = ["W"], y = "y"> (W)
  })");
  ASSERT_EQ(out.size(), 3u);
  EXPECT_THAT(Values(out.at("G")), ElementsAre(3, 10));
  EXPECT_THAT(Values(out.at("total")), ElementsAre(6, 20));
}

TEST(TrainingInfo, GradientByIntermediateValue) {
  EXPECT_THAT(Result(R"(a () => (float[2] G) {
    h = Mul(x, W)
    s = Mul(h, h)
    y = ReduceSum <keepdims = 0> (s)
    G = Gradient <xs = ["h"], y = "y"> (h)
  })",
                     "G"),
              ElementsAre(6, 20));
  // Of the inference graph, too.
  EXPECT_THAT(Result(R"(a () => (float[2] G) {
    s = Mul(id, id)
    y = ReduceSum <keepdims = 0> (s)
    G = Gradient <xs = ["id"], y = "y"> (id)
  })",
                     "G"),
              ElementsAre(2, 4));
}

TEST(TrainingInfo, GradientNeedsNoZs) {
  EXPECT_THAT(Result(R"(a () => (float[2] G) {
    p = Mul(x, W)
    q = Mul(p, id)
    y = ReduceSum <keepdims = 0> (q)
    G = Gradient <xs = ["W"], y = "y"> (W)
  })",
                     "G"),
              ElementsAre(1, 4));
}

TEST(TrainingInfo, GradientOmittedOutputs) {
  Model model = GradientModel(R"(a () => (float[2] G2) <float[2] V = {7, 8}> {
    p = Mul(V, W)
    y = ReduceSum <keepdims = 0> (p)
    G1, G2 = Gradient <xs = ["W", "V"], y = "y"> (W, V)
  })");
  model.proto().mutable_training_info(0)->mutable_algorithm()->mutable_node(2)->set_output(0, "");
  auto out = Open(model)->Step({{"x", Floats({1, 2})}});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT(Values(out->at("G2")), ElementsAre(3, 5));
  // Trailing ones may be left out altogether.
  EXPECT_THAT(Result(R"(a () => (float[2] G1) <float[2] V = {7, 8}> {
    p = Mul(V, W)
    y = ReduceSum <keepdims = 0> (p)
    G1 = Gradient <xs = ["W", "V"], y = "y"> (W, V)
  })",
                     "G1"),
              ElementsAre(7, 8));
}

TEST(TrainingInfo, GradientOfGradient) {
  // y = sum(W^3): 3 W^2, 6 W, 6.
  const TensorMap out = Results(R"(a () => (float[2] G, float[2] H, float[2] K) {
    s = Mul(W, W)
    c = Mul(s, W)
    y = ReduceSum <keepdims = 0> (c)
    G = Gradient <xs = ["W"], y = "y"> (W)
    H = Gradient <xs = ["W"], y = "G"> (W)
    K = Gradient <xs = ["W"], y = "H"> (W)
  })");
  ASSERT_EQ(out.size(), 4u);
  EXPECT_THAT(Values(out.at("G")), ElementsAre(27, 75));
  EXPECT_THAT(Values(out.at("H")), ElementsAre(18, 30));
  EXPECT_THAT(Values(out.at("K")), ElementsAre(6, 6));
  // A function of the gradient, taken at another point.
  EXPECT_THAT(Result(R"(a () => (float[2] H) <float[2] P = {1, -1}> {
    s = Mul(W, W)
    c = Mul(s, W)
    y = ReduceSum <keepdims = 0> (c)
    G = Gradient <xs = ["W"], y = "y"> (W)
    g2 = Mul(G, x)
    z = ReduceSum <keepdims = 0> (g2)
    H = Gradient <xs = ["W"], y = "z"> (P)
  })",
                     "H"),
              ElementsAre(6, -12));
}

TEST(TrainingInfo, GradientOfNonScalarSums) {
  EXPECT_THAT(Result(R"(a () => (float[2] G) {
    y = Mul(x, W)
    G = Gradient <xs = ["W"], y = "y"> (W)
  })",
                     "G"),
              ElementsAre(1, 2));
}

TEST(TrainingInfo, GradientOfIndependentIsZeros) {
  const TensorMap out = Results(R"(a () => (float[2] G, float[1, 3] Z) <float[1, 3] U = {1, 2, 3}> {
    y = Mul(x, W)
    G, Z = Gradient <xs = ["W", "U"], y = "y"> (W, U)
  })");
  ASSERT_EQ(out.size(), 3u);
  EXPECT_THAT(Values(out.at("Z")), ElementsAre(0, 0, 0));
  EXPECT_EQ(out.at("Z").shape(), (Shape{1, 3}));
}

TEST(TrainingInfo, RefusesGradientByIntegers) {
  EXPECT_THAT(Refusal(GradientModel(R"(a () => (int64[2] G) <int64[2] I = {1, 0}> {
    y = Gather(W, I)
    G = Gradient <xs = ["I"], y = "y"> (I)
  })")),
              HasSubstr("'I' is int64[2]; only float tensors have gradients"));
  // Where the type is known by inference alone.
  EXPECT_THAT(Refusal(GradientModel(R"(a () => (int64[2] G) {
    i = Cast <to = 7> (x)
    y = Add(i, i)
    G = Gradient <xs = ["i"], y = "y"> (i)
  })")),
              HasSubstr("only float tensors have gradients"));
}

TEST(TrainingInfo, RefusesMalformedGradient) {
  const std::pair<const char*, const char*> cases[] = {
      {"G = Gradient <xs = [\"W\"], y = \"y\"> (W, x)",
       "has 2 inputs, but xs and zs name 1 tensors"},
      {"G = Gradient <xs = [\"W\"], zs = [\"x\"], y = \"y\"> (W)",
       "has 1 inputs, but xs and zs name 2 tensors"},
      {"G = Gradient <xs = [\"nothing\"], y = \"y\"> (W)",
       "names tensor 'nothing', which the graph does not have"},
      {"G = Gradient <xs = [\"W\"], y = \"nothing\"> (W)",
       "names tensor 'nothing', which the graph does not have"},
      {"G = Gradient <xs = [\"W\"], zs = [\"no\"], y = \"y\"> (W, x)", "names tensor 'no', which"},
      {"G, K = Gradient <xs = [\"W\"], y = \"y\"> (W)", "more outputs than xs has names"},
      {"G = Gradient <xs = [\"W\"]> (W)", "y"},
      {"G = Gradient <y = \"y\"> (W)", "xs"},
      {"G = Gradient <xs = [\"W\"], y = \"G\"> (W)", "depends on its own outputs"},
  };
  for (const auto& [node, message] : cases) {
    const std::string refusal =
        Refusal(GradientModel(std::string("a () => (float[2] G) { y = Mul(x, W) ") + node + " }"));
    EXPECT_THAT(refusal, HasSubstr(message)) << node;
  }
}

// Names both, so that a user finds the node: all operators without a gradient at once.
TEST(TrainingInfo, RefusesGradientThroughOperatorsWithoutOne) {
  const std::string refusal = Refusal(GradientModel(R"(a () => (float[2] G) {
    b = ai.onnx.ml.Binarizer(W)
    y = Mul(x, b)
    G = Gradient <xs = ["W"], y = "y"> (W)
  })"));
  EXPECT_THAT(refusal, HasSubstr("Binarizer"));
}

TEST(TrainingInfo, AcceptsShortGradientDomain) {
  const char* graph = R"(<ir_version: 8, opset_import: ["" : 18, "ai.onnx.preview" : 1]>
      m (float[2] x) => (float[2] id) <float[2] W = {3, 5}> { id = Identity(x) })";
  auto model = Open(TextModel(graph, {{R"(a () => (float[2] n) {
    y = Mul(x, W)
    G = ai.onnx.preview.Gradient <xs = ["W"], y = "y"> (W)
    n = Sub(W, G)
  })",
                                       {{"W", "n"}}}}));
  ASSERT_TRUE(model->Step({{"x", Floats({1, 2})}}).ok());
  EXPECT_THAT(ValueOf(*model, "W"), ElementsAre(2, 3));
}

// Older operator forms are raised first; the node and its names stay.
TEST(TrainingInfo, GradientSurvivesRaisingTheOpset) {
  auto model =
      Open(TextModel(R"(<ir_version: 7, opset_import: ["" : 11, "ai.onnx.preview.training" : 1]>
      m (float[1, 2] x) => (float[1, 2] y) <float[1, 2] W = {3, 5}> { h = Mul(x, W) y = Softmax <axis = 1> (h) })",
                     {{R"(a () => (float loss, float[1, 2] n) {
    s = Squeeze <axes = [0]> (h)
    loss = ReduceSum <axes = [0], keepdims = 0> (s)
    G = ai.onnx.preview.training.Gradient <xs = ["W"], y = "loss"> (W)
    n = Sub(W, G)
  })",
                       {{"W", "n"}}}}));
  ASSERT_TRUE(model->Step({{"x", Floats({1, 2}, {1, 2})}}).ok());
  EXPECT_THAT(ValueOf(*model, "W"), ElementsAre(2, 3));
}

}  // namespace onward::gradient_test
