// SPDX-License-Identifier: Apache-2.0
// BatchNormalization and Dropout inside If, Loop, Scan and functions: each network trains like the
// one that is written without them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <ostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "environment/environment.h"
#include "tests/support/text_model.h"
#include "training_info/author.h"
#include "training_info/export.h"

namespace onward::training_bodies_test {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Pointwise;

constexpr char kWeights[] = R"(
    <float[2] s = {1, 1.5}, float[2] b = {0.1, 0.5}, float[2] mean = {0, 0.25},
     float[2] var = {1, 1.25}, float[2] mean2 = {0.5, -0.25}, float[2] var2 = {2, 1.5},
     float[2, 2] W = {1, -0.2, 0.3, 0.5}>)";

std::string Network(const std::string& nodes) {
  return absl::StrCat("m (float[N, 2] x, bool c, int64 n) => (float[N, 2] y)", kWeights,
                      "{ one = ", "Constant <value = float {1}> ()\n", nodes,
                      "\n y = MatMul (h, W) }");
}

std::string Normalized(const std::string& out, const std::string& in, const char* which = "") {
  return absl::StrCat(out, " = BatchNormalization <momentum = 0.75> (", in, ", s, b, mean", which,
                      ", var", which, ")\n");
}

TensorMap Batch(bool c, int64_t n) {
  return {{"x", Floats({3, 2}, {1, 10, 3, 30, -2, 5})},
          {"label", Int64s({0, 1, 1})},
          {"c", Tensor::Scalar<bool>(c)},
          {"n", Tensor::Scalar<int64_t>(n)}};
}

AuthorResult Made(const std::string& text, const AuthorOptions& options = {}) {
  auto made = MakeTrainable(TextModel(text), options, DefaultEnvironment());
  EXPECT_TRUE(made.ok()) << made.status();
  return made.ok() ? *std::move(made) : AuthorResult{};
}

std::unique_ptr<TrainingModel> Trained(const std::string& text, const TensorMap& batch,
                                       const AuthorOptions& options = {}) {
  auto model = Open(Reread(Made(text, options).model));
  for (int i = 0; i < 3; ++i) {
    const auto out = model->Step(batch);
    EXPECT_TRUE(out.ok()) << out.status();
  }
  return model;
}

struct Pair {
  const char* name;
  std::string inside, flat;
  bool c = true;
  int64_t n = 0;
};
void PrintTo(const Pair& pair, std::ostream* out) { *out << pair.name; }

std::string Branches() {
  return absl::StrCat("h = If (c) <then_branch = t () => (float[N, 2] p) {\n",
                      Normalized("p0", "x"),
                      "p = Tanh (p0) }, else_branch = e () => (float[N, 2] q) {\n",
                      Normalized("q0", "x", "2"), "q = Sin (q0) }>");
}

// Two of them learn the same statistics in each iteration.
std::string Repeated() {
  return absl::StrCat(
      "h = Loop (n, , x) <body = l (int64 i, bool go, float[N, 2] v) => (bool more, "
      "float[N, 2] next) {\n more = Identity (go)\n",
      Normalized("a", "v"), "b0 = Tanh (a)\n", Normalized("d", "b0"), "next = Add (d, x) }>");
}

std::string OneIteration(const std::string& in, const std::string& out) {
  return absl::StrCat(Normalized(out + "a", in), out, "b = Tanh (", out, "a)\n",
                      Normalized(out + "d", out + "b"), out, " = Add (", out, "d, x)\n");
}

std::string Scanned() {
  return absl::StrCat(
      "x2 = Mul (x, x)\n axes = Constant <value_ints = [0]> ()\n",
      "xs0 = Unsqueeze (x, axes)\n xs1 = Unsqueeze (x2, axes)\n xs = Concat <axis = 0> (xs0, "
      "xs1)\n",
      "h0 = Mul (x, one)\n h, all = Scan (h0, xs) <num_scan_inputs = 1, body = f (float[N, 2] v, "
      "float[N, 2] t) => (float[N, 2] next, float[N, 2] seen) {\n",
      Normalized("k", "t"), "next = Add (k, v)\n seen = Identity (k) }>");
}

