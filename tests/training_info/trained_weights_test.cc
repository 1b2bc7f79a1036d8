// SPDX-License-Identifier: Apache-2.0
// What MakeTrainable makes of weights that are named, copied, shared or repeated.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "environment/environment.h"
#include "tests/support/text_model.h"
#include "training_info/author.h"
#include "training_info/export.h"
#include "training_info/import.h"
#include "training_info/surgery/surgery.h"

namespace onward::trained_weights_test {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Error(const Model& model, const AuthorOptions& options) {
  return std::string(MakeTrainable(model, options, DefaultEnvironment()).status().message());
}

TEST(MakeTrainable, NamesTakeWhatIsNoWeight) {
  const Model model = TextModel(
      "m (float[N, 2] x) => (float[N, 2] y) <float[2, 2] W = {1, 2, 3, 5}, float t = {2}, float[2] "
      "mean = {1, 2}> { c = Constant <value_float = 0.5> () d = Sub(x, mean) p = MatMul(d, W) q = "
      "Mul(p, t) y = Mul(q, c) }");
  AuthorOptions options;
  EXPECT_THAT(MakeTrainable(model, options, DefaultEnvironment())->trained, ElementsAre("W"));
  options.train = {"*"};
  EXPECT_THAT(MakeTrainable(model, options, DefaultEnvironment())->trained, ElementsAre("W"));
  options.train = {"*", "t", "c"};
  EXPECT_THAT(MakeTrainable(model, options, DefaultEnvironment())->trained,
              ElementsAre("W", "c", "t"));
  options.train = {"me*"};
  EXPECT_THAT(MakeTrainable(model, options, DefaultEnvironment())->trained, ElementsAre("mean"));
  options.train = {"nothing*"};
  EXPECT_THAT(Error(model, options), HasSubstr("there are: W"));
}

TEST(MakeTrainable, SaysWhatItLeaves) {
  auto made = MakeTrainable(
      TextModel("m (float[N, 2] x) => (float[N, 2] y) <float[2, 2] W = {1, 2, 3, 5}, float[2] mean "
                "= {1, 2}> { d = Sub(x, mean) y = MatMul(d, W) }"),
      {}, DefaultEnvironment());
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(made->notes,
              Contains("trains 1 of 2 float constants: W (weight of MatMul); leaves mean (applied "
                       "to the input before any layer). --train '*' --train NAME takes one of "
                       "these, too; `onward inspect` lists all"));
}

constexpr char kTied[] = R"(m (int64[N] x) => (float[N, 3] y)
    <float[3, 2] E = {1, 2, 3, 4, 5, 7}, float[2, 3] val_9 = {1, 3, 5, 2, 4, 7}>
    { h = Gather(E, x) y = MatMul(h, val_9) })";

TEST(MakeTrainable, TransposedCopiesTrainAsOne) {
  const Model original = TextModel(kTied);
  AuthorOptions options;
  options.optimizer = {"sgd", {{"lr", 0.1}}};
  auto made = MakeTrainable(original, options, DefaultEnvironment());
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(made->trained, ElementsAre("E"));
  EXPECT_THAT(made->notes, Contains(HasSubstr("'val_9' is 'E' transposed")));
  auto model = Open(Reread(made->model));
  const TensorMap feeds = {{"x", Int64s({0, 2})}, {"label", Int64s({1, 2})}};
  ASSERT_TRUE(model->Step(feeds).ok());
  // The gradient reaches row 1 only through the output.
  const std::vector<double> e = ValueOf(*model, "E");
  EXPECT_NE(e[2], 3);
  // Both places of the original get the value.
  auto like = ExportLike(*model->Export(), original, DefaultEnvironment());
  ASSERT_TRUE(like.ok()) << like.status();
  const Graph graph = InferenceGraph(*like).value();
  EXPECT_EQ(Values(graph.initializers.at("E")), e);
  EXPECT_THAT(Values(graph.initializers.at("val_9")),
              ElementsAre(e[0], e[2], e[4], e[1], e[3], e[5]));
  // Either name means the weight.
  options.train = {"val_9"};
  EXPECT_THAT(MakeTrainable(original, options, DefaultEnvironment())->trained, ElementsAre("E"));
}

TEST(MakeTrainable, EqualButSymmetricIsNotTied) {
  auto made = MakeTrainable(
      TextModel("m (float[N, 2] x) => (float[N, 2] y) <float[2, 2] A = {1, 2, 2, 5}, float[2, 2] B "
                "= {1, 2, 2, 5}> { h = MatMul(x, A) y = MatMul(h, B) }"),
      {}, DefaultEnvironment());
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(made->trained, ElementsAre("A", "B"));
}

constexpr char kShared[] = R"(m (float[N, 2] x) => (float[N, 2] y)
    <float[2] val_70 = {1, 1}, float[2] zero = {0, 0}, float[2, 2] W = {1, 2, 3, 5}> {
      a = LayerNormalization(x, val_70, zero)
      h = MatMul(a, W)
      y = LayerNormalization(h, val_70, zero)
    })";

TEST(MakeTrainable, PatternsReachSplitCopies) {
  AuthorOptions options;
  EXPECT_THAT(MakeTrainable(TextModel(kShared), options, DefaultEnvironment())->trained,
              ElementsAre("W", "val_70", "val_70__2", "zero", "zero__2"));
  options.train = {"val_70"};
  EXPECT_THAT(MakeTrainable(TextModel(kShared), options, DefaultEnvironment())->trained,
              ElementsAre("val_70", "val_70__2"));
  options.train = {};
  options.freeze = {"zero", "W"};
  EXPECT_THAT(MakeTrainable(TextModel(kShared), options, DefaultEnvironment())->trained,
              ElementsAre("val_70", "val_70__2"));
  options.freeze = {"val_70__2"};
  EXPECT_THAT(MakeTrainable(TextModel(kShared), options, DefaultEnvironment())->trained,
              ElementsAre("W", "val_70", "zero", "zero__2"));
}

