// SPDX-License-Identifier: Apache-2.0
// A graph that meets many shapes: what its plans keep, share and give.
#include <gtest/gtest.h>

#include <cmath>

#include "core/runtime/session.h"
#include "core/tensor/held.h"
#include "environment/environment.h"
#include "tests/support/text_model.h"
#include "training_info/lower.h"

namespace onward::signatures_test {

class Signatures : public testing::Test {
 protected:
  Session SessionOf(const std::string& text) {
    auto graph = RunnableGraph(TextModel(text), DefaultEnvironment());
    EXPECT_TRUE(graph.ok()) << graph.status();
    CompileOptions options = DefaultEnvironment().compile_options();
    options.planned = [this](const Plan&) { ++plans_; };
    return Session(*std::move(graph), options);
  }

  static Tensor Ramp(Shape shape) {
    Tensor t(DType::kFloat, std::move(shape));
    for (int64_t i = 0; i < t.elements(); ++i) t.data<float>()[i] = static_cast<float>(i % 7) - 3;
    return t;
  }

  static Tensor Run(Session& session, const Tensor& x) {
    auto results = session.Run({{"x", x}}, nullptr);
    EXPECT_TRUE(results.ok()) << results.status();
    return results.ok() ? results->begin()->second : Tensor();
  }

  int plans_ = 0;
};

void ExpectSame(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.shape(), b.shape());
  for (int64_t i = 0; i < a.elements(); ++i) ASSERT_EQ(a.data<float>()[i], b.data<float>()[i]) << i;
}

constexpr char kConvolutions[] = R"(g (float[N, 64, 16, 16] x) => (float[N, 64, 16, 16] y) {
  at = Constant <value = int64[4] {64, 64, 3, 3}> ()
  small = Constant <value = float {0.001}> ()
  w = Expand(small, at)
  a = Conv <pads = [1, 1, 1, 1]> (x, w)
  b = Relu(a)
  y = Conv <pads = [1, 1, 1, 1]> (b, w)
})";

TEST_F(Signatures, ArePlannedOnce) {
  Session session = SessionOf("g (float[N] x) => (float[N] y) { y = Neg(x) }");
  for (int round = 0; round < 3; ++round) {
    for (int64_t n = 1; n <= 200; ++n) {
      const Tensor y = Run(session, Ramp({n}));
      ASSERT_EQ(y.shape(), Shape{n});
      ASSERT_EQ(y.data<float>()[0], 3);
    }
  }
  EXPECT_EQ(plans_, 200);
}

TEST_F(Signatures, ShareArrangedWeightsAndMemory) {
  Session session = SessionOf(kConvolutions);
  Run(session, Ramp({8, 64, 16, 16}));
  const int64_t before = HeldTensorBytes();
  for (int64_t n = 1; n < 8; ++n) Run(session, Ramp({n, 64, 16, 16}));
  EXPECT_EQ(plans_, 8);
  // Filters of Winograd's take 4 times 64 * 64 * 9 floats.
  EXPECT_LT(HeldTensorBytes() - before, 64 * 64 * 9 * 4);
}

// In one arena, which grows: plans that were made before it did have to follow it.
TEST_F(Signatures, GiveWhatTheyGiveAlone) {
  Session session = SessionOf(kConvolutions);
  for (const int64_t n : {2, 5, 2, 1, 5, 9, 2}) {
    const Tensor x = Ramp({n, 64, 16, 16});
    Session alone = SessionOf(kConvolutions);
    ExpectSame(Run(session, x), Run(alone, x));
  }
}

TEST_F(Signatures, KeepLittleMemory) {
  Session session = SessionOf(R"(g (float[N, 1024] x) => (float[N, 1024] y) {
    shape = Shape(x)
    ones = ConstantOfShape <value = float[1] {1}> (shape)
    y = Mul(ones, x)
  })");
  Run(session, Ramp({255, 1024}));
  const int64_t before = HeldTensorBytes();
  for (int64_t n = 256; n < 384; ++n) Run(session, Ramp({n, 1024}));
  EXPECT_LT(HeldTensorBytes() - before, int64_t{80} << 20);
}

// Every plan of the graph has a body of its own, with an arena.
TEST_F(Signatures, KeepLittleMemoryOfBodies) {
  Session session = SessionOf(R"(g (float[N, 1024] x) => (float[N, 1024] y) {
    most = Constant <value = int64 {2}> ()
    yes = Constant <value = bool {1}> ()
    y = Loop(most, yes, x) <body = b (int64 i, bool c, float[N, 1024] s) => (bool still, float[N, 1024] t) {
      still = Identity(c)
      axes = Constant <value = int64[1] {1}> ()
      u = CumSum(s, i)
      m = ReduceMax(u, axes)
      t = Sub(u, m)
    }>
  })");
  Run(session, Ramp({1000, 1024}));
  const int64_t before = HeldTensorBytes();
  for (int64_t n = 1001; n < 1160; ++n) Run(session, Ramp({n, 1024}));
  EXPECT_EQ(plans_, 160);
  EXPECT_LT(HeldTensorBytes() - before, int64_t{400} << 20);
}

// Every iteration of a loop that carries a growing tensor has a signature of its own.
TEST_F(Signatures, GrowInALoop) {
  Session session = SessionOf(R"(g (float[N, 2] x) => (float[M, 2] y) {
    most = Constant <value = int64 {40}> ()
    yes = Constant <value = bool {1}> ()
    y = Loop(most, yes, x) <body = b (int64 i, bool c, float[K, 2] s) => (bool still, float[L, 2] longer) {
      still = Identity(c)
      half = Constant <value = float {0.5}> ()
      last = Constant <value = int64 {-1}> ()
      end = Gather(s, last)
      less = Mul(end, half)
      axis = Constant <value = int64[1] {0}> ()
      row = Unsqueeze(less, axis)
      longer = Concat <axis = 0> (s, row)
    }>
  })");
  for (int round = 0; round < 3; ++round) {
    const Tensor y = Run(session, Tensor::FromValues<float>({1, 2}, {1, -4}));
    ASSERT_EQ(y.shape(), (Shape{41, 2}));
    for (int64_t i = 0; i <= 40; ++i) {
      ASSERT_EQ(y.data<float>()[2 * i], std::ldexp(1.0f, static_cast<int>(-i)));
      ASSERT_EQ(y.data<float>()[2 * i + 1], std::ldexp(-4.0f, static_cast<int>(-i)));
    }
  }
}

}  // namespace onward::signatures_test
