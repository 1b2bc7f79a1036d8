// SPDX-License-Identifier: Apache-2.0
// Kernels under shuffled schedules: threads, warps and blocks in any order give the same result,
// and would not without their barriers.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "environment/environment.h"
#include "tests/cuda/device_checker.h"
#include "tests/cuda/large_calls.h"
#include "tests/cuda_emu/control.h"
#include "tests/ops/cases.h"
#include "tests/support/long_tests.h"

namespace onward {
namespace {

// Which barriers there are, and whether one is left out.
struct Barriers {
  decltype(&OnwardEmuBarrierSites) count =
      EmulatorFunction<decltype(OnwardEmuBarrierSites)>("OnwardEmuBarrierSites");
  decltype(&OnwardEmuBarrierFile) file =
      EmulatorFunction<decltype(OnwardEmuBarrierFile)>("OnwardEmuBarrierFile");
  decltype(&OnwardEmuBarrierLine) line =
      EmulatorFunction<decltype(OnwardEmuBarrierLine)>("OnwardEmuBarrierLine");
  decltype(&OnwardEmuSkipBarrier) skip =
      EmulatorFunction<decltype(OnwardEmuSkipBarrier)>("OnwardEmuSkipBarrier");
};

void Shuffle(uint64_t seed) { EmulatorFunction<decltype(OnwardEmuSeed)>("OnwardEmuSeed")(seed); }

struct Call {
  KernelInputs inputs;
  reference::Arrays expected;
  std::string what;
};

// Rows of every family in float, their gradients, and what is larger.
const std::vector<Call>& Calls() {
  static const auto* const calls = [] {
    auto* all = new std::vector<Call>;
    const auto add = [all](const KernelInputs& inputs, const reference::Arrays& expected,
                           const std::string& what) {
      const bool known = Emulated().kernels().Find(inputs.node.op_type, inputs.node.domain);
      if (known && HasShapes(inputs)) all->push_back({inputs, expected, what});
    };
    for (auto* rows : {ReduceCases, ShapeCases, IndexCases, MatMulCases, ConvCases, PoolCases,
                       NormCases, AttentionCases, RnnCases, LossCases, ForwardCases}) {
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
    // More than one tile of attention.
    for (const OpCase& c : LargeFunctionCases()) CheckRow(c, DType::kFloat, DType::kInt64, add);
    for (const LargeCall& c : LargeCalls()) CheckLarge(c, DType::kFloat, add);
    return all;
  }();
  return *calls;
}

// Whether some kernel for the call gives something else.
bool Differs(const Call& call) {
  const auto* entries =
      Emulated().kernels().Find(call.inputs.node.op_type, call.inputs.node.domain);
  for (const KernelTable::Entry& entry : *entries) {
    DeviceTrial trial(Emulated(), EmulatedStream(), entry, call.inputs);
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

TEST(Schedules, GiveTheSame) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    Shuffle(seed);
    for (const Call& call : Calls()) EXPECT_FALSE(Differs(call)) << call.what << ", seed " << seed;
  }
  Shuffle(0);
}

// One run with every access of a thread looked at: by the emulator, or by the thread sanitizer
// where that is linked. Grids are small, since it takes long; the short form takes every tenth.
TEST(Accesses, AreInBoundsAndOrdered) {
  constexpr int64_t kMostElements = 1 << 12;
  const size_t every = LongTests() ? 1 : 10;
  const auto strict = EmulatorFunction<decltype(OnwardEmuStrict)>("OnwardEmuStrict");
  strict(2);
  Shuffle(1);
  int runs = 0;
  for (size_t i = 0; i < Calls().size(); i += every) {
    const Call& call = Calls()[i];
    int64_t elements = 0;
    for (const Tensor& t : call.inputs.values) elements += t.defined() ? t.elements() : 0;
    if (elements > kMostElements) continue;
    EXPECT_FALSE(Differs(call)) << call.what;
    ++runs;
  }
  EXPECT_GT(runs, LongTests() ? 500 : 50);
  Shuffle(0);
  strict(0);
}

TEST(Barriers, AreNeeded) {
  const Barriers barriers;
  std::vector<Call> calls = Calls();
  for (const LargeCall& c : HugeCases()) {
    if (c.op != "Transpose") continue;
    CheckLarge(c, DType::kInt8,
               [&](const KernelInputs& inputs, const reference::Arrays& expected,
                   const std::string& what) {
                 calls.push_back({inputs, expected, what});
               });
  }
  for (const Call& call : calls) EXPECT_FALSE(Differs(call)) << call.what;
  for (int site = 0; site < barriers.count(); ++site) {
    if (!absl::StrContains(barriers.file(site), "core/cuda/")) continue;
    barriers.skip(site);
    bool seen = false;
    for (uint64_t seed = 1; seed <= 3 && !seen; ++seed) {
      Shuffle(seed);
      for (size_t i = 0; i < calls.size() && !seen; ++i) seen = Differs(calls[i]);
    }
    EXPECT_TRUE(seen) << "nothing needs the barrier at " << barriers.file(site) << ":"
                      << barriers.line(site);
  }
  barriers.skip(-1);
  Shuffle(0);
}

}  // namespace
}  // namespace onward
