// SPDX-License-Identifier: Apache-2.0
// The gradients of random graphs against differences along random directions, in double.
#include "tests/support/random_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/runtime/session.h"
#include "environment/environment.h"
#include "tests/support/case_draws.h"
#include "tests/support/far_device.h"
#include "tests/support/op_case.h"
#include "tests/support/test_environment.h"

namespace onward::random_graph_test {

constexpr int kGraphs = 200;
constexpr double kStep = 1e-5, kTolerance = 2e-6;

class RandomGraphTest : public testing::TestWithParam<int> {};

TEST_P(RandomGraphTest, AgreesWithDifferences) {
  const RandomGraph drawn(GetParam());
  ASSERT_TRUE(drawn.status().ok()) << drawn.status();
  const auto gradients = drawn.Differentiated();
  ASSERT_TRUE(gradients.ok()) << gradients.status();
  // The differences are the CPU's, whatever runs the gradients.
  CompileOptions compile = TestEnvironment().compile_options();
  CompileOptions compile_loss = DefaultEnvironment().compile_options();
  compile.outputs = gradients->values;
  compile_loss.outputs = {drawn.loss};
  Session session(gradients->graph, std::move(compile));
  Session losses(drawn.graph, std::move(compile_loss));
  const auto run = [](Session& on, const TensorMap& feeds) {
    Variables none;
    const absl::StatusOr<TensorMap> found = on.Run(feeds, &none);
    EXPECT_TRUE(found.ok()) << found.status();
    return found.value_or(TensorMap());
  };
  Draws draws(absl::StrCat("numbers", GetParam()));
  const TensorMap feeds = drawn.Feeds(draws);
  const TensorMap here = run(session, feeds);
  for (size_t i = 0; i < drawn.inputs.size(); ++i) {
    const Tensor x = feeds.at(drawn.inputs[i]);
    const Tensor direction = DrawArg(Real(drawn.shapes[i], -1, 1), draws);
    const auto loss_at = [&](double step) {
      Tensor moved = x.Clone();
      for (int64_t k = 0; k < x.elements(); ++k) {
        moved.data<double>()[k] += step * direction.data<double>()[k];
      }
      TensorMap other = feeds;
      other[drawn.inputs[i]] = moved;
      return run(losses, other).at(drawn.loss).data<double>()[0];
    };
    const double expected = (loss_at(kStep) - loss_at(-kStep)) / (2 * kStep);
    double slope = 0, scale = 1;
    for (int64_t k = 0; k < x.elements(); ++k) {
      const double term =
          here.at(gradients->values[i]).data<double>()[k] * direction.data<double>()[k];
      slope += term;
      scale = std::max(scale, std::abs(term));
    }
    EXPECT_NEAR(slope, expected, kTolerance * scale) << drawn.inputs[i];
  }
}

// The gradients on a device that lacks every operator of the graph at random.
TEST_P(RandomGraphTest, IsTheSameOnADeviceThatLacksKernels) {
  const RandomGraph drawn(GetParam());
  ASSERT_TRUE(drawn.status().ok()) << drawn.status();
  const auto gradients = drawn.Differentiated();
  ASSERT_TRUE(gradients.ok()) << gradients.status();
  Draws draws(absl::StrCat("devices", GetParam()));
  FarOptions lacks;
  for (const Node& node : gradients->graph.nodes) {
    if (draws.Below(3) == 0) lacks.without.insert(node.op_type);
  }
  const TensorMap feeds = drawn.Feeds(draws);
  const auto counters = std::make_shared<FarCounters>();
  const Environment& environment = DefaultEnvironment();
  const auto far = MakeFarDevice(environment.cpu(), lacks, counters);
  CompileOptions here = environment.compile_options(), there = here;
  int copies = 0;
  there.accelerators = {far.get()};
  there.planned = [&](const Plan& plan) { copies += CopiesOf(plan); };
  here.outputs = there.outputs = gradients->values;
  const auto expected = Session(gradients->graph, here).Run(feeds, nullptr);
  const auto found = Session(gradients->graph, there).Run(feeds, nullptr);
  ASSERT_TRUE(expected.ok()) << expected.status();
  ASSERT_TRUE(found.ok()) << found.status();
  for (const auto& [name, tensor] : *expected) {
    for (int64_t k = 0; k < tensor.elements(); ++k) {
      const double value = tensor.data<double>()[k];
      // The standard's body of LayerNormalization rounds to float on the way (stash_type).
      ASSERT_NEAR(found->at(name).data<double>()[k], value, 1e-6 * (1 + std::abs(value))) << name;
    }
  }
  EXPECT_EQ(counters->copies_in + counters->copies_out, copies);
  EXPECT_EQ(counters->live_bytes, 0);
}

INSTANTIATE_TEST_SUITE_P(Graphs, RandomGraphTest, testing::Range(0, kGraphs));

}  // namespace onward::random_graph_test
