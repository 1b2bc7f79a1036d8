// SPDX-License-Identifier: Apache-2.0
// How plans run on the CUDA device: a step is one graph, bodies run on the device, and what its
// options change.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "core/runtime/plan/plan.h"
#include "core/runtime/session.h"
#include "tests/cuda/emulated.h"
#include "tests/cuda/emulated_environment.h"
#include "tests/cuda_emu/control.h"
#include "tests/support/far_training.h"
#include "tests/support/text_model.h"
#include "training_info/lower.h"
#include "training_info/step.h"

namespace onward::graph_run_test {

using testing::HasSubstr;

OnwardEmuCounters Counters() {
  OnwardEmuCounters counters;
  EmulatorFunction<void(OnwardEmuCounters*)>("OnwardEmuGetCounters")(&counters);
  return counters;
}

TEST(CudaGraphs, HoldTheWholeStep) {
  const auto environment = EmulatedEnvironment();
  auto here = Open(FarNetwork()), there = Open(FarNetwork(), *environment);
  EXPECT_THAT((*there->PrepareStep(0, FarBatch(0), {}))->plan().ToText(),
              HasSubstr("commit, in graph 1:"));
  for (int step = 0; step < 6; ++step) {
    const OnwardEmuCounters before = Counters();
    const auto found = there->Step(FarBatch(step)), expected = here->Step(FarBatch(step));
    ASSERT_TRUE(found.ok() && expected.ok()) << found.status();
    const OnwardEmuCounters after = Counters();
    EXPECT_EQ(after.graph_launches - before.graph_launches, 1) << step;
    EXPECT_EQ(after.waits - before.waits, 1) << step;
    for (const auto& [name, tensor] : *expected) {
      EXPECT_THAT(Values(found->at(name)),
                  testing::Pointwise(testing::DoubleNear(1e-4), Values(tensor)))
          << name << " in step " << step;
    }
  }
}

TEST(CudaGraphs, TakeWhatIsFedMeanwhile) {
  const auto environment = EmulatedEnvironment();
  auto here = Open(FarNetwork()), there = Open(FarNetwork(), *environment);
  std::vector<TensorMap> batches;
  for (int step = 0; step < 6; ++step) batches.push_back(FarBatch(step));
  for (int step = 0; step < 6; ++step) {
    bool staged = false;
    there->set_meanwhile([&] {
      staged = true;
      EXPECT_TRUE(there->Stage(batches[(step + 1) % 6]).ok());
    });
    const auto found = there->Step(batches[step]), expected = here->Step(batches[step]);
    ASSERT_TRUE(found.ok() && expected.ok()) << found.status();
    EXPECT_TRUE(staged);
    for (const auto& [name, tensor] : *expected) {
      EXPECT_THAT(Values(found->at(name)),
                  testing::Pointwise(testing::DoubleNear(1e-4), Values(tensor)))
          << name << " in step " << step;
    }
  }
}

struct Control {
  std::string name, graph;
};
void PrintTo(const Control& control, std::ostream* out) { *out << control.name; }

class CudaBodies : public testing::TestWithParam<Control> {};

TEST_P(CudaBodies, RunOnTheDevice) {
  const auto environment = EmulatedEnvironment();
  const Graph graph =
      RunnableGraph(TextModel("<ir_version: 10, opset_import: [\"\" : 20]> " + GetParam().graph),
                    *environment)
          .value();
  Session there(graph, environment->compile_options());
  Session here(graph, DefaultEnvironment().compile_options());
  for (int round = 0; round < 3; ++round) {
    TensorMap feeds = {{"x", Tensor(DType::kFloat, Shape{6, 16})},
                       {"w", Tensor(DType::kFloat, Shape{16, 16})},
                       {"n", Tensor::Scalar<int64_t>(7)},
                       {"c", Tensor::Scalar<bool>(round != 1)}};
    for (int i = 0; i < 6 * 16; ++i) {
      feeds["x"].data<float>()[i] = static_cast<float>((i + round) % 7) / 8;
    }
    for (int i = 0; i < 16 * 16; ++i) {
      feeds["w"].data<float>()[i] = static_cast<float>(i % 5 - 2) / 8;
    }
    TensorMap given;
    for (const NamedType& in : graph.FeedInputs()) given[in.name] = feeds.at(in.name);
    const auto expected = here.Run(given, nullptr), found = there.Run(given, nullptr);
    ASSERT_TRUE(expected.ok()) << expected.status();
    ASSERT_TRUE(found.ok()) << found.status();
    for (const auto& [name, tensor] : *expected) {
      EXPECT_EQ(found->at(name).shape(), tensor.shape());
      EXPECT_THAT(Values(found->at(name)),
                  testing::Pointwise(testing::DoubleNear(1e-4), Values(tensor)))
          << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Controls, CudaBodies,
    testing::ValuesIn(std::vector<Control>{
        {"Branch",
         "g (float[6,16] x, bool c, float[16,16] w) => (float[6,16] y) { a = MatMul(x, w) b = If "
         "(c) <then_branch = t () => (float[6,16] p) { p = Tanh(a) }, else_branch = e () => "
         "(float[6,16] q) { q = Identity(a) }> y = MatMul(b, w) }"},
        {"Loop",
         "g (float[6,16] x, int64 n, float[16,16] w) => (float[6,16] y, float[M,6,16] all) { y, "
         "all = Loop (n, , x) <body = b (int64 i, bool k, float[6,16] h) => (bool m, float[6,16] "
         "next, float[6,16] seen) { m = Identity(k) z = MatMul(h, w) next = Tanh(z) seen = Neg(z) "
         "}> }"},
        {"LoopUntil",
         "g (float[6,16] x, int64 n, float[16,16] w) => (float[6,16] y) <float small = {0.6}> { y "
         "= "
         "Loop (n, , x) <body = b (int64 i, bool k, float[6,16] h) => (bool m, float[6,16] next) { "
         "next = MatMul(h, w) s = ReduceMax <keepdims = 0> (next) m = Less(small, s) }> }"},
        {"Scan",
         "g (float[6,16] x, float[16,16] w) => (float[1,16] last, float[6,1,16] all) <float[1,16] "
         "first = {0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0}> { last, all = Scan (first, x) <body = b "
         "(float[1,16] h, float[16] s) => (float[1,16] next, float[1,16] copy) { z = MatMul(h, w) "
         "a "
         "= Add(z, s) next = Tanh(a) copy = Exp(next) }, num_scan_inputs = 1, "
         "scan_input_directions = [1], scan_output_directions = [1]> }"},
    }),
    [](const auto& info) { return info.param.name; });

// Sums in any order are near those in order, and float products in TF32 are not what they are
// otherwise.
TEST(CudaOptions, AreHeeded) {
  const std::string header = "<ir_version: 10, opset_import: [\"\" : 20]> ";
  const Model model = TextModel(
      header +
      "g (float[64,4] x, int64[64,1] i, float[64,8] a, float[8,4] b) => (float[5,4] sums, "
      "float[5,4] each, float[64,4] y) <float[5,4] zero = "
      "{0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0}, "
      "int64[2] wide = {64, 4}> { sums = ScatterND <reduction = \"add\"> (zero, i, x) j = "
      "Expand(i, "
      "wide) each = ScatterElements <reduction = \"add\", axis = 0> (zero, j, x) y = MatMul(a, b) "
      "}");
  TensorMap feeds = {{"x", Tensor(DType::kFloat, Shape{64, 4})},
                     {"i", Tensor(DType::kInt64, Shape{64, 1})},
                     {"a", Tensor(DType::kFloat, Shape{64, 8})},
                     {"b", Tensor(DType::kFloat, Shape{8, 4})}};
  for (int64_t k = 0; k < 64; ++k) feeds["i"].data<int64_t>()[k] = k * 7 % 5;
  for (const char* name : {"x", "a", "b"}) {
    for (int64_t k = 0; k < feeds[name].elements(); ++k) {
      feeds[name].data<float>()[k] = std::sin(static_cast<float>(k)) + 0.001f;
    }
  }
  const auto run = [&](const Environment& environment) {
    return Session(RunnableGraph(model, environment).value(), environment.compile_options())
        .Run(feeds, nullptr)
        .value();
  };
  const TensorMap expected = run(DefaultEnvironment());
  for (const bool deterministic : {true, false}) {
    for (const bool tf32 : {true, false}) {
      DeviceOptions options;
      options.deterministic = deterministic;
      options.allow_tf32 = tf32;
      TensorMap found = run(*EmulatedEnvironment(options));
      for (const char* sums : {"sums", "each"}) {
        EXPECT_THAT(Values(found[sums]),
                    testing::Pointwise(testing::DoubleNear(1e-5), Values(expected.at(sums))));
        EXPECT_TRUE(!deterministic || Identical(found[sums], expected.at(sums)));
      }
      double error = 0;
      for (int64_t k = 0; k < 64 * 4; ++k) {
        error = std::max<double>(
            error, std::abs(found["y"].data<float>()[k] - expected.at("y").data<float>()[k]));
      }
      EXPECT_LT(error, tf32 ? 1e-2 : 1e-6);
      // What a GPU does with products as small as these is for cuBLAS to say.
      if (CudaDeviceName() == "cuda-emu") {
        EXPECT_EQ(error > 1e-5, tf32);
      }
    }
  }
}

}  // namespace onward::graph_run_test