// A branch in a loop in a branch.
std::string Nested() {
  return absl::StrCat(
      "h = If (c) <then_branch = t () => (float[N, 2] p) {\n",
      "p = Loop (n, , x) <body = l (int64 i, bool go, float[N, 2] v) => (bool more, float[N, 2] "
      "next) {\n more = Identity (go)\n odd = Cast <to = 9> (i)\n",
      "next = If (odd) <then_branch = t2 () => (float[N, 2] u) {\n", Normalized("u0", "v"),
      "u = Tanh (u0) }, else_branch = e2 () => (float[N, 2] w) {\n", Normalized("w0", "v", "2"),
      "w = Sin (w0) }> }> }, else_branch = e () => (float[N, 2] q) { q = Identity (x) }>");
}

std::vector<Pair> Pairs() {
  return {
      {"Then", Network(Branches()), Network(Normalized("p0", "x") + "h = Tanh (p0)")},
      {"Else", Network(Branches()), Network(Normalized("q0", "x", "2") + "h = Sin (q0)"), false},
      {"Loop", Network(Repeated()), Network(OneIteration("x", "r") + OneIteration("r", "h")), true,
       2},
      {"LoopNotRun", Network(Repeated()), Network("h = Identity (x)"), true, 0},
      {"Scan", Network(Scanned()),
       Network("x2 = Mul (x, x)\n h0 = Mul (x, one)\n" + Normalized("k0", "x") +
               Normalized("k1", "x2") + "h1 = Add (k0, h0)\n h = Add (k1, h1)")},
      {"Nested", Network(Nested()),
       Network(Normalized("w0", "x", "2") + "w1 = Sin (w0)\n" + Normalized("u0", "w1") +
               "h = Tanh (u0)"),
       true, 2},
      {"Function",
       Network("h = local.normal (x, s, b, mean, var)") +
           R"( <domain: "local", opset_import: ["" : 18]>
             normal (x, s, b, m, v) => (h) {
               p = BatchNormalization <momentum = 0.75> (x, s, b, m, v)
               h = Tanh (p)
             })",
       Network(Normalized("p0", "x") + "h = Tanh (p0)")},
  };
}

class TrainingBodies : public testing::TestWithParam<Pair> {};

// Statistics that the flat network does not have must not have changed in the other.
void ExpectSameState(const TrainingModel& actual, const TrainingModel& expected) {
  const Graph original = InferenceGraph(TextModel(Network("h = Identity (x)"))).value();
  for (const char* name : {"W", "s", "b", "mean", "var", "mean2", "var2"}) {
    const bool both = expected.variables().contains(name);
    ASSERT_TRUE(!both || actual.variables().contains(name)) << name;
    const bool weight = std::string(name) == "s" || std::string(name) == "b";
    if (!actual.variables().contains(name) || (weight && !both)) continue;
    const std::vector<double> values =
        both ? ValueOf(expected, name) : Values(original.initializers.at(name));
    EXPECT_THAT(ValueOf(actual, name), Pointwise(DoubleNear(1e-5), values)) << name;
  }
}

TEST_P(TrainingBodies, TrainsLikeTheFlatNetwork) {
  const TensorMap batch = Batch(GetParam().c, GetParam().n);
  for (const GradientForm form : {GradientForm::kOperator, GradientForm::kExpanded}) {
    AuthorOptions options;
    options.gradient = form;
    const auto actual = Trained(GetParam().inside, batch, options);
    ExpectSameState(*actual, *Trained(GetParam().flat, batch, options));
  }
}

