// SPDX-License-Identifier: Apache-2.0
// The classifier that a new head replaces, as exporters write it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>

#include "environment/environment.h"
#include "tests/support/text_model.h"
#include "training_info/author.h"

namespace onward::head_test {

using testing::Contains;
using testing::HasSubstr;

constexpr int kClasses = 5;

AuthorOptions NewHead() {
  AuthorOptions options;
  options.head_classes = kClasses;
  return options;
}

struct HeadCase {
  std::string name, replaced, text;
  Tensor x;
  Shape y;
  std::string loss = "cross_entropy";
  std::map<std::string, std::string> loss_options = {};
};

void PrintTo(const HeadCase& c, std::ostream* out) { *out << c.name; }

constexpr char kOld[] = "<ir_version: 8, opset_import: [\"\" : 11]> ";

// Keras' Dense on more than two axes, as tf2onnx writes it: the target is computed in int32.
std::string Tensordot(const std::string& end) {
  return "m (float[N, T, 2] x) => (float[N, T, 3] y) <float[2, 3] W = {1, 2, 3, 4, 5, 6}, float[3] "
         "b = {1, 2, 3}, int64[2] flat = {-1, 2}, int64[2] free = {0, 1}, int32[1] units = {3}> {"
         "  all = Shape(x) small = Cast<to = 6>(all) kept = Gather(small, free)"
         "  sizes = Concat<axis = 0>(kept, units) target = Cast<to = 7>(sizes)"
         "  rows = Reshape(x, flat) p = MatMul(rows, W) q = Reshape(p, target) " +
         end + " }";
}

class Heads : public testing::TestWithParam<HeadCase> {};

TEST_P(Heads, AreReplaced) {
  AuthorOptions options = NewHead();
  options.loss = {GetParam().loss, GetParam().loss_options};
  const auto made = MakeTrainable(TextModel(GetParam().text), options, DefaultEnvironment());
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(made->notes, Contains(HasSubstr("(" + GetParam().replaced + ")")));
  auto model = Open(Reread(made->model));
  const auto y = model->Infer({{"x", GetParam().x}});
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ(y->at("y").shape(), GetParam().y);
}

INSTANTIATE_TEST_SUITE_P(
    Forms, Heads,
    testing::Values(
        HeadCase{"WeightInAnotherShape",
                 "w__head",
                 "m (float[N, 4] x) => (float[N, 2] y) <float[2, 2, 2] W = {1, 2, 3, 4, 5, 6, 7, "
                 "8}, int64[2] s = {4, 2}> { w = Reshape(W, s) y = MatMul(x, w) }",
                 Tensor::Zeros(DType::kFloat, {3, 4}),
                 {3, 5}},
        HeadCase{"TiedToAnEmbedding",
                 "w__head, b",
                 "m (int64[N] x) => (float[N, 3] y) <float[3, 2] W = {1, 2, 3, 4, 5, 6}, float[3] "
                 "b = {0, 0, 0}>"
                 "{ h = Gather(W, x) w = Transpose(W) p = MatMul(h, w) y = Add(p, b) }",
                 Int64s({0, 1, 2}),
                 {3, 5}},
        HeadCase{"WeightOfTwoLayers",
                 "W__head",
                 "m (float[N, 2] x) => (float[N, 2] y) <float[2, 2] W = {1, 2, 3, 4}>"
                 "{ h = MatMul(x, W) r = Relu(h) p = MatMul(r, W) y = Softmax(p) }",
                 Tensor::Zeros(DType::kFloat, {3, 2}),
                 {3, 5}},
        HeadCase{"OldSoftmax",
                 "W",
                 std::string(kOld) +
                     "m (float[N, 2] x) => (float[N, 2] y) <float[2, 2] W = {1, 2, 3, 4}>"
                     "{ p = MatMul(x, W) y = Softmax(p) }",
                 Tensor::Zeros(DType::kFloat, {3, 2}),
                 {3, 5}},
        HeadCase{"QuantizedWeight",
                 "w__head, b",
                 "m (float[N, 2] x) => (float[N, 3] y) <int8[2, 3] W = {1, 2, 3, 4, 5, 6}, float s "
                 "= {0.5}, float[3] b = {1, 2, 3}>"
                 "{ w = DequantizeLinear(W, s) p = MatMul(x, w) y = Add(b, p) }",
                 Tensor::Zeros(DType::kFloat, {3, 2}),
                 {3, 5}},
        HeadCase{"QuantizedScores",
                 "w__head, c__head",
                 "m (float[N, 2] x) => (float[N, 3] y) <int8[2, 3] W = {1, 2, 3, 4, 5, 6}, float s "
                 "= {0.5}, int32[3] b = {1, 2, 3}, float r = {0.25}, float q = {1}>"
                 "{ t = Identity(s) w = DequantizeLinear(W, t) c = DequantizeLinear(b, r)"
                 "  p = Gemm(x, w, c) i = QuantizeLinear(p, q) y = DequantizeLinear(i, q) }",
                 Tensor::Zeros(DType::kFloat, {3, 2}),
                 {3, 5}},
        HeadCase{"OneNumberForAllBehindTheBias",
                 "W, b",
                 "m (float[N, 2] x) => (float[N, 3] y) <float[2, 3] W = {1, 2, 3, 4, 5, 6}, "
                 "float[3] b = {1, 2, 3}, float t = {0.5}, float o = {1}>"
                 "{ p = Gemm(x, W, b) q = Mul(t, p) r = Add(q, o) y = Tanh(r) }",
                 Tensor::Zeros(DType::kFloat, {3, 2}),
                 {3, 5}},
        HeadCase{"ProductOfThreeAxes",
                 "W, b",
                 Tensordot("r = Add(q, b) y = Softmax(r)"),
                 Tensor::Zeros(DType::kFloat, {3, 4, 2}),
                 {3, 4, 5},
                 "cross_entropy",
                 {{"axis", "-1"}}},
        HeadCase{"ProductOfThreeAxesTransposed",
                 "W, b",
                 Tensordot("r = Add(q, b) y = Transpose<perm = [0, 1, 2]>(r)"),
                 Tensor::Zeros(DType::kFloat, {3, 4, 2}),
                 {3, 4, 5},
                 "cross_entropy",
                 {{"axis", "-1"}}},
        HeadCase{"ShapeInNumbers",
                 "W",
                 "m (float[2, 2] x) => (float[1, 2, 3] y) <float[2, 3] W = {1, 2, 3, 4, 5, 6}, "
                 "int64[3] s = {1, 2, 3}> { p = MatMul(x, W) y = Reshape(p, s) }",
                 Tensor::Zeros(DType::kFloat, {2, 2}),
                 {1, 2, 5},
                 "cross_entropy",
                 {{"axis", "-1"}}},
        HeadCase{"SoftmaxAsAFormula",
                 "W, b",
                 "m (float[N, 2] x) => (float[N, 3] y) <float[2, 3] W = {1, 2, 3, 4, 5, 6}, "
                 "float[1, 3] b = {1, 2, 3}, float low = {-1e30}, int64[1] last = {1}>"
                 "{ p = MatMul(x, W) z = Add(p, b) m = ReduceMax<keepdims = 0>(z, last)"
                 "  n = Max(low, m) u = Unsqueeze(n, last) d = Sub(z, u) e = Exp(d)"
                 "  s = ReduceSum<keepdims = 0>(e, last) v = Unsqueeze(s, last) y = Div(e, v) }",
                 Tensor::Zeros(DType::kFloat, {3, 2}),
                 {3, 5}},
        HeadCase{"LogSoftmaxAsAFormula",
                 "W",
                 "m (float[N, 2] x) => (float[N, 3] y) <float[2, 3] W = {1, 2, 3, 4, 5, 6}, "
                 "int64[1] last = {1}>"
                 "{ p = MatMul(x, W) e = Exp(p) s = ReduceSum(e, last) l = Log(s) y = Sub(p, l) }",
                 Tensor::Zeros(DType::kFloat, {3, 2}),
                 {3, 5}},
        HeadCase{"ConvolutionAndItsMean",
                 "W, b",
                 "m (float[N, 2, 4, 4] x) => (float[N, 3] y) <float[3, 2, 1, 1] W = {1, 2, 3, 4, "
                 "5, 6}, float[3] b = {1, 2, 3}, int64[2] s = {-1, 3}>"
                 "{ c = Conv(x, W, b) r = Relu(c) g = GlobalAveragePool(r) y = Reshape(g, s) }",
                 Tensor::Zeros(DType::kFloat, {3, 2, 4, 4}),
                 {3, 5}},
        HeadCase{"ConvolutionWithItsBiasApart",
                 "W, b",
                 "m (float[N, 2, 4, 4] x) => (float[N, 3, 4, 4] y) <float[3, 2, 1, 1] W = {1, 2, "
                 "3, 4, 5, 6}, float[1, 3, 1, 1] b = {1, 2, 3}> { c = Conv(x, W) y = Add(c, b) }",
                 Tensor::Zeros(DType::kFloat, {3, 2, 4, 4}),
                 {3, 5, 4, 4}},
        HeadCase{"ConvolutionWithClassesLast",
                 "W",
                 "m (float[N, 2, 4, 4] x) => (float[N, 16, 3] y) <float[3, 2, 1, 1] W = {1, 2, 3, "
                 "4, 5, 6}, int64[3] s = {-1, 16, 3}>"
                 "{ c = Conv(x, W) t = Transpose<perm = [0, 2, 3, 1]>(c) y = Reshape(t, s) }",
                 Tensor::Zeros(DType::kFloat, {3, 2, 4, 4}),
                 {3, 16, 5},
                 "cross_entropy",
                 {{"axis", "-1"}}}),
    [](const auto& info) { return info.param.name; });

TEST(MissingHeads, AreToldWithThePlaceAndTheRemedy) {
  const std::pair<const char*, const char*> cases[] = {
      {"m (float[2] x) => (float[2] y) <float[2] W = {1, 2}> { h = Mul(x, W) y = Relu(h) }",
       "no classifier was found before 'y': the way back ends at node '-> h' (Mul); --head "
       "replaces a last MatMul, Gemm or Conv with an initializer as weight: name another output "
       "with --train-output, or give the model a new last layer where it is made"},
      {"m (float[N, 2] x, float[2, 2] W) => (float[N, 2] y) { y = MatMul(x, W) }",
       "node '-> y' (MatMul), whose weight is computed"},
      {"m (float[N, 2, 4, 4] x) => (float[N, 2, 4, 4] y) <float[2, 1, 1, 1] W = {1, 2}>"
       "{ y = Conv<group = 2>(x, W) }",
       "a convolution in groups"},
      {"m (float[N, 2] x) => (float[N] y) <float[2, 1] W = {1, 2}, int64[1] one = {1}>"
       "{ p = MatMul(x, W) y = Squeeze(p, one) }",
       "what stands behind the classifier takes its old number of classes"},
      // Two boxes of three classes each.
      {"m (float[N, 2, 1, 1] x) => (float[N, 2, 3] y) <float[6, 2, 1, 1] W = {1, 2, 3, 4, 5, 6, 7, "
       "8, 9, 10, 11, 12}, int64[3] s = {-1, 2, 3}> { c = Conv(x, W) y = Reshape(c, s) }",
       "node '-> c' (Conv), whose classes 'y' does not keep apart"},
      {"m (float[N, 2] x, int64[3] s) => (float[N, 1, 2] y) <float[2, 2] W = {1, 2, 3, 4}>"
       "{ p = MatMul(x, W) y = Reshape(p, s) }",
       "node '-> y' (Reshape), whose shape is computed"},
      {"m (float[N, 2] x) => (float[N, 2] y) <float[2, 1] W = {1, 2}, float[2] b = {1, 2}>"
       "{ p = MatMul(x, W) y = Add(p, b) }",
       "whose bias is not one of classes"}};
  for (const auto& [text, expected] : cases) {
    const auto made = MakeTrainable(TextModel(text), NewHead(), DefaultEnvironment());
    EXPECT_THAT(made.status().ToString(), HasSubstr(expected)) << text;
  }
}

}  // namespace onward::head_test
