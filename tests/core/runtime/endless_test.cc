// SPDX-License-Identifier: Apache-2.0
// Loops that do not end, and what grows in those that might.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "core/runtime/session.h"
#include "environment/environment.h"
#include "tests/support/text_model.h"
#include "training_info/author.h"
#include "training_info/lower.h"

namespace onward::endless_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

Session SessionOf(const std::string& text, const Environment& environment = DefaultEnvironment()) {
  auto graph = RunnableGraph(TextModel(text), environment);
  EXPECT_TRUE(graph.ok()) << graph.status();
  CompileOptions options;
  options.device = &environment.cpu();
  options.operators = &environment.operators();
  return Session(*std::move(graph), options);
}

struct LoopText {
  std::string name;
  std::string inputs;       // of the node, before the carried values
  std::string condition;    // nodes of the body that give `more`
  std::string second = "";  // of the body: what the second carried value becomes
};

std::string ModelOf(const LoopText& t) {
  return absl::StrCat(R"(g (float[1] x, bool yes) => (float[1] y, float[1] z)
    <bool sure = {1}, int64 most = {9223372036854775807}> {
    y, z = Loop )",
                      "(", t.inputs, ", x, x)", R"( <
      body = b (int64 i, bool c, float[1] v, float[1] w) => (bool more, float[1] next, float[1] other) {
        next = Add (v, x)
        )",
                      t.second.empty() ? "other = Mul (w, w)" : t.second, "\n", t.condition,
                      "}>\n}");
}

absl::Status StatusOf(const LoopText& t) {
  Session session = SessionOf(ModelOf(t));
  const TensorMap feeds = {{"x", Floats({1})}, {"yes", Tensor::Scalar<bool>(true)}};
  return session.Run(feeds, nullptr).status();
}

TEST(EndlessLoop, IsRefused) {
  const LoopText loops[] = {
      {"constant", ",", "more = Constant <value = bool {1}> ()"},
      {"captured constant", ",", "more = Identity (sure)"},
      {"given", ", yes", "more = Identity (yes)"},
      {"passed on", ",", "more = Identity (c)"},
      {"passed on twice", ", sure", "d = Identity (c)\nmore = Identity (d)"},
      {"computed of constants", ",", "no = Constant <value = bool {0}> ()\nmore = Not (no)"},
      {"computed of what is captured", ",",
       "half = Constant <value = float {0.5}> ()\nbig = Greater (x, half)\nmore = Squeeze (big)"},
      {"the largest number", "most,", "more = Identity (c)"},
      {"of what is carried unchanged", ",",
       "half = Constant <value = float {0.5}> ()\nbig = Greater (w, half)\nmore = Squeeze (big)",
       "other = Identity (w)"},
      {"of what stays from the second iteration on", ",",
       "half = Constant <value = float {0.5}> ()\nbig = Greater (w, half)\nmore = Squeeze (big)",
       "other = Add (x, x)"},
      {"in a branch", ",",
       R"(more = If (yes) <then_branch = t () => (bool p) { p = Identity (c) },
                           else_branch = e () => (bool q) { q = Not (c) }>)"},
  };
  for (const LoopText& loop : loops) {
    SCOPED_TRACE(loop.name);
    const absl::Status status = StatusOf(loop);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("Loop"), HasSubstr("never ends"), HasSubstr("trip count")));
  }
}

TEST(EndlessLoop, IsNotWhatEnds) {
  const LoopText loops[] = {
      {"a condition of the iteration", ",",
       "ten = Constant <value = int64 {10}> ()\nmore = Less (i, ten)"},
      {"a condition of what is carried", "most,",
       "ten = Constant <value = float {10}> ()\nsmall = Less (next, ten)\nmore = Squeeze (small)"},
      {"no from the start", ", no", "more = Identity (c)"},
      {"no in the body", ",", "more = Constant <value = bool {0}> ()"},
      {"no from the second iteration on", ",",
       "two = Constant <value = float {1.5}> ()\nsmall = Less (w, two)\nmore = Squeeze (small)",
       "other = Add (x, x)"},
      {"chance", ",",
       R"(draw = RandomUniform <shape = [1]> ()
          half = Constant <value = float {0.9}> ()
          low = Less (draw, half)
          more = Squeeze (low))"},
  };
  for (LoopText loop : loops) {
    SCOPED_TRACE(loop.name);
    if (loop.inputs == ", no") loop.inputs = ", c0";
    std::string text = ModelOf(loop);
    if (loop.inputs == ", c0") text.insert(text.find("y, z = Loop"), "c0 = Not (yes)\n");
    Session session = SessionOf(text);
    const auto out =
        session.Run({{"x", Floats({1})}, {"yes", Tensor::Scalar<bool>(true)}}, nullptr);
    EXPECT_TRUE(out.ok()) << out.status();
  }
}

