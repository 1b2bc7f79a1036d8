// SPDX-License-Identifier: Apache-2.0
// Two emulated GPUs, each of which lacks kernels: plans as text, and random graphs that are the
// CPU's in both. What the runtime owes any device is in tests/core/runtime/partition_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/runtime/plan/plan.h"
#include "core/runtime/session.h"
#include "environment/environment.h"
#include "tests/cuda/emulated.h"
#include "tests/cuda/emulated_environment.h"
#include "tests/cuda_emu/control.h"
#include "tests/support/far_device.h"
#include "tests/support/lacking_device.h"
#include "tests/support/random_graph.h"
#include "tests/support/text_model.h"
#include "training_info/lower.h"

namespace onward::two_devices_test {

using Lacks = std::set<std::string>;

OnwardEmuCounters Counted() {
  OnwardEmuCounters counters;
  EmulatorFunction<decltype(OnwardEmuGetCounters)>("OnwardEmuGetCounters")(&counters);
  return counters;
}

// Copies between the host and the GPUs.
int64_t CopiesIn(const OnwardEmuCounters& c) { return c.host_to_device + c.device_to_host; }

class TwoGpus : public testing::Test {
 protected:
  TwoGpus() { SetGpus("2"); }
  ~TwoGpus() override { SetGpus("1"); }

  // GPU i lacks what lacks[i] names.
  static std::unique_ptr<const Environment> Lacking(const std::vector<Lacks>& lacks) {
    FindDevices();
    EnvironmentOptions options;
    for (size_t i = 0; i < lacks.size(); ++i) {
      const MakeAccelerator whole =
          AcceleratorNamed(absl::StrCat(CudaDeviceName(), ":", i), {}).value();
      options.accelerators.push_back(
          [whole,
           without = lacks[i]](const Device& cpu) -> absl::StatusOr<std::unique_ptr<const Device>> {
            return std::make_unique<LackingDevice>(whole(cpu).value(), without);
          });
    }
    return Environment::Make(options).value();
  }

