// SPDX-License-Identifier: Apache-2.0
// Models that compute derivatives: several values, seeds, values where gradients stop, the
// Hessian, and gradients of what a gradient model computes.
#include "training_info/gradient_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/verify.h"
#include "core/runtime/session.h"
#include "tests/support/test_environment.h"
#include "tests/support/text_model.h"
#include "training_info/lower.h"

namespace onward::gradient_model_test {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

GradientModel Made(const Model& model, const GradientRequest& request) {
  auto made = MakeGradientModel(model, request, DefaultEnvironment());
  EXPECT_TRUE(made.ok()) << made.status();
  if (!made.ok()) return {};
  // What is written is read again, and is a valid graph of standard operators.
  made->model = Reread(made->model);
  auto graph = InferenceGraph(made->model);
  EXPECT_TRUE(graph.ok()) << graph.status();
  for (const Finding& finding : CheckGraph(*graph)) ADD_FAILURE() << finding.ToString();
  for (const Node& node : graph->nodes) EXPECT_EQ(node.domain, "") << node.Describe();
  return *std::move(made);
}

std::string Refused(const Model& model, const GradientRequest& request) {
  const auto made = MakeGradientModel(model, request, DefaultEnvironment());
  EXPECT_FALSE(made.ok());
  return std::string(made.status().message());
}

TensorMap Results(const Model& model, const TensorMap& feeds) {
  auto graph = RunnableGraph(model, DefaultEnvironment());
  EXPECT_TRUE(graph.ok()) << graph.status();
  CompileOptions options = TestEnvironment().compile_options();
  auto results = Session(*std::move(graph), options).Run(feeds, nullptr);
  EXPECT_TRUE(results.ok()) << results.status();
  return results.ok() ? *results : TensorMap{};
}

// y = sum(x^2 * w)
Model Cubic() {
  return TextModel(
      "m (float[N] x, float[N] w) => (float y, float[N] p) { "
      "s = Mul(x, x) p = Mul(s, w) y = ReduceSum <keepdims = 0> (p) }");
}

const TensorMap& Point() {
  static const auto* const feeds = new TensorMap{{"x", Floats({2, 3})}, {"w", Floats({5, 7})}};
  return *feeds;
}

TEST(GradientModel, DifferentiatesWhatItWrote) {
  const GradientModel first = Made(Cubic(), {{"y"}, {"x", "w"}});
  ASSERT_THAT(first.gradients, ElementsAre("x__grad", "w__grad"));
  const GradientModel second = Made(first.model, {{"x__grad"}, {"x", "w"}});
  EXPECT_THAT(second.gradients, ElementsAre("x__grad_2", "w__grad_2"));
  const GradientModel again = Made(second.model, {{"w__grad_2"}, {"x"}});
  ASSERT_THAT(again.gradients, ElementsAre("x__grad_3"));
  const TensorMap out = Results(again.model, Point());
  EXPECT_THAT(Values(out.at("x__grad")), ElementsAre(20, 42));    // 2xw
  EXPECT_THAT(Values(out.at("x__grad_2")), ElementsAre(10, 14));  // 2w
  EXPECT_THAT(Values(out.at("w__grad_2")), ElementsAre(4, 6));    // 2x
  EXPECT_THAT(Values(out.at("x__grad_3")), ElementsAre(2, 2));
}

TEST(GradientModel, MultipliesWithTheHessian) {
  const GradientModel made = Made(Cubic(), {.ys = {"y"}, .xs = {"x", "w"}, .hessian_vector = true});
  ASSERT_THAT(made.vectors, ElementsAre("x__vector", "w__vector"));
  ASSERT_THAT(made.products, ElementsAre("x__hvp", "w__hvp"));
  TensorMap feeds = Point();
  feeds["x__vector"] = Floats({1, 10});
  feeds["w__vector"] = Floats({100, 1000});
  const TensorMap out = Results(made.model, feeds);
  EXPECT_THAT(Values(out.at("x__grad")), ElementsAre(20, 42));
  EXPECT_THAT(Values(out.at("x__hvp")), ElementsAre(10 * 1 + 4 * 100, 14 * 10 + 6 * 1000));
  EXPECT_THAT(Values(out.at("w__hvp")), ElementsAre(4 * 1, 6 * 10));
}

TEST(GradientModel, StartsFromSeeds) {
  const Model model = TextModel(
      "m (float[2] x, float[2] c) => (float[2] u, float[2] v) { u = Mul(x, x) v = Neg(x) }");
  const GradientModel made =
      Made(model, {.ys = {"u", "v"}, .xs = {"x"}, .seeds = {{"u", "u_seed"}, {"v", "c"}}});
  const TensorMap out =
      Results(made.model,
              {{"x", Floats({2, 3})}, {"c", Floats({1000, 2000})}, {"u_seed", Floats({1, 10})}});
  EXPECT_THAT(Values(out.at("x__grad")), ElementsAre(4 - 1000, 60 - 2000));
  // Without seeds, ones.
  const GradientModel plain = Made(model, {{"u", "v"}, {"x"}});
  EXPECT_THAT(
      Values(Results(plain.model, {{"x", Floats({2, 3})}, {"c", Floats({0, 0})}}).at("x__grad")),
      ElementsAre(4 - 1, 6 - 1));
}

// y = x * W, trained with loss = sum((y - t)^2).
Model Trainable() {
  return TextModel("m (float[2] x) => (float[2] y) <float[2] W = {3, 5}> { y = Mul(x, W) }",
                   {{.algorithm = "a (float[2] t, float unread) => (float loss, float[2] W_new) { "
                                  "d = Sub(y, t) q = Mul(d, d) loss = ReduceSum <keepdims = 0> (q) "
                                  "g = ai.onnx.preview.training.Gradient <xs = [\"W\"], y = "
                                  "\"loss\"> (W) W_new = Sub(W, g) }",
                     .update = {{"W", "W_new"}}}});
}

TEST(GradientModel, ReachesTheLossOfATrainingGraph) {
  const GradientModel made = Made(Trainable(), {{"loss"}, {"W", "x"}});
  auto graph = InferenceGraph(made.model);
  ASSERT_TRUE(graph.ok()) << graph.status();
  std::vector<std::string> inputs, outputs;
  for (const NamedType& in : graph->FeedInputs()) inputs.push_back(in.name);
  for (const NamedType& out : graph->outputs) outputs.push_back(out.name);
  EXPECT_THAT(inputs, ElementsAre("x", "t"));
  EXPECT_THAT(outputs, ElementsAre("y", "loss", "W__grad", "x__grad"));
  const TensorMap out = Results(made.model, {{"x", Floats({1, 2})}, {"t", Floats({1, 1})}});
  EXPECT_THAT(Values(out.at("loss")), ElementsAre(4 + 81));
  EXPECT_THAT(Values(out.at("W__grad")), ElementsAre(2 * 2 * 1, 2 * 9 * 2));
  EXPECT_THAT(Values(out.at("x__grad")), ElementsAre(2 * 2 * 3, 2 * 9 * 5));
}

TEST(GradientModel, NamesWhatIsThereForWhatIsNot) {
  EXPECT_THAT(Refused(Trainable(), {{"lost"}, {"w"}}),
              AllOf(HasSubstr("has no --of 'lost', --wrt 'w'"), HasSubstr("its outputs are y"),
                    HasSubstr("its inputs x"), HasSubstr("its weights W"),
                    HasSubstr("its training graph also gives loss, W_new")));
  // The loss is there.
  EXPECT_THAT(Refused(Trainable(), {{"loss"}, {"w"}}), HasSubstr("has no --wrt 'w'; "));
}

TEST(GradientModel, StopsWhereItIsTold) {
  // p = s * w with s = x^2 + w: past s nothing counts.
  const Model model = TextModel(
      "m (float[2] x, float[2] w) => (float[2] p) { q = Mul(x, x) s = Add(q, w) p = Mul(s, w) }");
  const GradientModel made = Made(model, {.ys = {"p"}, .xs = {"x", "w"}, .stop = {"s"}});
  const TensorMap out = Results(made.model, Point());
  EXPECT_THAT(Values(out.at("x__grad")), ElementsAre(0, 0));
  EXPECT_THAT(Values(out.at("w__grad")), ElementsAre(9, 16));
  // What is asked for gets its own gradient.
  const GradientModel inner = Made(model, {.ys = {"p"}, .xs = {"s"}, .stop = {"s"}});
  EXPECT_THAT(Values(Results(inner.model, Point()).at("s__grad")), ElementsAre(5, 7));
}

TEST(GradientModel, SaysWhatIsWrong) {
  EXPECT_THAT(Refused(Cubic(), {.ys = {"y"}, .xs = {"x"}, .stop = {"none"}}), HasSubstr("'none'"));
  EXPECT_THAT(Refused(Cubic(), {.ys = {"y"}, .xs = {"x"}, .seeds = {{"p", "v"}}}),
              HasSubstr("a seed is given for 'p', which is not differentiated"));
  EXPECT_THAT(Refused(Cubic(), {.ys = {"y"}, .xs = {"x"}, .order = 2, .hessian_vector = true}),
              HasSubstr("second order already"));
  EXPECT_THAT(Refused(Cubic(), {.ys = {}, .xs = {"x"}}), HasSubstr("at least one value"));
}

// Every obstacle, every x, in one message.
TEST(GradientModel, ReportsAllObstaclesAtOnce) {
  const Model model = TextModel(
      "<ir_version: 8, opset_import: [\"\" : 18, \"one\" : 1]> "
      "m (float[2] x) => (float[2] y) <float[2] A = {1, 2}, float[2] B = {3, 4}, float[2] C = {5, "
      "6}, "
      "float[2] D = {7, 8}> { a = Mul(x, A) b = one.Riddle(a) c = Mul(b, B) d = one.Mystery(c) "
      "e = Mul(d, C) g = Floor(D) y = Add(e, g) }");
  const std::string message = Refused(model, {{"y"}, {"A", "B", "C", "D"}});
  EXPECT_THAT(message,
              AllOf(HasSubstr("no gradient passes 2 nodes"), HasSubstr("one.Riddle"),
                    HasSubstr("blocks A\n"), HasSubstr("one.Mystery"), HasSubstr("blocks A, B\n"),
                    HasSubstr("1 of 4 would get a gradient: C"), HasSubstr("--plugin")));
}

// Those in bodies too, in bodies of bodies, and in both branches, each by itself.
TEST(GradientModel, ReportsObstaclesWithinBodies) {
  const Model model = TextModel(R"(
    <ir_version: 8, opset_import: ["" : 18, "one" : 1]>
    m (float[2] x, bool c, int64 n) => (float[2] y) <float[2] A = {1, 2}, float[2] B = {3, 4}> {
      a = Mul (x, A)
      [outer] l = Loop (n, , a) <body = b (int64 i, bool d, float[2] v) => (bool more, float[2] next) {
          more = Identity (d)
          [first] p = one.Riddle (v)
          [second] q = one.Mystery (p)
          [inner] next = If (c) <
            then_branch = t () => (float[2] e) { [third] e = one.Riddle (q) },
            else_branch = f () => (float[2] g) { [fourth] g = one.Mystery (q) }>
        }>
      [last] r = one.Puzzle (l)
      y = Mul (r, B)
    })");
  const std::string message = Refused(model, {{"y"}, {"A", "B"}});
  EXPECT_THAT(
      message,
      AllOf(HasSubstr("no gradient passes 5 nodes"),
            HasSubstr("one.Riddle at node 'first' (one.Riddle), in the body of node 'outer'"),
            HasSubstr("one.Mystery at node 'second' (one.Mystery), in the body of node "
                      "'outer'"),
            HasSubstr("'third' (one.Riddle), in the body of node 'inner' (If), in the body "
                      "of node 'outer'"),
            HasSubstr("one.Mystery at node 'fourth'"), HasSubstr("one.Puzzle at node 'last'"),
            HasSubstr("1 of 2 would get a gradient: B")));
}

// What is drawn cannot be handed to the gradient where nothing tells its type; all of the nodes
// that draw such numbers are named.
TEST(GradientModel, NamesWhatDrawsNumbersOfUnknownTypes) {
  const Model model = TextModel(R"(
    <ir_version: 8, opset_import: ["" : 18, "one" : 1]>
    m (float[2] x, float[2] w, bool c) => (float[2] y) {
      u = one.Riddle (w)
      y = If (c) <
        then_branch = t () => (float[2] a) {
          [one] p = RandomNormalLike (u)
          [two] q = RandomUniformLike (u)
          r = Mul (p, x)
          a = Mul (r, q)
        },
        else_branch = e () => (float[2] b) { b = Identity (x) }>
    })");
  EXPECT_THAT(Refused(model, {{"y"}, {"x"}}),
              AllOf(HasSubstr("'one'"), HasSubstr("'two'"), HasSubstr("Declare the types")));
}

// ConstantOfShape, which the ones of the seed would be, has bfloat16 from opset 20 on only.
TEST(GradientModel, Bfloat16OfOldOpsets) {
  const Model model = TextModel(R"(<ir_version: 8, opset_import: ["" : 15]>
    m (bfloat16[N] x) => (bfloat16[N] y) { y = Mul (x, x) })");
  const GradientModel made = Made(model, {{"y"}, {"x"}});
  const Tensor x = RoundedTo(DType::kBFloat16, Floats({1.5, -2}));
  EXPECT_THAT(Values(Results(made.model, {{"x", x}}).at("x__grad")), ElementsAre(3, -4));
}

// The standard has 16 bits from opset 21 on, onnxruntime's operators at any.
TEST(GradientModel, QuantizationOf16BitsIsWrittenWithAnOpsetThatHasIt) {
  const Model model = TextModel(R"(<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
    m (float[2] x) => (float[2] y) <float s = {0.5}, uint16 z = {300}> {
      q = com.microsoft.QuantizeLinear (x, s, z)
      d = com.microsoft.DequantizeLinear (q, s, z)
      y = Mul (d, d)
    })");
  const GradientModel made = Made(model, {{"y"}, {"x"}});
  EXPECT_THAT(Values(Results(made.model, {{"x", Floats({1.5, -2})}}).at("x__grad")),
              ElementsAre(3, -4));
}

// A file of ai.onnx.ml alone need not import ai.onnx; its gradient does.
TEST(GradientModel, ImportsTheStandardWhereTheFileDoesNot) {
  const Model model = TextModel(R"(<ir_version: 8, opset_import: ["ai.onnx.ml" : 3]>
    m (float[1, 2] x) => (float[1, 2] y) {
      y = ai.onnx.ml.Scaler <offset = [1.0, 2.0], scale = [3.0, 5.0]> (x)
    })");
  auto made = MakeGradientModel(model, {{"y"}, {"x"}}, DefaultEnvironment());
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(Values(Results(Reread(made->model), {{"x", Floats({1, 2}, {1, 1})}}).at("x__grad")),
              ElementsAre(3, 5));
}

}  // namespace onward::gradient_model_test