TEST_P(TrainingBodies, FrozenStatisticsStay) {
  AuthorOptions options;
  options.freeze_statistics = true;
  const auto model = Trained(GetParam().inside, Batch(GetParam().c, GetParam().n), options);
  for (const char* name : {"mean", "var", "mean2", "var2"}) {
    EXPECT_FALSE(model->variables().contains(name)) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(TrainingInfo, TrainingBodies, testing::ValuesIn(Pairs()),
                         [](const auto& info) { return info.param.name; });

// The batch has means (2, 20) and variances (1, 100).
TEST(TrainingBodies, StatisticsOfABranchAreThoseOfItsBatch) {
  auto model = Open(Made(Network(Branches())).model);
  TensorMap batch = Batch(true, 0);
  batch["x"] = Floats({2, 2}, {1, 10, 3, 30});
  batch["label"] = Int64s({0, 1});
  ASSERT_TRUE(model->Step(batch).ok());
  EXPECT_THAT(ValueOf(*model, "mean"), ElementsAre(0.5, 5.1875));
  EXPECT_THAT(ValueOf(*model, "var"), ElementsAre(1, 25.9375));
  EXPECT_THAT(ValueOf(*model, "mean2"), ElementsAre(0.5, -0.25));
  EXPECT_THAT(ValueOf(*model, "var2"), ElementsAre(2, 1.5));
}

// Two layers that share their statistics update them one after the other.
TEST(TrainingBodies, SharedStatisticsAreUpdatedInTurn) {
  auto model = Open(Made(Network(Normalized("a", "x") + "k = Mul (x, x)\n" + Normalized("d", "k") +
                                 "h = Add (a, d)"))
                        .model);
  TensorMap batch = Batch(true, 0);
  batch["x"] = Floats({2, 2}, {1, 0, 3, 2});
  batch["label"] = Int64s({0, 1});
  ASSERT_TRUE(model->Step(batch).ok());
  // Means (2, 1) and (5, 2).
  EXPECT_THAT(ValueOf(*model, "mean"), ElementsAre((0 * 0.75 + 2 * 0.25) * 0.75 + 5 * 0.25,
                                                   (0.25 * 0.75 + 1 * 0.25) * 0.75 + 2 * 0.25));
}

// Whatever stands inside a branch is moved out, so that it can be written back.
TEST(TrainingBodies, StatisticsInsideABranchAreWrittenBack) {
  auto model = Open(Made(R"(m (float[N, 2] x, bool c) => (float[N, 2] y)
    <float[2, 2] W = {1, -0.2, 0.3, 0.5}> {
      h = If (c) <
        then_branch = t () => (float[N, 2] p) {
          s = Constant <value = float[2] {1, 1.5}> ()
          b = Constant <value = float[2] {0.1, 0.5}> ()
          mean = Constant <value = float[2] {0, 0.25}> ()
          var = Constant <value = float[2] {1, 1.25}> ()
          p = BatchNormalization <momentum = 0.75> (x, s, b, mean, var)
        },
        else_branch = e () => (float[N, 2] q) { q = Identity (x) }>
      y = MatMul (h, W)
    })")
                        .model);
  TensorMap batch = Batch(true, 0);
  batch.erase("n");
  batch["x"] = Floats({2, 2}, {1, 10, 3, 30});
  batch["label"] = Int64s({0, 1});
  ASSERT_TRUE(model->Step(batch).ok());
  EXPECT_THAT(ValueOf(*model, "mean"), ElementsAre(0.5, 5.1875));
}

// SequenceMap has nothing to carry statistics in.
TEST(TrainingBodies, StatisticsInAMapStay) {
  const AuthorResult made = Made(Network(R"(
      q = SequenceConstruct (x, x)
      r = SequenceMap (q) <body = f (float[N, 2] e) => (float[N, 2] o) {
        o = BatchNormalization (e, s, b, mean, var)
      }>
      zero = Constant <value = int64 {0}> ()
      h = SequenceAt (r, zero))"));
  auto model = Open(made.model);
  ASSERT_TRUE(model->Step(Batch(true, 0)).ok());
  EXPECT_FALSE(model->variables().contains("mean"));
}

TEST(TrainingBodies, DropoutInABranchDrops) {
  auto model = Open(Made(Network(R"(
      ratio = Constant <value = float {0.5}> ()
      h = If (c) <then_branch = t () => (float[N, 2] p) { p = Dropout (x, ratio) },
                  else_branch = e () => (float[N, 2] q) { q = Identity (x) }>)"))
                        .model);
  double first = 0;
  bool differs = false;
  for (int i = 0; i < 8; ++i) {
    const auto out = model->Step(Batch(true, 0), {"loss"});
    ASSERT_TRUE(out.ok()) << out.status();
    const double loss = Values(out->at("loss"))[0];
    differs = differs || (i > 0 && std::abs(loss - first) > 1e-2);
    if (i == 0) first = loss;
  }
  EXPECT_TRUE(differs);
}

}  // namespace onward::training_bodies_test
