// SPDX-License-Identifier: Apache-2.0
// Models with control flow are made trainable and trained.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "environment/environment.h"
#include "tests/support/text_model.h"
#include "training_info/author.h"

namespace onward::training_test {

using ::testing::Pointwise;
using ::testing::SizeIs;

// A Loop whose states the gradient needs, and an If behind it: two values in a row whose
// shapes only data can tell.
constexpr char kRecurrent[] = R"(
  m (float[N, 2] x, int64 n) => (float[N, 3] y)
  <float[2, 2] W = {0.1, -0.2, 0.3, 0.4}, float[2, 3] V = {0.7, -0.1, 0.2, 0.3, -0.4, 0.5}> {
    h = Loop (n, , x) <
      body = b (int64 i, bool c, float[N, 2] v) => (bool more, float[N, 2] next) {
        more = Identity (c)
        p = MatMul (v, W)
        q = Tanh (p)
        next = Add (q, x)
      }>
    two = Constant <value = int64 {2}> ()
    long = Greater (n, two)
    y = If (long) <
      then_branch = t () => (float[N, 3] a) { a = MatMul (h, V) },
      else_branch = e () => (float[N, 3] b) { s = Sin (h)  b = MatMul (s, V) }>
  })";

// The weights stand inside the branches, under one name.
constexpr char kWeightsInBranches[] = R"(
  m (float[N, 2] x, bool c) => (float[N, 3] y) {
    y = If (c) <
      then_branch = t () => (float[N, 3] a) {
        W = Constant <value = float[2, 3] {0.7, -0.1, 0.2, 0.3, -0.4, 0.5}> ()
        a = MatMul (x, W)
      },
      else_branch = e () => (float[N, 3] b) {
        W = Constant <value = float[2, 3] {0.2, 0.1, -0.2, 0.4, -0.4, 0.5}> ()
        s = MatMul (x, W)
        b = Tanh (s)
      }>
  })";

TensorMap Batch() {
  return {{"x", Floats({4, 2}, {1, 2, -1, 0.5, 3, -2, 0.25, 1})}, {"label", Int64s({0, 1, 2, 0})}};
}

AuthorResult Made(const std::string& text, GradientForm form) {
  AuthorOptions options;
  options.loss = {"cross_entropy", {}};
  options.gradient = form;
  auto made = MakeTrainable(TextModel(text), options, DefaultEnvironment());
  EXPECT_TRUE(made.ok()) << made.status();
  return made.ok() ? *std::move(made) : AuthorResult{};
}

std::vector<double> Losses(const AuthorResult& made, const TensorMap& feeds) {
  auto training = Open(made.model);
  std::vector<double> losses;
  for (int i = 0; i < 5; ++i) {
    auto out = training->Step(feeds, {"loss"});
    EXPECT_TRUE(out.ok()) << out.status();
    if (!out.ok()) break;
    losses.push_back(Values(out->at("loss"))[0]);
  }
  return losses;
}

TEST(ControlFlow, IsTrainedWithOneOperatorAndWrittenOut) {
  for (const int64_t n : {0, 2, 3}) {
    TensorMap feeds = Batch();
    feeds["n"] = Tensor::Scalar<int64_t>(n);
    const AuthorResult made = Made(kRecurrent, GradientForm::kOperator);
    EXPECT_THAT(made.trained, SizeIs(2));
    const std::vector<double> losses = Losses(made, feeds);
    ASSERT_THAT(losses, SizeIs(5)) << n;
    EXPECT_LT(losses.back(), losses.front()) << n;
    EXPECT_THAT(Losses(Made(kRecurrent, GradientForm::kExpanded), feeds),
                Pointwise(testing::DoubleNear(1e-5), losses))
        << n;
  }
}

TEST(ControlFlow, WeightsInBranchesAreTrained) {
  const AuthorResult made = Made(kWeightsInBranches, GradientForm::kOperator);
  EXPECT_THAT(made.trained, SizeIs(2));
  for (const bool c : {false, true}) {
    TensorMap feeds = Batch();
    feeds["c"] = Tensor::Scalar<bool>(c);
    const std::vector<double> losses = Losses(made, feeds);
    ASSERT_THAT(losses, SizeIs(5));
    EXPECT_LT(losses.back(), losses.front());
  }
}

}  // namespace onward::training_test
