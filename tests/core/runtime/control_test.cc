// SPDX-License-Identifier: Apache-2.0
// If, Loop and Scan: bodies as programs of their own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/runtime/session.h"
#include "environment/environment.h"
#include "tests/support/text_model.h"
#include "training_info/lower.h"

namespace onward::control_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Session SessionOf(const std::string& text) {
  auto graph = RunnableGraph(TextModel(text), DefaultEnvironment());
  EXPECT_TRUE(graph.ok()) << graph.status();
  return Session(*std::move(graph), DefaultEnvironment().compile_options());
}

TensorMap OutputsOf(Session& session, const TensorMap& feeds) {
  auto out = session.Run(feeds, nullptr);
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? *std::move(out) : TensorMap();
}

TensorMap OutputsOf(const std::string& text, const TensorMap& feeds) {
  Session session = SessionOf(text);
  return OutputsOf(session, feeds);
}

std::string ErrorOf(const std::string& text, const TensorMap& feeds) {
  Session session = SessionOf(text);
  return std::string(session.Run(feeds, nullptr).status().message());
}

Tensor Bool(bool value) { return Tensor::Scalar<bool>(value); }
Tensor Int(int64_t value) { return Tensor::Scalar<int64_t>(value); }

constexpr char kBranches[] = R"(
  g (bool c, float[N] x) => (float[N] y, float[M] z) {
    two = Constant <value = float {2}> ()
    d = Mul (x, two)
    y, z = If (c) <
      then_branch = t () => (float[N] a, float[M] b) { a = Add (d, x)  b = Concat <axis = 0> (x, d) },
      else_branch = e () => (float[N] a, float[M] b) { a = Sub (d, x)  b = Identity (x) }>
  })";

TEST(If, TakesTheBranchThatDataNames) {
  Session session = SessionOf(kBranches);
  TensorMap out = OutputsOf(session, {{"c", Bool(true)}, {"x", Floats({1, 2})}});
  EXPECT_THAT(Values(out["y"]), ElementsAre(3, 6));
  EXPECT_THAT(Values(out["z"]), ElementsAre(1, 2, 2, 4));
  out = OutputsOf(session, {{"c", Bool(false)}, {"x", Floats({1, 2})}});
  EXPECT_THAT(Values(out["y"]), ElementsAre(1, 2));
  EXPECT_THAT(Values(out["z"]), ElementsAre(1, 2));
  out = OutputsOf(session, {{"c", Bool(false)}, {"x", Floats({5})}});
  EXPECT_THAT(Values(out["z"]), ElementsAre(5));
}

TEST(If, OfAConstantIsItsBranch) {
  Session session = SessionOf(R"(g (float[N] x) => (float[N] y) {
    n = Size (x)
    one = Constant <value = int64 {1}> ()
    c = Greater (n, one)
    y = If (c) <then_branch = t () => (float[N] a) { w = Constant <value = float[1] {10}> ()  a = Add (x, w) },
                else_branch = e () => (float[N] a) { a = Identity (x) }>
  })");
  auto executor = session.Prepare({{"x", {DType::kFloat, Shape{2}}}});
  ASSERT_TRUE(executor.ok()) << executor.status();
  EXPECT_EQ((*executor)->plan().rest, nullptr);
  EXPECT_THAT((*executor)->plan().ToText(), HasSubstr("Add"));
  EXPECT_THAT(Values(OutputsOf(session, {{"x", Floats({1, 2})}})["y"]), ElementsAre(11, 12));
  EXPECT_THAT(Values(OutputsOf(session, {{"x", Floats({1})}})["y"]), ElementsAre(1));
}

// The shape of y follows from its attribute before anything tells its element type.
TEST(If, OfAConstantGivesWhatFollowsItsElementType) {
  EXPECT_THAT(Values(OutputsOf(R"(g (float[N] x) => (float[1, 2] y) {
    n = Size (x)
    two = Constant <value = int64 {2}> ()
    c = Equal (n, two)
    b = If (c) <then_branch = t () => (float[N] a) { a = Neg (x) },
                else_branch = e () => (float[N] a) { a = Identity (x) }>
    shape = Constant <value_ints = [1, 2]> ()
    y = Reshape (b, shape)
  })",
                               {{"x", Floats({1, 2})}})["y"]),
              ElementsAre(-1, -2));
}

