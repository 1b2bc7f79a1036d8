// SPDX-License-Identifier: Apache-2.0
// Optimizer steps of long lists of tensors against the CPU's kernels, and what they say of updates
// that would not be finite.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "environment/environment.h"
#include "tests/cuda/emulated.h"
#include "tests/cuda_emu/control.h"
#include "tests/support/device_trial.h"
#include "tests/support/kernel_trial.h"

namespace onward::optimizer_test {

struct Step {
  const char* op;
  const char* domain;
  int states;
  bool has_t;
};

const Step kSteps[] = {
    {"SgdStep", "ai.onward", 0, false},
    {"AdamWStep", "ai.onward", 2, true},
    {"Adagrad", "ai.onnx.preview.training", 1, true},
    {"Momentum", "ai.onnx.preview.training", 1, true},
    {"Adam", "ai.onnx.preview.training", 2, true},
};

void PrintTo(const Step& step, std::ostream* out) { *out << step.op; }

// Sizes that leave blocks with and without a rest; two types.
struct Lists {
  static constexpr int kTensors = 100;
  static constexpr int kMoreThanOneLaunchTakes = 900;
  static int64_t SizeOf(int i) { return i == 7 ? 0 : i == 11 ? 9001 : 1 + i % 100; }
  static DType TypeOf(int i) { return i % 3 == 2 ? DType::kDouble : DType::kFloat; }
};

Tensor Filled(int i, int kind) {
  Tensor t(Lists::TypeOf(i), Shape{Lists::SizeOf(i)});
  for (int64_t k = 0; k < t.elements(); ++k) {
    const double wave = std::sin(0.37 * static_cast<double>(k) + i + 5 * kind);
    const double value = kind > 1 ? std::abs(wave) : wave;  // states may be sums of squares
    if (t.dtype() == DType::kFloat) {
      t.data<float>()[k] = static_cast<float>(value);
    } else {
      t.data<double>()[k] = value;
    }
  }
  return t;
}

KernelInputs CallOf(const Step& step, int tensors = Lists::kTensors) {
  KernelInputs call;
  call.node.op_type = step.op;
  call.node.domain = step.domain;
  if (std::string(step.op) == "Momentum") {
    call.node.attributes["alpha"] = Attribute(0.9f);
    call.node.attributes["beta"] = Attribute(0.8f);
    call.node.attributes["norm_coefficient"] = Attribute(0.01f);
    call.node.attributes["mode"] = Attribute(std::string("nesterov"));
  }
  call.values.push_back(Tensor::Scalar(0.1f));
  if (step.has_t) call.values.push_back(Tensor::Scalar(int64_t{3}));
  for (int kind = 0; kind < 2 + step.states; ++kind) {
    for (int i = 0; i < tensors; ++i) {
      call.values.push_back(Filled(i, kind));
      if (kind == 1) continue;
      call.outputs.push_back({Lists::TypeOf(i), Shape{Lists::SizeOf(i)}, nullptr, nullptr});
    }
  }
  call.constant.assign(call.values.size(), false);
  return call;
}

double ValueOf(const Tensor& t, int64_t k) {
  return t.dtype() == DType::kFloat ? t.data<float>()[k] : t.data<double>()[k];
}

class CudaOptimizerTest : public testing::TestWithParam<Step> {};

int64_t Launches() {
  OnwardEmuCounters counters;
  EmulatorFunction<decltype(OnwardEmuGetCounters)>("OnwardEmuGetCounters")(&counters);
  return counters.launches;
}

TEST_P(CudaOptimizerTest, IsOneLaunchForEachType) {
  for (const int tensors : {5, 44, 45, Lists::kTensors, 256, Lists::kMoreThanOneLaunchTakes}) {
    const KernelInputs call = CallOf(GetParam(), tensors);
    const auto* on_gpu = Emulated().kernels().Find(call.node.op_type, call.node.domain);
    DeviceTrial trial(Emulated(), EmulatedStream(), on_gpu->front(), call);
    const int64_t before = Launches();
    ASSERT_TRUE(trial.Run().ok());
    EXPECT_EQ(Launches() - before, tensors == Lists::kMoreThanOneLaunchTakes ? 5 : 2) << tensors;
  }
}

TEST_P(CudaOptimizerTest, UpdatesLongListsAsTheCpuDoes) {
  const KernelInputs call = CallOf(GetParam(), Lists::kMoreThanOneLaunchTakes);
  const auto* on_cpu =
      DefaultEnvironment().cpu().kernels().Find(call.node.op_type, call.node.domain);
  const auto* on_gpu = Emulated().kernels().Find(call.node.op_type, call.node.domain);
  ASSERT_TRUE(on_cpu != nullptr && on_gpu != nullptr);
  KernelTrial expected_trial(on_cpu->front(), call, Placings().front());
  DeviceTrial trial(Emulated(), EmulatedStream(), on_gpu->front(), call);
  ASSERT_TRUE(trial.status().ok()) << trial.status();
  const auto expected = expected_trial.Run(), results = trial.Run();
  ASSERT_TRUE(expected.ok() && results.ok()) << expected.status() << results.status();
  for (size_t o = 0; o < results->size(); ++o) {
    const Tensor &got = (*results)[o], &want = (*expected)[o];
    for (int64_t k = 0; k < want.elements(); ++k) {
      const double tolerance = want.dtype() == DType::kFloat ? 2e-6 : 1e-13;
      ASSERT_NEAR(ValueOf(got, k), ValueOf(want, k), tolerance) << "output " << o << " at " << k;
    }
  }
}

// The outputs that would not be finite where `gradient` is element `at` of tensor `tensor`'s.
std::vector<int> BadOutputs(const Step& step, int tensor, int64_t at, double gradient) {
  KernelInputs call = CallOf(step);
  Tensor& g = call.values[(step.has_t ? 2 : 1) + Lists::kTensors + tensor];
  if (g.dtype() == DType::kFloat) {
    g.data<float>()[at] = static_cast<float>(gradient);
  } else {
    g.data<double>()[at] = gradient;
  }
  const auto* entries = Emulated().kernels().Find(call.node.op_type, call.node.domain);
  DeviceTrial trial(Emulated(), EmulatedStream(), entries->front(), call);
  std::vector<Tensor> in, out;
  std::vector<const Tensor*> in_pointers;
  std::vector<Tensor*> out_pointers;
  for (const Tensor& t : call.values) in.push_back(*ToDevice(Emulated(), EmulatedStream(), t));
  for (const Tensor& t : in) in_pointers.push_back(&t);
  out.resize(call.outputs.size());
  for (const auto& [output, input] : trial.kernel().in_place) out[output] = in[input];
  for (Tensor& t : out) out_pointers.push_back(&t);
  const Shape words{static_cast<int64_t>(out.size())};
  Tensor bad = *ToDevice(Emulated(), EmulatedStream(), Tensor::Zeros(DType::kInt32, words));
  Tensor stop = *ToDevice(Emulated(), EmulatedStream(), Tensor::Scalar<int32_t>(1));
  KernelCall kernel_call{in_pointers, out_pointers, nullptr, {}};
  kernel_call.stream = EmulatedStream().native();
  kernel_call.stop = static_cast<const uint32_t*>(stop.raw());
  EXPECT_TRUE(trial.kernel().flag_infinite(kernel_call, static_cast<uint32_t*>(bad.raw())).ok());
  EXPECT_TRUE(trial.kernel().run(kernel_call).ok());
  const Tensor found = *FromDevice(EmulatedStream(), bad);
  std::vector<int> outputs;
  for (int64_t o = 0; o < found.elements(); ++o) {
    if (found.data<int32_t>()[o] != 0) outputs.push_back(static_cast<int>(o));
  }
  // Neither asking nor a run that is stopped writes anything.
  const Tensor x = *FromDevice(EmulatedStream(), out[0]);
  EXPECT_EQ(ValueOf(x, 0), ValueOf(call.values[step.has_t ? 2 : 1], 0));
  return outputs;
}

TEST_P(CudaOptimizerTest, TellsWhichUpdatesWouldNotBeFinite) {
  const Step& step = GetParam();
  EXPECT_TRUE(BadOutputs(step, 60, 5, 0.5).empty());
  const double nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<int> all;
  for (int kind = 0; kind <= step.states; ++kind) all.push_back(kind * Lists::kTensors + 60);
  EXPECT_EQ(BadOutputs(step, 60, 5, nan), all);
  // In the last block of a tensor of several.
  EXPECT_EQ(BadOutputs(step, 11, 9000, nan).front(), 11);
}

INSTANTIATE_TEST_SUITE_P(All, CudaOptimizerTest, testing::ValuesIn(kSteps),
                         [](const auto& info) { return std::string(info.param.op); });

}  // namespace onward::optimizer_test