 private:
  static void SetGpus(const char* count) {
    setenv("ONWARD_EMU_DEVICES", count, 1);
    EmulatorFunction<decltype(OnwardEmuReset)>("OnwardEmuReset")();
  }
};

struct Row {
  std::string name, graph;
  std::vector<Lacks> lacks;
  std::vector<std::string> steps;  // of the plan's text
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

class PlansOfTwoGpus : public TwoGpus, public testing::WithParamInterface<Row> {};

TEST_P(PlansOfTwoGpus, AreThese) {
  const auto environment = Lacking(GetParam().lacks);
  const Graph graph =
      RunnableGraph(TextModel("<ir_version: 10, opset_import: [\"\" : 20]> " + GetParam().graph),
                    *environment)
          .value();
  TensorMap feeds;
  for (const NamedType& in : graph.FeedInputs()) {
    Tensor& x = feeds[in.name] = Tensor(DType::kFloat, *in.type.StaticShape());
    for (int64_t i = 0; i < x.elements(); ++i) x.data<float>()[i] = std::sin(static_cast<float>(i));
  }
  const auto expected = Session(graph, DefaultEnvironment().compile_options()).Run(feeds, nullptr);
  ASSERT_TRUE(expected.ok()) << expected.status();
  const OnwardEmuCounters before = Counted();
  {
    std::string text;
    CompileOptions options = environment->compile_options();
    options.planned = [&](const Plan& plan) { absl::StrAppend(&text, plan.ToText()); };
    Session session(graph, options);
    // The second run records, the third one replays.
    for (int run = 0; run < 3; ++run) {
      const auto found = session.Run(feeds, nullptr);
      ASSERT_TRUE(found.ok()) << found.status();
      for (const auto& [name, tensor] : *expected) {
        EXPECT_THAT(Values(found->at(name)),
                    testing::Pointwise(testing::DoubleNear(2e-3), Values(tensor)))
            << name << " in run " << run;
      }
    }
    EXPECT_THAT(StepLines(text), testing::ElementsAreArray(GetParam().steps)) << text;
  }
  EXPECT_EQ(Counted().live_bytes, before.live_bytes);
}

INSTANTIATE_TEST_SUITE_P(
    Graphs, PlansOfTwoGpus,
    testing::ValuesIn(std::vector<Row>{
        {"InTurn",
         "g (float[4,8] x, float[8,8] w) => (float[4,8] y) { a = Softmax(x) b = MatMul(a, w) y = "
         "Softmax(b) }",
         {{"MatMul"}, {}},
         {"x = Copy(x)  @cpu -> cuda:0", "a = Softmax(x)  @cuda:0", "a = Copy(a)  @cuda:0 -> cpu",
          "w = Copy(w)  @cpu -> cuda:1", "a = Copy(a)  @cpu -> cuda:1", "b = MatMul(a, w)  @cuda:1",
          "b = Copy(b)  @cuda:1 -> cpu", "b = Copy(b)  @cpu -> cuda:0", "y = Softmax(b)  @cuda:0",
          "y = Copy(y)  @cuda:0 -> cpu"}},
        {"MixedPrecision",
         "g (float[4,8] x, float[8,8] w) => (float[4,8] y) { h = Cast <to = 10> (x) v = Cast <to = "
         "10> (w) a = MatMul(h, v) b = Cast <to = 1> (a) y = Softmax(b) }",
         {{"Softmax"}, {"MatMul"}},
         {"x = Copy(x)  @cpu -> cuda:0", "w = Copy(w)  @cpu -> cuda:0", "h = Cast(x)  @cuda:0",
          "v = Cast(w)  @cuda:0", "a = MatMul(h, v)  @cuda:0", "b = Cast(a)  @cuda:0",
          "b = Copy(b)  @cuda:0 -> cpu", "b = Copy(b)  @cpu -> cuda:1", "y = Softmax(b)  @cuda:1",
          "y = Copy(y)  @cuda:1 -> cpu"}},
    }),
    [](const auto& info) { return info.param.name; });

// Each GPU lacks every operator of the graph at random.
TEST_F(TwoGpus, GiveTheGradientsOfRandomGraphs) {
  constexpr int kGraphs = 60;
  int64_t on_first = 0, on_second = 0, counted = 0;
  for (int number = 0; number < kGraphs; ++number) {
    const RandomGraph drawn(number);
    const auto gradients = drawn.Differentiated();
    ASSERT_TRUE(gradients.ok()) << gradients.status();
    Draws draws(absl::StrCat("two GPUs", number));
    std::vector<Lacks> lacks(2);
    for (const Node& node : gradients->graph.nodes) {
      if (draws.Below(3) == 0) lacks[draws.Below(2)].insert(node.op_type);
      if (draws.Below(4) == 0) lacks[0].insert(node.op_type);
    }
    const TensorMap feeds = drawn.Feeds(draws);
    CompileOptions here = DefaultEnvironment().compile_options();
    here.outputs = gradients->values;
    const auto expected = Session(gradients->graph, here).Run(feeds, nullptr);
    ASSERT_TRUE(expected.ok()) << expected.status();
    const auto environment = Lacking(lacks);
    const OnwardEmuCounters before = Counted();
    {
      int copies = 0;
      bool may_fault = false;  // which is copied, too
      CompileOptions there = environment->compile_options();
      there.outputs = gradients->values;
      there.planned = [&](const Plan& plan) {
        copies += CopiesOf(plan);
        for (const PlanStep& step : plan.compute) {
          on_first += step.device == 1 && !step.transfer;
          on_second += step.device == 2 && !step.transfer;
          may_fault |= step.device != kHost && step.kernel.fault != nullptr;
        }
      };
      Session session(gradients->graph, there);
      for (int run = 0; run < 3; ++run) {
        const auto found = session.Run(feeds, nullptr);
        ASSERT_TRUE(found.ok()) << number << ": " << found.status();
        for (const auto& [name, tensor] : *expected) {
          for (int64_t k = 0; k < tensor.elements(); ++k) {
            const double value = tensor.data<double>()[k];
            // The standard's body of LayerNormalization rounds to float on the way (stash_type).
            ASSERT_NEAR(found->at(name).data<double>()[k], value, 1e-6 * (1 + std::abs(value)))
                << name << " of graph " << number << " in run " << run;
          }
        }
        if (run > 0 || may_fault) continue;
        ++counted;
        EXPECT_EQ(CopiesIn(Counted()) - CopiesIn(before), copies) << "graph " << number;
      }
    }
    EXPECT_EQ(Counted().live_bytes, before.live_bytes) << "graph " << number;
  }
  EXPECT_GT(on_first, 0);
  EXPECT_GT(on_second, 0);
  EXPECT_GT(counted, kGraphs / 3);
}

}  // namespace onward::two_devices_test
