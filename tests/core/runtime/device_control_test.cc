// SPDX-License-Identifier: Apache-2.0
// If, Loop and Scan on an accelerator: bodies run there if all of their nodes can, values stay
// there from one iteration and from one segment to the next.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/runtime/plan/plan.h"
#include "core/runtime/session.h"
#include "environment/environment.h"
#include "tests/support/far_device.h"
#include "tests/support/far_training.h"
#include "tests/support/text_model.h"
#include "training_info/lower.h"

namespace onward::device_control_test {

using testing::HasSubstr;

struct Row {
  std::string name, graph;
  // Copies between host and device in a run of n iterations: fixed + each * n.
  int fixed, each;
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

const char kWeighs[] = "float[6,16] x, float[16,16] w";

std::vector<Row> Rows() {
  return {
      // x, w and the result.
      {"Branch",
       absl::StrCat("g (", kWeighs,
                    ", bool c) => (float[6,16] y) { a = MatMul(x, w) b = If (c) <then_branch = t "
                    "() => (float[6,16] p) { p = Erf(a) }, else_branch = e () => (float[6,16] q) { "
                    "q = MatMul(a, w) }> y = MatMul(b, w) }"),
       3, 0},
      // What it hands on is not what it was given: the memory of that is used again.
      {"BranchThatHandsOn",
       absl::StrCat("g (", kWeighs,
                    ", bool c) => (float[6,16] y) { a = MatMul(x, w) b = If (c) <then_branch = t "
                    "() => (float[6,16] p) { p = Identity(a) }, else_branch = e () => (float[6,16] "
                    "q) { q = Neg(a) }> d = MatMul(b, w) e = Erf(d) y = Add(e, b) }"),
       3, 0},
      {"Loop",
       absl::StrCat("g (", kWeighs,
                    ", int64 n) => (float[6,16] y, float[M,6,16] all) { y, all = Loop (n, , x) "
                    "<body = b (int64 i, bool k, float[6,16] h) => (bool m, float[6,16] next, "
                    "float[6,16] seen) { m = Identity(k) z = MatMul(h, w) next = Tanh(z) seen = "
                    "Neg(z) }> }"),
       4, 0},
      // The condition comes to the host.
      {"LoopWhile",
       absl::StrCat("g (", kWeighs,
                    ", int64 n) => (float[6,16] y) <float much = {1000000}> { y = Loop (n, , x) "
                    "<body = b (int64 i, bool k, float[6,16] h) => (bool m, float[6,16] next) { z "
                    "= MatMul(h, w) next = Tanh(z) s = ReduceMax <keepdims = 0> (next) m = Less(s, "
                    "much) }> }"),
       3, 1},
      // The number of the iteration goes to the device.
      {"LoopThatCounts",
       absl::StrCat("g (", kWeighs,
                    ", int64 n) => (float[6,16] y) { y = Loop (n, , x) <body = b (int64 i, bool k, "
                    "float[6,16] h) => (bool m, float[6,16] next) { m = Identity(k) z = MatMul(h, "
                    "w) f = Cast <to = 1> (i) next = Add(z, f) }> }"),
       3, 1},
      {"Scan",
       absl::StrCat("g (", kWeighs,
                    ", float[1,16] first) => (float[1,16] last, float[6,1,16] all) { last, all = "
                    "Scan (first, x) <body = b (float[1,16] h, float[16] s) => (float[1,16] next, "
                    "float[1,16] copy) { z = MatMul(h, w) a = Add(z, s) next = Tanh(a) copy = "
                    "Exp(next) }, num_scan_inputs = 1, scan_input_directions = [1], "
                    "scan_output_directions = [1]> }"),
       5, 0},
      // x and w, which both segments read, are copied once; so is a.
      {"Segments",
       absl::StrCat("g (", kWeighs,
                    ", bool c) => (float[6,16] y, float[6,16] a) { a = MatMul(x, w) b = If (c) "
                    "<then_branch = t () => (float[6,16] p) { p = Erf(a) }, else_branch = e () => "
                    "(float[6,16] q) { q = Neg(a) }> d = MatMul(b, w) e = Add(d, x) y = Add(e, a) "
                    "}"),
       4, 0},
  };
}

TensorMap Feeds(const Graph& graph, int64_t n) {
  TensorMap feeds;
  for (const NamedType& in : graph.FeedInputs()) {
    Tensor t(in.type.dtype, *in.type.StaticShape());
    for (int64_t i = 0; i < t.elements(); ++i) {
      if (in.type.dtype == DType::kFloat) t.data<float>()[i] = static_cast<float>(i % 5 - 2) / 8;
      if (in.type.dtype == DType::kInt64) t.data<int64_t>()[i] = n;
      if (in.type.dtype == DType::kBool) t.data<bool>()[i] = n % 2 == 1;
    }
    feeds[in.name] = t;
  }
  return feeds;
}

class DeviceControl : public testing::TestWithParam<Row> {};

TEST_P(DeviceControl, KeepsValuesOnTheDevice) {
  const Row& row = GetParam();
  const Far far({FarOptions{}}, true);
  const Graph graph = RunnableGraph(TextModel(row.graph), *far.environment).value();
  {
    Session there(graph, far.environment->compile_options());
    Session here(graph, DefaultEnvironment().compile_options());
    for (const int n : {0, 1, 7, 8, 7}) {
      const TensorMap feeds = Feeds(graph, n);
      const auto expected = here.Run(feeds, nullptr);
      ASSERT_TRUE(expected.ok()) << expected.status();
      for (int round = 0; round < 2; ++round) {
        const int before = far.counters->copies_in + far.counters->copies_out;
        const auto found = there.Run(feeds, nullptr);
        ASSERT_TRUE(found.ok()) << found.status();
        // Constants are copied in the first run.
        const int copies = far.counters->copies_in + far.counters->copies_out - before;
        EXPECT_TRUE(n < 7 || round == 0 || copies == row.fixed + row.each * n)
            << copies << " copies for " << n;
        for (const auto& [name, tensor] : *expected) {
          EXPECT_TRUE(Identical(found->at(name), tensor)) << name << " of " << n;
        }
      }
    }
  }
  EXPECT_EQ(far.counters->live_bytes, 0);
}

INSTANTIATE_TEST_SUITE_P(Graphs, DeviceControl, testing::ValuesIn(Rows()),
                         [](const auto& info) { return info.param.name; });

TEST(DeviceBodies, RunOnTheHostWhatHasANodeWithoutKernel) {
  const Far far({{.without = {"Erf"}}});
  const Graph graph =
      RunnableGraph(TextModel(absl::StrCat(
                        "g (", kWeighs,
                        ", bool c) => (float[6,16] y) { a = MatMul(x, w) b = If (c) <then_branch = "
                        "t () => (float[6,16] p) { p = Erf(a) }, else_branch = e () => "
                        "(float[6,16] q) { q = MatMul(a, w) }> y = MatMul(b, w) }")),
                    *far.environment)
          .value();
  std::string text;
  CompileOptions options = far.environment->compile_options();
  options.planned = [&](const Plan& plan) { absl::StrAppend(&text, plan.ToText()); };
  const auto found = Session(graph, options).Run(Feeds(graph, 1), nullptr);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(text, HasSubstr("b = If(c, a, w)  @cpu (no kernel for Erf in its body)"));
}

// Where a body's result has come to lie is only known when it is there.
TEST(DeviceBodies, GiveVariablesTheirNewValues) {
  const Far far({FarOptions{}});
  {
    auto model = Open(
        TextModel("g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Mul(x, w) }",
                  {{"a (bool c, float[2] d) => (float[2] next) { next = If (c) <then_branch = t () "
                    "=> (float[2] p) { p = Neg(w) }, else_branch = e () => (float[2] q) { q = "
                    "Div(w, d) }> }",
                    {{"w", "next"}}}}),
        *far.environment);
    const Tensor yes = Tensor::Scalar<bool>(true), no = Tensor::Scalar<bool>(false);
    for (int step = 0; step < 4; ++step) {
      const std::vector<double> before = ValueOf(*model, "w");
      const Tensor x = Floats({1, 1});
      const auto bad = model->Step({{"x", x}, {"c", no}, {"d", Floats({1, 0})}});
      EXPECT_THAT(bad.status().message(), HasSubstr("the new value of 'w' is not finite"));
      EXPECT_EQ(ValueOf(*model, "w"), before) << step;
      const auto good = model->Step({{"x", x}, {"c", yes}, {"d", Floats({1, 0})}});
      ASSERT_TRUE(good.ok()) << good.status();
      EXPECT_THAT(ValueOf(*model, "w"), testing::ElementsAre(-before[0], -before[1])) << step;
    }
  }
  EXPECT_EQ(far.counters->live_bytes, 0);
}

// The k-th call fails, for every k: an error, nothing leaked, and the next run is right.
TEST(DeviceBodies, SurviveFailures) {
  for (const Row& row : Rows()) {
    const Far far({FarOptions{}}, true);
    const Graph graph = RunnableGraph(TextModel(row.graph), *far.environment).value();
    const TensorMap feeds = Feeds(graph, 3);
    const auto expected =
        Session(graph, DefaultEnvironment().compile_options()).Run(feeds, nullptr);
    ASSERT_TRUE(expected.ok());
    {
      Session session(graph, far.environment->compile_options());
      bool failed = true;
      for (int k = 1; failed; ++k) {
        far.counters->calls = 0;
        far.counters->fail_at = k;
        const auto found = session.Run(feeds, nullptr);
        far.counters->fail_at = 0;
        failed = !found.ok();
        if (failed) {
          EXPECT_THAT(found.status().message(), HasSubstr("the far device failed"));
        }
        const auto again = session.Run(feeds, nullptr);
        ASSERT_TRUE(again.ok()) << row.name << " " << k << ": " << again.status();
        for (const auto& [name, tensor] : *expected) {
          ASSERT_TRUE(Identical(again->at(name), tensor)) << row.name << " " << k << " " << name;
        }
      }
    }
    EXPECT_EQ(far.counters->live_bytes, 0) << row.name;
  }
}

}  // namespace onward::device_control_test