// What follows an unknown shape is compiled, fused and planned like any other graph, once
// for each signature.
TEST(Segments, AreCompiledOncePerSignature) {
  Session session = SessionOf(R"(g (float[N] x) => (float[M] y, float[N] early) {
    early = Neg (x)
    at = NonZero (x)
    flat = Squeeze (at)
    picked = Gather (x, flat)
    a = Exp (picked)
    b = Add (a, picked)
    y = Mul (b, picked)
  })");
  auto executor = session.Prepare({{"x", {DType::kFloat, Shape{4}}}});
  ASSERT_TRUE(executor.ok()) << executor.status();
  Program* rest = (*executor)->rest();
  ASSERT_NE(rest, nullptr);
  for (const auto& x : {Floats({0, 0, 3, 0}), Floats({0, 5, 3, 0}), Floats({7, 0, 0, 0})}) {
    TensorMap out = OutputsOf(session, {{"x", x}});
    std::vector<double> expected;
    for (double v : Values(x)) {
      if (v != 0) expected.push_back((std::exp(v) + v) * v);
    }
    EXPECT_THAT(Values(out["y"]), testing::Pointwise(testing::DoubleNear(1e-3), expected));
    EXPECT_EQ(out["early"].elements(), 4);
  }
  // The second and third compile of the same signature are the same executor.
  const Value one = Tensor(DType::kInt64, Shape{1, 1}), x = Floats({1, 2, 3, 4}), early = x;
  std::vector<const Value*> inputs;
  for (const std::string& name : rest->inputs()) {
    inputs.push_back(name == "x" ? &x : name == "early" ? &early : &one);
  }
  auto again = rest->Prepare(inputs);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_THAT((*again)->plan().ToText(), HasSubstr("Exp+Add+Mul"))
      << "element-wise operators are fused";
}

constexpr char kSum[] = R"(
  g (int64 n, bool go, float[2] start, float[2] step) => (float[2] last, float[K, 2] all) {
    last, all = Loop (n, go, start) <
      body = b (int64 i, bool c, float[2] v) => (bool more, float[2] next, float[2] seen) {
        next = Add (v, step)
        seen = Mul (next, next)
        limit = Constant <value = float {100}> ()
        top = ReduceMax <keepdims = 0> (next)
        more = Less (top, limit)
      }>
  })";

TEST(Loop, CarriesAndStacks) {
  Session session = SessionOf(kSum);
  const Tensor start = Floats({0, 1}), step = Floats({1, 2});
  TensorMap out =
      OutputsOf(session, {{"n", Int(3)}, {"go", Bool(true)}, {"start", start}, {"step", step}});
  EXPECT_THAT(Values(out["last"]), ElementsAre(3, 7));
  EXPECT_EQ(out["all"].shape(), (Shape{3, 2}));
  EXPECT_THAT(Values(out["all"]), ElementsAre(1, 9, 4, 25, 9, 49));
  out =
      OutputsOf(session, {{"n", Int(1000)}, {"go", Bool(true)}, {"start", start}, {"step", step}});
  EXPECT_EQ(out["all"].shape(), (Shape{50, 2})) << "the body's condition ends it";
  for (const bool go : {false, true}) {
    out = OutputsOf(session,
                    {{"n", Int(go ? 0 : 5)}, {"go", Bool(go)}, {"start", start}, {"step", step}});
    EXPECT_THAT(Values(out["last"]), ElementsAre(0, 1)) << "no iteration";
    EXPECT_EQ(out["all"].shape(), (Shape{0, 2}));
  }
}

TEST(Loop, GrowsWhatItCarries) {
  const TensorMap out = OutputsOf(R"(g (int64 n, float[1] x) => (float[M] y) {
    y = Loop (n, , x) <
      body = b (int64 i, bool c, float[K] v) => (bool more, float[K2] next) {
        more = Identity (c)
        next = Concat <axis = 0> (v, x)
      }>
  })",
                                  {{"n", Int(4)}, {"x", Floats({2})}});
  EXPECT_THAT(Values(out.at("y")), ElementsAre(2, 2, 2, 2, 2));
}

TEST(Loop, NestsAndCapturesThroughBothBodies) {
  const TensorMap out = OutputsOf(R"(g (int64 n, float[1] x) => (float[1] y) {
    zero = Constant <value = float[1] {0}> ()
    y = Loop (n, , zero) <
      body = outer (int64 i, bool c, float[1] v) => (bool more, float[1] next) {
        more = Identity (c)
        one = Constant <value = int64 {1}> ()
        count = Add (i, one)
        next = Loop (count, , v) <
          body = inner (int64 j, bool d, float[1] w) => (bool again, float[1] sum) {
            again = Identity (d)
            sum = Add (w, x)
          }>
      }>
  })",
                                  {{"n", Int(3)}, {"x", Floats({10})}});
  EXPECT_THAT(Values(out.at("y")), ElementsAre(60));  // 1 + 2 + 3 additions
}

TEST(Loop, SwapsWhatItCarries) {
  const TensorMap out =
      OutputsOf(R"(g (int64 n, float[1] a, float[1] b) => (float[1] x, float[1] y) {
    x, y = Loop (n, , a, b) <
      body = body (int64 i, bool c, float[1] p, float[1] q) => (bool more, float[1] r, float[1] s) {
        more = Identity (c)
        r = Identity (q)
        s = Identity (p)
      }>
  })",
                {{"n", Int(3)}, {"a", Floats({1})}, {"b", Floats({2})}});
  EXPECT_THAT(Values(out.at("x")), ElementsAre(2));
  EXPECT_THAT(Values(out.at("y")), ElementsAre(1));
}

