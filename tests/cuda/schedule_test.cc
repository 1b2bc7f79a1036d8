// SPDX-License-Identifier: Apache-2.0
// Kernels under shuffled schedules: threads, warps and blocks in any order give the same result,
// and would not without their barriers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "environment/environment.h"
#include "tests/cuda/device_checker.h"
#include "tests/cuda/large_calls.h"
#include "tests/cuda_emu/control.h"
#include "tests/ops/cases.h"
#include "tests/support/kernel_trial.h"
#include "tests/support/paths.h"
#include "tests/support/reference/array.h"

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

// More draws of numpy's generator than it has words; on every device they are those of the CPU.
Call NumpyDraws() {
  constexpr int64_t kDraws = 1000;
  KernelInputs inputs{};
  inputs.node.op_type = "RandomUniform";
  inputs.node.attributes.emplace("seed", Attribute(5.0f));
  inputs.node.attributes.emplace("shape", Attribute(std::vector<int64_t>{kDraws}));
  inputs.node.outputs = {"y"};
  inputs.outputs = {{DType::kFloat, Shape{kDraws}, nullptr, nullptr}};
  KernelTrial trial(DefaultEnvironment().cpu().kernels().Find("RandomUniform", "")->front(), inputs,
                    Placings()[0]);
  return {inputs, {reference::FromTensor(trial.Run().value()[0])}, "RandomUniform"};
}

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
    all->push_back(NumpyDraws());
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
// where that is linked. Grids are small, since it takes long.
TEST(Accesses, AreInBoundsAndOrdered) {
  constexpr int64_t kMostElements = 1 << 12;
  const auto strict = EmulatorFunction<decltype(OnwardEmuStrict)>("OnwardEmuStrict");
  strict(2);
  Shuffle(1);
  int runs = 0;
  for (const Call& call : Calls()) {
    int64_t elements = 0;
    for (const Tensor& t : call.inputs.values) elements += t.defined() ? t.elements() : 0;
    if (elements > kMostElements) continue;
    EXPECT_FALSE(Differs(call)) << call.what;
    ++runs;
  }
  EXPECT_GT(runs, 500);
  Shuffle(0);
  strict(0);
}

// "core/cuda/FILE:LINE" of every barrier in the sources.
std::set<std::string> BarriersOfTheSources() {
  std::set<std::string> lines;
  const std::string sources = SourceFolder() + "/core/cuda";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(sources)) {
    const std::string file = entry.path().string().substr(SourceFolder().size() + 1);
    std::ifstream in(entry.path());
    std::string text;
    for (int line = 1; std::getline(in, text); ++line) {
      if (absl::StrContains(text, "__syncthreads();")) lines.insert(absl::StrCat(file, ":", line));
    }
  }
  return lines;
}

// Whether a process of its own finds something, or ends by an access that the emulator does not
// allow: keys that are sorted without a barrier point anywhere.
bool IsSeen(const std::function<bool()>& look) {
  const pid_t child = fork();
  if (child == 0) {
    if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(0);
    _exit(look() ? 1 : 0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
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
  // The first call that may have reached a barrier.
  std::vector<size_t> first(barriers.count(), 0);
  for (size_t i = 0; i < calls.size(); ++i) {
    EXPECT_FALSE(Differs(calls[i])) << calls[i].what;
    first.resize(barriers.count(), i);
  }
  std::set<std::string> left = BarriersOfTheSources();
  EXPECT_FALSE(left.empty());
  for (int site = 0; site < barriers.count(); ++site) {
    const std::string file = barriers.file(site);
    const size_t begin = file.find("core/cuda/");
    if (begin == std::string::npos) continue;
    const std::string where = absl::StrCat(file.substr(begin), ":", barriers.line(site));
    left.erase(where);
    const bool seen = IsSeen([&] {
      barriers.skip(site);
      return absl::c_any_of(std::vector<uint64_t>{1, 2, 3}, [&](uint64_t seed) {
        Shuffle(seed);
        return std::any_of(calls.begin() + first[site], calls.end(), Differs);
      });
    });
    EXPECT_TRUE(seen) << "nothing needs the barrier at " << where;
  }
  EXPECT_THAT(left, testing::IsEmpty()) << "no call reaches them";
}

}  // namespace
}  // namespace onward