TEST(EndlessLoop, IsRefusedInTraining) {
  AuthorOptions options;
  options.loss = {"mse", {}};
  const auto made = MakeTrainable(TextModel(R"(
    m (float[2, 1] x) => (float[2, 1] y) <float[1, 1] W = {1.5}> {
      y = Loop (, , x) <
        body = b (int64 i, bool c, float[2, 1] v) => (bool more, float[2, 1] next) {
          more = Constant <value = bool {1}> ()
          next = MatMul (v, W)
        }>
    })"),
                                  options, DefaultEnvironment());
  if (!made.ok()) {
    EXPECT_THAT(std::string(made.status().message()), HasSubstr("never ends"));
    return;
  }
  auto training = Open(made->model);
  const auto step =
      training->Step({{"x", Floats({2, 1}, {1, 2})}, {"label", Floats({2, 1}, {1, 2})}}, {});
  EXPECT_THAT(std::string(step.status().message()),
              AllOf(HasSubstr("Loop"), HasSubstr("never ends"), HasSubstr("trip count")));
}

// Ends after 10^12 iterations, which nobody lives to see.
std::string Growing(const std::string& carried, const std::string& body) {
  return absl::StrCat(R"(<ir_version: 9, opset_import: ["" : 20]>
  g (float[1000] x) => (int64 n) {
    empty = SequenceEmpty ()
    start = Constant <value = string {"text"}> ()
    )",
                      carried, R"( <
      body = b (int64 i, bool c, )",
                      body, R"(
        far = Constant <value = int64 {1000000000000}> ()
        more = Less (i, far)
      }>
    n = Constant <value = int64 {1}> ()
  })");
}

TEST(GrowingLoop, StopsAtTheMemoryLimit) {
  const auto small = *Environment::Make({.memory_limit = size_t{2} << 20});
  struct Row {
    std::string name, text, output;
  };
  const Row rows[] = {
      {"stacked",
       Growing("last, all = Loop (, , x)",
               R"(float[K] v) => (bool more, float[K] w, float[K] seen) {
          w = Identity (v)
          seen = Add (v, x))"),
       "all"},
      {"two stacks, each within",
       Growing("last, a, b2, c2 = Loop (, , x)",
               R"(float[K] v) => (bool more, float[K] w, float[K] p, float[K] q, float[K] r) {
          w = Identity (v)
          p = Add (v, x)
          q = Sub (v, x)
          r = Mul (v, x))"),
       "a"},
      {"sequence",
       Growing("all = Loop (, , empty)", R"(seq(float[K]) s) => (bool more, seq(float[K]) t) {
          item = Add (x, x)
          t = SequenceInsert (s, item))"),
       "all"},
      {"sequence of small items",
       Growing("all = Loop (, , empty)", R"(seq(float[K]) s) => (bool more, seq(float[K]) t) {
          item = Cast <to = 1> (i)
          t = SequenceInsert (s, item))"),
       "all"},
      {"carried", Growing("all = Loop (, , x)", R"(float[K] v) => (bool more, float[L] w) {
          w = Concat <axis = 0> (v, v))"),
       "all"},
      {"carried, a little each time",
       Growing("all = Loop (, , x)", R"(float[K] v) => (bool more, float[L] w) {
          w = Concat <axis = 0> (v, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x))"),
       "all"},
      {"strings of strings",
       Growing("all = Loop (, , start)", R"(string s) => (bool more, string t) {
          t = StringConcat (s, s))"),
       "all"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    auto graph = RunnableGraph(TextModel(row.text), *small);
    ASSERT_TRUE(graph.ok()) << graph.status();
    CompileOptions options;
    options.device = &small->cpu();
    options.operators = &small->operators();
    options.outputs = {row.output};
    Session session(*std::move(graph), options);
    const auto out = session.RunValues({{"x", Tensor::Zeros(DType::kFloat, {1000})}}, nullptr);
    EXPECT_EQ(out.status().code(), absl::StatusCode::kResourceExhausted) << out.status();
    EXPECT_THAT(std::string(out.status().message()), HasSubstr("memory")) << out.status();
  }
}

TEST(LongLoop, StopsWhenAsked) {
  Session session = SessionOf(R"(g (int64 far) => (int64 last) {
    zero = Constant <value = int64 {0}> ()
    last = Loop (, , zero) <
      body = b (int64 i, bool c, int64 v) => (bool more, int64 w) {
        w = Identity (i)
        more = Less (i, far)
      }>
  })");
  std::atomic<bool> stop = false;
  std::thread asks([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    stop = true;
  });
  RunOptions options;
  options.cancel = &stop;
  const auto out =
      session.Run({{"far", Tensor::Scalar<int64_t>(int64_t{1} << 60)}}, nullptr, options);
  asks.join();
  EXPECT_EQ(out.status().code(), absl::StatusCode::kCancelled) << out.status();
}

}  // namespace onward::endless_test