TEST(Loop, SaysWhatIsWrong) {
  const std::string text = R"(g (int64 n, float[2] x) => (float[K, M] all) {
    last, all = Loop (n, , x) <
      body = b (int64 i, bool c, float[K] v) => (bool more, float[K2] next, float[K2] seen) {
        more = Identity (c)
        next = Concat <axis = 0> (v, x)
        seen = Identity (next)
      }>
  })";
  EXPECT_THAT(ErrorOf(text, {{"n", Int(3)}, {"x", Floats({1, 2})}}),
              testing::AllOf(HasSubstr("Loop"), HasSubstr("scan output 0"), HasSubstr("float[6]")));
}

TEST(Scan, WalksAxesInBothDirections) {
  const std::string body = R"( <num_scan_inputs = 2, ATTRS
      body = b (float[2] s, float[2] p, float[2] q) => (float[2] next, float[2] seen) {
        next = Add (s, p)
        seen = Sub (next, q)
      }> } )";
  const auto run = [&](const std::string& attributes, const Tensor& b) {
    std::string text =
        "g (float[2] s, float[3, 2] a, float[U, V] b) => (float[2] last, float[W, X] all) "
        "{ last, all = Scan (s, a, b)" +
        body;
    text.replace(text.find("ATTRS"), 5, attributes);
    return OutputsOf(
        text, {{"s", Floats({0, 0})}, {"a", Floats(Shape{3, 2}, {1, 2, 3, 4, 5, 6})}, {"b", b}});
  };
  const Tensor rows = Floats(Shape{3, 2}, {1, 1, 2, 2, 3, 3}),
               columns = Floats(Shape{2, 3}, {1, 2, 3, 1, 2, 3});
  TensorMap out = run("", rows);
  EXPECT_THAT(Values(out["last"]), ElementsAre(9, 12));
  EXPECT_THAT(Values(out["all"]), ElementsAre(0, 1, 2, 4, 6, 9));
  out = run("scan_input_axes = [0, 1],", columns);
  EXPECT_THAT(Values(out["all"]), ElementsAre(0, 1, 2, 4, 6, 9));
  out = run("scan_input_directions = [1, 0],", rows);
  EXPECT_THAT(Values(out["all"]), ElementsAre(4, 5, 6, 8, 6, 9));
  out = run("scan_output_directions = [1],", rows);
  EXPECT_THAT(Values(out["all"]), ElementsAre(6, 9, 2, 4, 0, 1));
  out = run("scan_output_axes = [1],", rows);
  EXPECT_EQ(out["all"].shape(), (Shape{2, 3}));
  EXPECT_THAT(Values(out["all"]), ElementsAre(0, 2, 6, 1, 4, 9));
}

TEST(Sequences, GrowInLoopsAndAreJoined) {
  const TensorMap out = OutputsOf(R"(g (int64 n, float[2] x) => (float[M] y, int64 length) {
    empty = SequenceEmpty ()
    all = Loop (n, , empty) <
      body = b (int64 i, bool c, seq(float[K]) s) => (bool more, seq(float[K]) t) {
        more = Identity (c)
        number = Cast <to = 1> (i)
        item = Add (x, number)
        t = SequenceInsert (s, item)
      }>
    y = ConcatFromSequence <axis = 0> (all)
    length = SequenceLength (all)
  })",
                                  {{"n", Int(3)}, {"x", Floats({1, 2})}});
  EXPECT_THAT(Values(out.at("y")), ElementsAre(1, 2, 2, 3, 3, 4));
  EXPECT_THAT(Values(out.at("length")), ElementsAre(3));
}

TEST(Strings, HaveMemoryOfTheirOwnInAPlan) {
  Session session = SessionOf(R"(g (float[2] x) => (float[2] y, string[2, 1] text) {
    s = Cast <to = 8> (x)
    axes = Constant <value = int64[1] {1}> ()
    text = Unsqueeze (s, axes)
    y = Cast <to = 1> (s)
  })");
  auto executor = session.Prepare({{"x", {DType::kFloat, Shape{2}}}});
  ASSERT_TRUE(executor.ok()) << executor.status();
  EXPECT_EQ((*executor)->plan().rest, nullptr);
  for (const float last : {2.5f, 1234567.0f}) {
    TensorMap out = OutputsOf(session, {{"x", Floats({1, last})}});
    EXPECT_THAT(Values(out["y"]), ElementsAre(1, last));
    EXPECT_EQ(out["text"].shape(), (Shape{2, 1}));
  }
}

}  // namespace onward::control_test