TEST(Export, LikeGivesSplitCopiesTheirOwnTensor) {
  // The second form names the copy in an Identity node.
  const std::string named = R"(m (float[N, 2] x) => (float[N, 2] y)
      <float[2] val_70 = {1, 1}, float[2] zero = {0, 0}, float[2, 2] W = {1, 2, 3, 5}> {
        second = Identity(val_70)
        a = LayerNormalization(x, val_70, zero)
        h = MatMul(a, W)
        y = LayerNormalization(h, second, zero)
      })";
  for (const std::string& text : {std::string(kShared), named}) {
    const Model original = TextModel(text);
    auto made = MakeTrainable(original, {}, DefaultEnvironment());
    ASSERT_TRUE(made.ok()) << made.status();
    auto model = Open(Reread(made->model));
    const TensorMap feeds = {{"x", Floats({2, 2}, {1, 2, 4, 3})}, {"label", Int64s({1, 0})}};
    ASSERT_TRUE(model->Step(feeds).ok());
    const Model trained = *model->Export();
    for (const Model& from : {trained, InferenceOnly(trained)}) {
      auto like = ExportLike(from, original, DefaultEnvironment());
      ASSERT_TRUE(like.ok()) << like.status();
      auto plain = MakeTrainable(*like, {}, DefaultEnvironment());
      ASSERT_TRUE(plain.ok()) << plain.status();
      EXPECT_EQ(Values(Open(plain->model)->Infer({{"x", feeds.at("x")}})->at("y")),
                Values(model->Infer({{"x", feeds.at("x")}})->at("y")));
    }
  }
}

// A tensor that is no weight anywhere is not split, and so `--like` has nothing to place.
TEST(MakeTrainable, SharedConstantsStayShared) {
  const Model model = TextModel(R"(m (float[N, 2] x) => (float[N, 2] y)
      <float[1] one = {1}, float[2, 2] W = {1, 2, 3, 5}> {
        a = Add(x, one) b = Mul(a, one) h = MatMul(b, W) y = Add(h, one)
      })");
  auto made = MakeTrainable(model, {}, DefaultEnvironment());
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(made->notes, Not(Contains(HasSubstr("copy of its own"))));
  EXPECT_EQ(InferenceGraph(made->model)->initializers.size(), 2u);
}

// A class token that was repeated for a batch of two, as one weight again.
TEST(MakeTrainable, RepeatedRowsTrainAsOne) {
  const Model original = TextModel(
      "m (float[2, 1, 2] x) => (float[2, 2, 2] y) <float[2, 2] W = {1, 2, 3, 5}, float[2, 2] V = "
      "{1, 3, 2, 7}, float[2, 1, 2] expand = {0.5, 0.25, 0.5, 0.25}> { p = MatMul(x, W) c = Concat "
      "<axis = 1> (expand, p) y = MatMul(c, V) }");
  AuthorOptions options;
  options.loss = {"mse", {}};
  auto made = MakeTrainable(original, options, DefaultEnvironment());
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(made->trained, ElementsAre("V", "W", "expand__row"));
  auto model = Open(Reread(made->model));
  ASSERT_TRUE(model
                  ->Step({{"x", Floats({2, 1, 2}, {1, 2, 3, 4})},
                          {"label", Floats({2, 2, 2}, {0, 1, 2, 3, 9, 8, 7, 6})}})
                  .ok());
  auto like = ExportLike(*model->Export(), original, DefaultEnvironment());
  ASSERT_TRUE(like.ok()) << like.status();
  const std::vector<double> rows = Values(InferenceGraph(*like)->initializers.at("expand"));
  EXPECT_NE(rows[0], 0.5);
  EXPECT_EQ(rows[0], rows[2]);
  EXPECT_EQ(rows[1], rows[3]);
}

// Keras has one bias for an LSTM; tf2onnx leaves zeros for the other.
TEST(MakeTrainable, TheZeroHalfOfARecurrentBiasStaysZero) {
  const Model original = TextModel(
      "m (float[T, N, 2] x) => (float[T, 1, N, 2] y) <float[1, 2, 2] W = {1, 2, 3, 5}, float[1, 2, "
      "2] R = {1, 2, 3, 5}, float[1, 4] B = {0.5, 0, 0, 0}> { y = RNN <hidden_size = 2> (x, W, R, "
      "B) }");
  AuthorOptions options;
  options.loss = {"mse", {}};
  options.optimizer = {"sgd", {{"lr", 0.1}}};
  auto made = MakeTrainable(original, options, DefaultEnvironment());
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(made->trained, ElementsAre("B__input", "R", "W"));
  auto model = Open(Reread(made->model));
  ASSERT_TRUE(
      model->Step({{"x", Floats({1, 1, 2}, {0.1, 0.2})}, {"label", Floats({1, 1, 1, 2}, {0, 0})}})
          .ok());
  auto like = ExportLike(*model->Export(), original, DefaultEnvironment());
  ASSERT_TRUE(like.ok()) << like.status();
  const std::vector<double> b = Values(InferenceGraph(*like)->initializers.at("B"));
  EXPECT_NE(b[0], 0.5);
  EXPECT_THAT(std::vector<double>(b.begin() + 2, b.end()), ElementsAre(0, 0));
}

}  // namespace onward::trained_weights_test
