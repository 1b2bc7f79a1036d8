// SPDX-License-Identifier: Apache-2.0
// docs/training-info.md: a step whose new values are not all finite is no step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "environment/environment.h"
#include "tests/support/text_model.h"
#include "training_info/validate.h"

namespace onward::finite_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// A table E, whose rows 1 and 4 the step reads, and weights W; the gradient is x, or 2x
// for a row that is read twice.
constexpr char kHeader[] =
    "<ir_version: 8, opset_import: [\"\" : 18, \"ai.onnx.preview.training\" : 1, "
    "\"ai.onward\" : 1]>\n";
constexpr char kModel[] =
    "m (float[3] x) => (float[3] y) <float[3] W = {1, 2, 3}, float[9, 3] E = "
    "{1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9}> { y = Mul(x, W) }";

struct Row {
  std::string name, states, update;
  BindingTexts bindings;     // in the order of the file
  std::string first;         // that takes harm from a bad gradient
  std::string step = "";     // that the plan must have, if it matters
  std::string there = step;  // where a device has no kernel for single rows
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

constexpr char kTableGradient[] =
    "at = Constant <value_ints = [1, 4]> () rows = Gather(E, at) p = Mul(rows, x) "
    "loss = ReduceSum <keepdims = 0> (p) "
    "G = ai.onnx.preview.training.Gradient <xs = [\"E\"], y = \"loss\"> (E) ";

std::vector<Row> Rows() {
  const std::string training = "ai.onnx.preview.training.";
  const std::string states = "int64 T = {1}, float[3] V = {0, 0, 0}, float[3] H = {0, 0, 0}";
  return {
      {"Copied", "", "W_new = Add(W, x)", {{"W", "W_new"}}, "W"},
      {"Sgd", "", "W_new = ai.onward.SgdStep (R, W, x)", {{"W", "W_new"}}, "W", "SgdStep"},
      {"Momentum",
       states,
       "W_new, V_new = " + training +
           "Momentum <alpha = 0.9, beta = 1.0, norm_coefficient = 0.0, mode = \"standard\"> "
           "(R, T, W, x, V)",
       {{"V", "V_new"}, {"W", "W_new"}},
       "V",
       "Momentum"},
      {"Adagrad",
       states,
       "W_new, H_new = " + training + "Adagrad (R, T, W, x, H)",
       {{"W", "W_new"}, {"H", "H_new"}},
       "W",
       "Adagrad"},
      {"Adam",
       states,
       "W_new, V_new, H_new = " + training + "Adam (R, T, W, x, V, H)",
       {{"W", "W_new"}, {"V", "V_new"}, {"H", "H_new"}},
       "W",
       "Adam"},
      {"AdamW",
       states,
       "W_new, V_new, H_new = ai.onward.AdamWStep (R, T, W, x, V, H)",
       {{"H", "H_new"}, {"V", "V_new"}, {"W", "W_new"}},
       "H",
       "AdamWStep"},
      {"SgdRows",
       "",
       absl::StrCat(kTableGradient, "E_new = ai.onward.SgdStep (R, E, G)"),
       {{"E", "E_new"}},
       "E",
       "SgdRowsStep",
       "SgdStep"},
      {"AdagradRows",
       "int64 T = {1}, float[9, 3] S = {1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1}",
       absl::StrCat(kTableGradient, "E_new, S_new = ", training, "Adagrad (R, T, E, G, S)"),
       {{"E", "E_new"}, {"S", "S_new"}},
       "E",
       "AdagradRowsStep",
       "Adagrad"},
  };
}

std::string AlgorithmOf(const Row& row) {
  return absl::StrCat(
      "a (float R) => (",
      [&] {
        std::string outputs;
        for (const auto& [variable, value] : row.bindings) {
          absl::StrAppend(&outputs, outputs.empty() ? "" : ", ",
                          variable == "E" || variable == "S" ? "float[9, 3] " : "float[3] ", value);
        }
        return outputs;
      }(),
      ")", row.states.empty() ? "" : absl::StrCat(" <", row.states, ">"), " { ", row.update, " }");
}

Model ModelOf(const Row& row) {
  return TextModel(absl::StrCat(kHeader, kModel), {{AlgorithmOf(row), row.bindings}});
}

TensorMap Feeds(float rate, std::initializer_list<float> gradient) {
  TensorMap feeds = {{"x", Floats(gradient)}, {"R", Tensor::Scalar<float>(rate)}};
  return feeds;
}

Variables CopyOf(const TrainingModel& model) {
  Variables copy;
  for (const auto& [name, tensor] : model.variables()) copy.emplace(name, tensor.Clone());
  return copy;
}

const TrainingModel& Const(const std::unique_ptr<TrainingModel>& model) { return *model; }

class FiniteSteps : public testing::TestWithParam<Row> {};

TEST_P(FiniteSteps, OrNone) {
  const Row& row = GetParam();
  // With outputs named, updates are written in place; without, they are outputs too.
  for (const std::vector<std::string>& outputs : {std::vector<std::string>{"y"}, {}}) {
    auto model = Open(ModelOf(row)), good = Open(ModelOf(row));
    const auto expect_refused = [&](const TensorMap& feeds) {
      const Variables before = CopyOf(*model);
      const RandomState random = model->random();
      auto refused = model->Step(feeds, outputs);
      ASSERT_FALSE(refused.ok());
      EXPECT_EQ(refused.status().code(), absl::StatusCode::kOutOfRange);
      EXPECT_THAT(std::string(refused.status().message()),
                  HasSubstr(absl::StrCat("the new value of '", row.first, "' is not finite")));
      EXPECT_TRUE(SameVariables(before, Const(model).variables()));
      EXPECT_EQ(model->random().step, random.step);
    };
    // Nothing is known of the variables at first, their bounds later.
    for (int i = 0; i < 3; ++i) {
      for (const float bad : {kNan, kInf, -kInf}) expect_refused(Feeds(0.5f, {1, bad, 1}));
      if (HasFatalFailure()) return;
      for (auto* m : {&model, &good}) {
        const auto step = (*m)->Step(Feeds(0.5f, {1, -2, 0.5f}), outputs);
        ASSERT_TRUE(step.ok()) << step.status();
      }
    }
    EXPECT_TRUE(SameVariables(Const(model).variables(), Const(good).variables()));
    if (row.step.empty() || outputs.empty()) continue;
    auto executor = model->PrepareStep(0, Feeds(0.5f, {1, 1, 1}), outputs);
    ASSERT_TRUE(executor.ok());
    ASSERT_EQ((*executor)->plan().commit.size(), 1u) << (*executor)->plan().ToText();
    EXPECT_EQ((*executor)->plan().commit[0].node.op_type, OnDevice() ? row.there : row.step);
  }
}

INSTANTIATE_TEST_SUITE_P(TrainingInfo, FiniteSteps, testing::ValuesIn(Rows()),
                         [](const auto& info) { return info.param.name; });

const Row& RowNamed(const std::string& name) {
  static const auto* const rows = new std::vector<Row>(Rows());
  for (const Row& row : *rows) {
    if (row.name == name) return row;
  }
  throw std::invalid_argument(name);
}

std::string MessageOf(const absl::StatusOr<TensorMap>& result) {
  return std::string(result.status().message());
}

// Docs name this one: gradients are finite, the new values are not.
TEST(TrainingInfo, NonFiniteUpdateFailsTheStep) {
  auto sgd = Open(ModelOf(RowNamed("Sgd")));
  ASSERT_TRUE(sgd->Step(Feeds(0.5f, {0, 0, 0}), {"y"}).ok());
  EXPECT_THAT(MessageOf(sgd->Step(Feeds(1e30f, {0, 1e9f, 0}), {"y"})),
              HasSubstr("the new value of 'W' is not finite; nothing was updated"));
  EXPECT_THAT(ValueOf(*sgd, "W"), ElementsAre(1, 2, 3));
  // A square that is too large for the second moment alone.
  auto adam = Open(ModelOf(RowNamed("AdamW")));
  ASSERT_TRUE(adam->Step(Feeds(0.5f, {1, 1, 1}), {"y"}).ok());
  const std::vector<double> before = ValueOf(*adam, "W");
  EXPECT_THAT(MessageOf(adam->Step(Feeds(1e-3f, {1, 1e25f, 1}), {"y"})), HasSubstr("'H'"));
  EXPECT_EQ(ValueOf(*adam, "W"), before);
  EXPECT_TRUE(adam->Step(Feeds(1e-3f, {1, 1e15f, 1}), {"y"}).ok());
}

TEST(TrainingInfo, NonFiniteUpdateIsFoundAtTheEdge) {
  auto model = Open(ModelOf(RowNamed("Sgd")));
  for (int i = 1; i <= 3; ++i) {
    ASSERT_TRUE(model->Step(Feeds(1, {0, -1e38f, 0}), {"y"}).ok()) << i;
  }
  EXPECT_FALSE(model->Step(Feeds(1, {0, -1e38f, 0}), {"y"}).ok());
  EXPECT_NEAR(ValueOf(*model, "W")[1], 3e38, 1e32);
  EXPECT_TRUE(model->Step(Feeds(1, {0, 1e38f, 0}), {"y"}).ok());
}

TEST(TrainingInfo, NonFiniteUpdateIsFoundInChangedVariables) {
  auto model = Open(ModelOf(RowNamed("Sgd")));
  ASSERT_TRUE(model->Step(Feeds(1, {1, 1, 1}), {"y"}).ok());
  model->variables().at("W").data<float>()[2] = 3e38f;
  EXPECT_FALSE(model->Step(Feeds(1, {0, 0, -1e38f}), {"y"}).ok());
  model->variables().at("W").data<float>()[2] = kInf;
  EXPECT_THAT(MessageOf(model->Step(Feeds(1, {1, 1, 1}), {"y"})),
              HasSubstr("'W' holds NaN or infinity already before the step"));
  // Of a table, also in rows that the step does not touch.
  auto rows = Open(ModelOf(RowNamed("SgdRows")));
  ASSERT_TRUE(rows->Step(Feeds(1, {1, 1, 1}), {"y"}).ok());
  rows->variables().at("E").data<float>()[0] = kNan;
  EXPECT_THAT(MessageOf(rows->Step(Feeds(1, {1, 1, 1}), {"y"})), HasSubstr("'E' holds NaN"));
}

TEST(TrainingInfo, NonFiniteUpdateOfALaterEntryRestoresAll) {
  auto model = Open(TextModel(
      "m (float[1] x) => (float[1] y) <float[1] A = {1}, float[1] B = {10}> { y = Mul(x, A) }",
      {{"a0 () => (float[1] A_new) { A_new = Add(A, x) }", {{"A", "A_new"}}},
       {"a1 () => (float[1] B_new) { B_new = Mul(B, A) }", {{"B", "B_new"}}}}));
  const std::string message = MessageOf(model->Step({{"x", Floats({1e38f})}}));
  EXPECT_THAT(message, HasSubstr("training_info[1]"));
  EXPECT_THAT(message, HasSubstr("'B'"));
  EXPECT_THAT(ValueOf(*model, "A"), ElementsAre(1));
  EXPECT_THAT(ValueOf(*model, "B"), ElementsAre(10));
}

TEST(TrainingInfo, NonFiniteUpdateNamesTheFirstOfTheFile) {
  auto model = Open(TextModel(
      "m (float[1] x) => (float[1] y) <float[1] A = {1}, float[1] B = {1}, float[1] C = {1}> "
      "{ y = Mul(x, A) }",
      {{"a () => (float[1] A_new, float[1] B_new, float[1] C_new) "
        "{ A_new = Add(A, A) B_new = Add(B, x) C_new = Mul(C, x) }",
        {{"C", "C_new"}, {"B", "B_new"}, {"A", "A_new"}}}}));
  EXPECT_THAT(MessageOf(model->Step({{"x", Floats({kInf})}})),
              HasSubstr("the new value of 'C' is not finite (nor is that of 1 other variable)"));
  EXPECT_THAT(ValueOf(*model, "A"), ElementsAre(1));
}

// A variable may begin at infinity, if a step makes it finite; so may one that is not
// a floating-point number be anything.
TEST(TrainingInfo, NewValuesAloneMustBeFinite) {
  auto model = Open(TextModel(
      "m (float[1] x) => (float[1] y) <float[1] best = {1}, int64[1] n = {0}> { y = Neg(x) }",
      {{"a () => (float[1] best_new, int64[1] n_new) <int64[1] one = {1}> "
        "{ best_new = Min(best, x) n_new = Add(n, one) }",
        {{"best", "best_new"}, {"n", "n_new"}}}}));
  model->variables().at("best").data<float>()[0] = kInf;
  ASSERT_TRUE(model->Step({{"x", Floats({5})}}).ok());
  EXPECT_THAT(ValueOf(*model, "best"), ElementsAre(5));
}

TEST(TrainingInfo, CheckFindsNonFiniteVariables) {
  Model file = ModelOf(RowNamed("Sgd"));
  EXPECT_TRUE(CheckModel(file, DefaultEnvironment())->empty());
  auto model = Open(file);
  model->variables().at("W").data<float>()[1] = kNan;
  const auto findings = CheckModel(*model->Export(), DefaultEnvironment());
  ASSERT_TRUE(findings.ok());
  ASSERT_EQ(findings->size(), 1u);
  EXPECT_EQ(findings->front().rule, "non-finite-value");
  EXPECT_THAT(findings->front().what, HasSubstr("'W'"));
}

}  // namespace onward::finite_test
