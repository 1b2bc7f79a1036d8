// SPDX-License-Identifier: Apache-2.0
// Calls of kernels of every family, for tests of how kernels run.
#ifndef ONWARD_TESTS_CUDA_CALLS_H_
#define ONWARD_TESTS_CUDA_CALLS_H_

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "environment/environment.h"
#include "tests/cuda/device_checker.h"
#include "tests/cuda/emulated.h"
#include "tests/cuda/large_calls.h"
#include "tests/cuda_emu/control.h"
#include "tests/ops/cases.h"
#include "tests/support/device_trial.h"
#include "tests/support/kernel_rows.h"
#include "tests/support/kernel_trial.h"
#include "tests/support/reference/array.h"

namespace onward {

struct Call {
  KernelInputs inputs;
  reference::Arrays expected;
  std::string what;
};

// What no row of the tables is about: on every device the result is that of the CPU.
inline Call AsOnTheCpu(const std::string& op, std::map<std::string, Attribute> attributes,
                       const std::vector<Tensor>& constants, DType dtype, int64_t elements) {
  KernelInputs inputs{};
  inputs.node.op_type = op;
  inputs.node.attributes = {attributes.begin(), attributes.end()};
  inputs.node.outputs = {"y"};
  inputs.values = constants;
  inputs.constant.assign(constants.size(), true);
  for (size_t i = 0; i < constants.size(); ++i) inputs.node.inputs.push_back(absl::StrCat("x", i));
  inputs.outputs = {{dtype, Shape{elements}, nullptr, nullptr}};
  KernelTrial trial(DefaultEnvironment().cpu().kernels().Find(op, "")->front(), inputs,
                    Placings()[0]);
  return {inputs, {reference::FromTensor(trial.Run().value()[0])}, op};
}

inline std::vector<Call> DrawsAndRanges() {
  constexpr int64_t kDraws = 1000;  // more than numpy's generator has words
  const std::map<std::string, Attribute> seed = {{"seed", Attribute(5.0f)}};
  std::map<std::string, Attribute> drawn = seed;
  drawn.emplace("shape", Attribute(std::vector<int64_t>{kDraws}));
  Tensor halves(DType::kFloat, Shape{kDraws});
  for (int64_t i = 0; i < kDraws; ++i) halves.data<float>()[i] = 0.5f;
  const auto from_to_by = [](auto start, auto limit, auto delta) {
    return std::vector<Tensor>{Tensor::Scalar(start), Tensor::Scalar(limit), Tensor::Scalar(delta)};
  };
  return {
      AsOnTheCpu("RandomUniform", drawn, {}, DType::kFloat, kDraws),
      AsOnTheCpu("RandomNormal", drawn, {}, DType::kFloat, kDraws),
      AsOnTheCpu("Bernoulli", seed, {halves}, DType::kFloat, kDraws),
      AsOnTheCpu("Range", {}, from_to_by(0.5f, 90.0f, 0.25f), DType::kFloat, 358),
      AsOnTheCpu("Range", {}, from_to_by(int64_t{900}, int64_t{1}, int64_t{-3}), DType::kInt64,
                 300),
  };
}

// Rows of every family in float, their gradients, and what is larger.
inline const std::vector<Call>& Calls() {
  static const auto* const calls = [] {
    auto* all = new std::vector<Call>;
    const auto add = [all](const KernelInputs& inputs, const reference::Arrays& expected,
                           const std::string& what) {
      const bool known = Emulated().kernels().Find(inputs.node.op_type, inputs.node.domain);
      if (known && HasShapes(inputs)) all->push_back({inputs, expected, what});
    };
    for (auto* rows : {ReduceCases, ShapeCases, IndexCases, MatMulCases, ConvCases, PoolCases,
                       NormCases, AttentionCases, RnnCases, LossCases, ForwardCases, LargeCases}) {
      for (const OpCase& c : rows()) {
        if (Emulated().kernels().Find(c.op, c.domain) == nullptr) continue;
        CheckRow(c, DType::kFloat, DType::kInt64, add);
      }
    }
    for (auto* rows :
         {IndexCases, ConvCases, PoolCases, NormCases, AttentionCases, RnnCases, LossCases}) {
      for (const OpCase& c : rows()) {
        if (DefaultEnvironment().cpu().kernels().Find(c.op, c.domain) == nullptr) continue;
        CheckGradient(c, DType::kFloat, add);
      }
    }
    for (Call& call : DrawsAndRanges()) all->push_back(std::move(call));
    // More than one tile of attention.
    for (const OpCase& c : LargeFunctionCases()) CheckRow(c, DType::kFloat, DType::kInt64, add);
    for (const LargeCall& c : LargeCalls()) CheckLarge(c, DType::kFloat, add);
    return all;
  }();
  return *calls;
}

// Whether some kernel that the GPU has for the call gives something else.
inline bool DiffersOn(const Device& gpu, const Call& call) {
  const auto* entries = gpu.kernels().Find(call.inputs.node.op_type, call.inputs.node.domain);
  for (const KernelTable::Entry& entry : *entries) {
    DeviceTrial trial(gpu, EmulatedStream(), entry, call.inputs);
    if (!trial.status().ok()) continue;
    const auto results = trial.Run();
    if (!results.ok()) return true;
    for (size_t i = 0; i < results->size(); ++i) {
      if (!(*results)[i].defined()) continue;
      if (!Difference((*results)[i], call.expected[i]).empty()) return true;
    }
  }
  return false;
}
inline bool Differs(const Call& call) { return DiffersOn(Emulated(), call); }

// Whether a process of its own finds something, or ends by an access that the emulator does not
// allow: keys that are sorted without a barrier point anywhere.
inline bool IsSeen(const std::function<bool()>& look) {
  const pid_t child = fork();
  if (child == 0) {
    if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(0);
    _exit(look() ? 1 : 0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

inline void Shuffle(uint64_t seed) {
  EmulatorFunction<decltype(OnwardEmuSeed)>("OnwardEmuSeed")(seed);
}

}  // namespace onward

#endif  // ONWARD_TESTS_CUDA_CALLS_H_
