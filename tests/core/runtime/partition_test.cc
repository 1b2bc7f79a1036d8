// SPDX-License-Identifier: Apache-2.0
// Which device runs what, what is copied, and that the results are those of the CPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autograd/differentiate.h"
#include "core/runtime/plan/plan.h"
#include "core/runtime/session.h"
#include "environment/environment.h"
#include "tests/support/far_device.h"
#include "tests/support/far_training.h"
#include "tests/support/text_model.h"
#include "training_info/author.h"
#include "training_info/lower.h"
#include "training_info/step.h"

namespace onward::partition_test {

using testing::ElementsAreArray;
using testing::HasSubstr;

struct Row {
  std::string name;
  std::string graph;
  std::vector<FarOptions> devices;
  // Of the plan's text, without the arenas.
  std::vector<std::string> steps;
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

Tensor Counting(const ValueType& type) {
  Tensor t(type.dtype, *type.StaticShape());
  for (int64_t i = 0; i < t.elements(); ++i) {
    const double value = 0.25 + static_cast<double>(i % 7) - 2;
    if (type.dtype == DType::kFloat) t.data<float>()[i] = static_cast<float>(value);
    if (type.dtype == DType::kInt64) t.data<int64_t>()[i] = i % 3;
    if (type.dtype == DType::kBool) t.data<bool>()[i] = true;
  }
  return t;
}

class Partition : public testing::TestWithParam<Row> {};

TEST_P(Partition, IsThisPlan) {
  const Row& row = GetParam();
  const Far far(row.devices);
  auto graph = RunnableGraph(TextModel(row.graph), *far.environment);
  ASSERT_TRUE(graph.ok()) << graph.status();
  TensorMap feeds;
  for (const NamedType& in : graph->inputs) {
    if (!graph->initializers.contains(in.name)) feeds[in.name] = Counting(in.type);
  }
  {
    std::string text;
    int copies = 0;
    CompileOptions options = far.environment->compile_options();
    options.planned = [&](const Plan& plan) {
      absl::StrAppend(&text, plan.ToText());
      copies += CopiesOf(plan);
    };
    Session session(*graph, options);
    const auto found = session.Run(feeds, nullptr);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_THAT(StepLines(text), ElementsAreArray(row.steps)) << text;
    EXPECT_EQ(far.counters->copies_in + far.counters->copies_out, copies);
    const auto expected =
        Session(*graph, DefaultEnvironment().compile_options()).Run(feeds, nullptr);
    ASSERT_TRUE(expected.ok()) << expected.status();
    for (const auto& [name, tensor] : *expected) {
      EXPECT_TRUE(Identical(found->at(name), tensor)) << name;
    }
  }
  EXPECT_EQ(far.counters->live_bytes, 0);
}

const FarOptions kAll;
const FarOptions kNone{.only = {"Nothing"}};

INSTANTIATE_TEST_SUITE_P(
    Plans, Partition,
    testing::ValuesIn(std::vector<Row>{
        {"All",
         "g (float[4,8] x, float[8,8] w) => (float[4,8] y) { a = MatMul(x, w) y = Softmax(a) }",
         {kAll},
         {"x = Copy(x)  @cpu -> far", "w = Copy(w)  @cpu -> far", "a = MatMul(x, w)  @far",
          "y = Softmax(a)  @far", "y = Copy(y)  @far -> cpu"}},
        {"None",
         "g (float[4,8] x, float[8,8] w) => (float[4,8] y) { a = MatMul(x, w) y = Softmax(a) }",
         {kNone},
         {"a = MatMul(x, w)  @cpu (no kernel)", "y = Softmax(a)  @cpu (no kernel)"}},
        {"Alternating",
         "g (float[4,8] x, float[8,8] w) => (float[4,8] y) { a = MatMul(x, w) b = Erf(a) c = "
         "MatMul(b, w) d = Erf(c) y = MatMul(d, w) }",
         {{.without = {"Erf"}}},
         {"x = Copy(x)  @cpu -> far", "w = Copy(w)  @cpu -> far", "a = MatMul(x, w)  @far",
          "a = Copy(a)  @far -> cpu", "b = Erf(a)  @cpu (no kernel)", "b = Copy(b)  @cpu -> far",
          "c = MatMul(b, w)  @far", "c = Copy(c)  @far -> cpu", "d = Erf(c)  @cpu (no kernel)",
          "d = Copy(d)  @cpu -> far", "y = MatMul(d, w)  @far", "y = Copy(y)  @far -> cpu"}},
        {"Diamond",
         "g (float[4,8] x, float[8,8] w) => (float[4,8] y) { a = MatMul(x, w) b = Erf(a) c = "
         "Softmax(a) d = MatMul(c, w) y = Add(b, d) }",
         {{.without = {"Erf"}}},
         {"x = Copy(x)  @cpu -> far", "w = Copy(w)  @cpu -> far", "a = MatMul(x, w)  @far",
          "a = Copy(a)  @far -> cpu", "c = Softmax(a)  @far", "d = MatMul(c, w)  @far",
          "b = Erf(a)  @cpu (no kernel)", "b = Copy(b)  @cpu -> far", "y = Add(b, d)  @far",
          "y = Copy(y)  @far -> cpu"}},
        {"SharedInitializer",
         "g (float[4,4] x) => (float[4,4] y) <float[4,4] w = "
         "{1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16}> { a = MatMul(x, w) b = Erf(a) c = Erf(w) d = "
         "MatMul(b, c) y = MatMul(d, w) }",
         {{.without = {"Erf"}}},
         {"x = Copy(x)  @cpu -> far", "a = MatMul(x, w)  @far", "a = Copy(a)  @far -> cpu",
          "b = Erf(a)  @cpu (no kernel)", "b = Copy(b)  @cpu -> far", "d = MatMul(b, c)  @far",
          "y = MatMul(d, w)  @far", "y = Copy(y)  @far -> cpu"}},
        {"ShapeValues",
         "g (float[4,8] x, int64[2] k, float[8,8] w) => (float[M] y, int64[2] j) <int64[1] zero = "
         "{0}> { j = Add(k, k) s = Shape(x) p = ReduceProd <keepdims = 1> (s) a = MatMul(x, w) y = "
         "Reshape(a, p) }",
         {kAll},
         {"j = Add(k, k)  @cpu (small integers)", "x = Copy(x)  @cpu -> far",
          "w = Copy(w)  @cpu -> far", "a = MatMul(x, w)  @far", "y = Copy(y)  @far -> cpu"}},
        {"Branch",
         "g (float[4,8] x, bool c, float[8,8] w) => (float[4,8] y) { a = MatMul(x, w) b = If (c) "
         "<then_branch = t () => (float[4,8] p) { p = Erf(a) }, else_branch = e () => (float[4,8] "
         "q) { q = Neg(a) }> y = MatMul(b, w) }",
         {kAll},
         {"x = Copy(x)  @cpu -> far", "w = Copy(w)  @cpu -> far", "a = MatMul(x, w)  @far",
          "b = If(c, a)  @far  # shape known at run time", "p = Erf(a)  @far",
          "y = MatMul(b, w)  @far", "y = Copy(y)  @far -> cpu"}},
        {"Loop",
         "g (float[4,8] x, float[8,8] w) => (float[4,8] y) <int64 n = {2}> { a = MatMul(x, w) b = "
         "Loop (n, , a) <body = l (int64 i, bool k, float[4,8] h) => (bool m, float[4,8] next) { "
         "next = MatMul(h, w) m = Identity(k) }> y = Softmax(b) }",
         {kAll},
         {"x = Copy(x)  @cpu -> far", "w = Copy(w)  @cpu -> far", "a = MatMul(x, w)  @far",
          "b = Loop(n, , a, w)  @far  # shape known at run time", "next = MatMul(h, w)  @far",
          "y = Softmax(b)  @far", "y = Copy(y)  @far -> cpu"}},
        {"OneCopyPerValue",
         "g (float[4,8] x, float[8,8] w) => (float[4,8] y) { a = MatMul(x, w) b = Erf(a) c = "
         "Sin(a) d = Add(b, c) e = MatMul(d, w) f = Mul(e, d) y = MatMul(f, w) }",
         {{.without = {"Erf", "Sin", "Add"}}},
         {"x = Copy(x)  @cpu -> far", "w = Copy(w)  @cpu -> far", "a = MatMul(x, w)  @far",
          "a = Copy(a)  @far -> cpu", "d = Erf+Sin+Add(a)  @cpu (no kernel)",
          "d = Copy(d)  @cpu -> far", "e = MatMul(d, w)  @far", "f = Mul(e, d)  @far",
          "y = MatMul(f, w)  @far", "y = Copy(y)  @far -> cpu"}},
        {"Island",
         "g (float[4,8] x, float[8,8] w) => (float[4,8] y) { a = Erf(x) b = Neg(a) y = Erf(b) }",
         {{.without = {"Erf"}}},
         {"y = Erf+Neg+Erf(x)  @cpu (no kernel)"}},
        {"MixedPrecision",
         "g (float[4,8] x, float[8,8] w) => (float[4,8] y) { h = Cast <to = 10> (x) v = Cast <to = "
         "10> (w) a = MatMul(h, v) b = Cast <to = 1> (a) y = Softmax(b) }",
         {kAll},
         {"x = Copy(x)  @cpu -> far", "w = Copy(w)  @cpu -> far", "h = Cast(x)  @far",
          "v = Cast(w)  @far", "a = MatMul(h, v)  @far", "b = Cast(a)  @far",
          "y = Softmax(b)  @far", "y = Copy(y)  @far -> cpu"}},
        {"TwoDevices",
         "g (float[4,8] x, float[8,8] w) => (float[4,8] y) { a = MatMul(x, w) b = Softmax(a) y = "
         "MatMul(b, w) }",
         {{.name = "far:0", .without = {"Softmax"}}, {.name = "far:1"}},
         {"x = Copy(x)  @cpu -> far:0", "w = Copy(w)  @cpu -> far:0", "a = MatMul(x, w)  @far:0",
          "a = Copy(a)  @far:0 -> cpu", "b = Softmax(a)  @cpu (its copies would cost more)",
          "b = Copy(b)  @cpu -> far:0", "y = MatMul(b, w)  @far:0", "y = Copy(y)  @far:0 -> cpu"}},
        {"TwoDevicesInTurn",
         "g (float[4,8] x, float[8,8] w) => (float[4,8] y) { a = Softmax(x) b = MatMul(a, w) y = "
         "Softmax(b) }",
         {{.name = "far:0", .without = {"MatMul"}}, {.name = "far:1"}},
         {"x = Copy(x)  @cpu -> far:0", "a = Softmax(x)  @far:0", "a = Copy(a)  @far:0 -> cpu",
          "w = Copy(w)  @cpu -> far:1", "a = Copy(a)  @cpu -> far:1", "b = MatMul(a, w)  @far:1",
          "b = Copy(b)  @far:1 -> cpu", "b = Copy(b)  @cpu -> far:0", "y = Softmax(b)  @far:0",
          "y = Copy(y)  @far:0 -> cpu"}},
    }),
    [](const auto& info) { return info.param.name; });

// A step that updates in place, on the device: nothing but what is fed and printed is copied.
TEST(TrainingPlan, UpdatesInPlaceOnTheDevice) {
  const Far far({kAll});
  AuthorOptions options;
  options.optimizer = OptimizerSpec{"sgd", {}};
  const Model trainable =
      MakeTrainable(TextModel("g (float[4,8] x) => (float[4,3] y) <float[8,3] w = {" +
                              FarNumbers(24) + "}> { y = MatMul(x, w) }"),
                    options, *far.environment)
          .value()
          .model;
  auto model = Open(trainable, *far.environment);
  const TensorMap feeds = {{"x", Tensor::Zeros(DType::kFloat, {4, 8})},
                           {"label", Tensor::Zeros(DType::kInt64, {4})}};
  const auto executor = model->PrepareStep(0, feeds, {"loss"});
  ASSERT_TRUE(executor.ok()) << executor.status();
  const Plan& plan = (*executor)->plan();
  EXPECT_THAT(
      StepLines(plan.ToText()),
      testing::ElementsAre(
          "update_3 = Add(onward_step, update_2)  @cpu (small integers)",
          "x = Copy(x)  @cpu -> far", "label = Copy(label)  @cpu -> far", "y = MatMul(x, w)  @far",
          "train_0 = SoftmaxCrossEntropyLoss(y, label)  @far",
          "loss__vjp_1 = SoftmaxCrossEntropyLossGrad(loss__vjp_0, y, label)  @far",
          "w__grad_2 = Gemm(x, loss__vjp_1)  @far", "loss = Copy(loss)  @far -> cpu",
          "w__new = SgdStep(update_0, w, w__grad_2)  @far", "onward_step <- onward_step__new"));
  EXPECT_TRUE(plan.commits_in_stretch);
}

// Gradients cross where the device lacks an operator, each value once.
TEST(GradientPlan, CopiesEachValueOnce) {
  const Far far({{.without = {"Erf"}}});
  const auto graph = RunnableGraph(
      TextModel("g (float[4,8] x, float[8,8] w) => (float y) { a = MatMul(x, w) b = Erf(a) c = "
                "Softmax(b) d = MatMul(c, w) y = ReduceSum <keepdims = 0> (d) }"),
      *far.environment);
  ASSERT_TRUE(graph.ok()) << graph.status();
  DifferentiateOptions options;
  options.operators = &far.environment->operators();
  options.rules = &far.environment->rules();
  const auto gradients = Differentiate(*graph, "y", {"w"}, options);
  ASSERT_TRUE(gradients.ok()) << gradients.status();
  std::string text;
  CompileOptions compile = far.environment->compile_options(),
                 here = DefaultEnvironment().compile_options();
  compile.outputs = here.outputs = gradients->values;
  compile.planned = [&](const Plan& plan) { absl::StrAppend(&text, plan.ToText()); };
  const TensorMap feeds = {{"x", Counting(ValueType::Of(DType::kFloat, {4, 8}))},
                           {"w", Counting(ValueType::Of(DType::kFloat, {8, 8}))}};
  const auto found = Session(gradients->graph, compile).Run(feeds, nullptr),
             expected = Session(gradients->graph, here).Run(feeds, nullptr);
  ASSERT_TRUE(found.ok() && expected.ok()) << found.status();
  for (const auto& [name, tensor] : *expected) {
    EXPECT_THAT(Values(found->at(name)),
                testing::Pointwise(testing::DoubleNear(1e-5), Values(tensor)));
  }
  EXPECT_THAT(
      StepLines(text),
      testing::ElementsAre(
          "x = Copy(x)  @cpu -> far", "w = Copy(w)  @cpu -> far", "a = MatMul(x, w)  @far",
          "a = Copy(a)  @far -> cpu", "y__vjp_3 = Gemm(y__vjp_2, w)  @far",
          "b = Erf(a)  @cpu (no kernel)", "b = Copy(b)  @cpu -> far", "c = Softmax(b)  @far",
          "y__vjp_4 = Gemm(c, y__vjp_2)  @far", "y__vjp_5 = SoftmaxGrad(y__vjp_3, c)  @far",
          "y__vjp_11 = Mul+Neg+Exp+Mul+Mul(a, y__vjp_5, y__vjp_9)  @far",
          "y__vjp_12 = Gemm(x, y__vjp_11)  @far", "w__grad = Add(y__vjp_4, y__vjp_12)  @far",
          "w__grad = Copy(w__grad)  @far -> cpu"))
      << text;
}

class TrainingOnADevice : public testing::TestWithParam<std::string> {};

// Each operator is missing once, and none.
TEST_P(TrainingOnADevice, FollowsTheCpu) {
  const Far far({{.without = {GetParam()}}});
  {
    auto here = Open(FarNetwork()), there = Open(FarNetwork(), *far.environment);
    for (int step = 0; step < 6; ++step) {
      const auto expected = here->Step(FarBatch(step)), found = there->Step(FarBatch(step));
      ASSERT_TRUE(expected.ok()) << expected.status();
      ASSERT_TRUE(found.ok()) << found.status();
      for (const auto& [name, tensor] : *expected) {
        EXPECT_THAT(Values(found->at(name)),
                    testing::Pointwise(testing::DoubleNear(1e-5), Values(tensor)))
            << name;
      }
      // Looking at the variables, or changing them, goes by the host.
      EXPECT_EQ(ValueOf(*there, "table").size(), 20u);
      if (step != 3) continue;
      for (TrainingModel* model : {here.get(), there.get()}) {
        model->variables().at("w2").data<float>()[0] = 0.5f;
      }
    }
    EXPECT_GT(far.counters->kernels, 0);
    for (const auto& [name, tensor] : std::as_const(*here).variables()) {
      EXPECT_THAT(ValueOf(*there, name),
                  testing::Pointwise(testing::DoubleNear(1e-5), Values(tensor)))
          << name;
    }
  }
  EXPECT_EQ(far.counters->live_bytes, 0);
}

INSTANTIATE_TEST_SUITE_P(Missing, TrainingOnADevice,
                         testing::Values("", "Gather", "MatMul", "Tanh", "AdamW", "Dropout",
                                         "BatchNormalization", "Mul", "ReduceSum", "Transpose",
                                         "SoftmaxCrossEntropyLoss"),
                         [](const auto& info) { return "W" + info.param; });

// Updates that are not due in every step: what is assigned depends on a value of the host.
TEST_P(TrainingOnADevice, WaitsForAnUpdateLikeTheCpu) {
  AuthorOptions options;
  options.accumulate = 2;
  options.ema = 0.5;
  const Far far({{.without = {GetParam()}}});
  auto here = Open(FarNetwork(options)), there = Open(FarNetwork(options), *far.environment);
  for (int step = 0; step < 5; ++step) {
    for (TrainingModel* model : {here.get(), there.get()}) {
      const auto done = model->Step(FarBatch(step), {"loss"});
      ASSERT_TRUE(done.ok()) << done.status();
    }
    for (const auto& [name, tensor] : std::as_const(*here).variables()) {
      EXPECT_THAT(ValueOf(*there, name),
                  testing::Pointwise(testing::DoubleNear(1e-5), Values(tensor)))
          << name << " after step " << step;
    }
  }
}

TEST(RequiredDevice, RefusesAFallback) {
  const Far far({{.without = {"Erf"}}}, true);
  const auto graph = RunnableGraph(
      TextModel("g (float[4,8] x, float[8,8] w) => (float[4,8] y) { a = MatMul(x, w) y = Erf(a) }"),
      *far.environment);
  const auto found = Session(*graph, far.environment->compile_options())
                         .Run({{"x", Tensor::Zeros(DType::kFloat, {4, 8})},
                               {"w", Tensor::Zeros(DType::kFloat, {8, 8})}},
                              nullptr);
  EXPECT_THAT(found.status().message(), HasSubstr("1 node cannot run on far"));
  EXPECT_THAT(found.status().message(), HasSubstr("(Erf): no kernel"));
}

}  // namespace onward::partition_test
