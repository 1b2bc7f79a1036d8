// SPDX-License-Identifier: Apache-2.0
// Kernels under shuffled schedules: threads, warps and blocks in any order give the same result,
// and would not without their barriers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/cuda/calls.h"
#include "tests/cuda/large_calls.h"
#include "tests/cuda_emu/control.h"
#include "tests/support/paths.h"

namespace onward::schedule_test {

// Which barriers there are, and whether one is left out.
struct Barriers {
  decltype(&OnwardEmuBarrierSites) count =
      EmulatorFunction<decltype(OnwardEmuBarrierSites)>("OnwardEmuBarrierSites");
  decltype(&OnwardEmuBarrierFile) file =
      EmulatorFunction<decltype(OnwardEmuBarrierFile)>("OnwardEmuBarrierFile");
  decltype(&OnwardEmuBarrierLine) line =
      EmulatorFunction<decltype(OnwardEmuBarrierLine)>("OnwardEmuBarrierLine");
  decltype(&OnwardEmuBarrierReached) reached =
      EmulatorFunction<decltype(OnwardEmuBarrierReached)>("OnwardEmuBarrierReached");
  decltype(&OnwardEmuSkipBarrier) skip =
      EmulatorFunction<decltype(OnwardEmuSkipBarrier)>("OnwardEmuSkipBarrier");
};

TEST(Schedules, GiveTheSame) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    Shuffle(seed);
    for (const Call& call : Calls()) EXPECT_FALSE(Differs(call)) << call.what << ", seed " << seed;
  }
  Shuffle(0);
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
  std::vector<int64_t> before;
  std::vector<std::vector<const Call*>> calls_at;  // by barrier: those that reach it
  for (const Call& call : calls) {
    EXPECT_FALSE(Differs(call)) << call.what;
    before.resize(barriers.count(), 0);
    calls_at.resize(barriers.count());
    for (int site = 0; site < barriers.count(); ++site) {
      if (barriers.reached(site) > before[site]) calls_at[site].push_back(&call);
      before[site] = barriers.reached(site);
    }
  }
  std::set<std::string> left = BarriersOfTheSources();
  EXPECT_FALSE(left.empty());
  for (int site = 0; site < static_cast<int>(calls_at.size()); ++site) {
    const std::string file = barriers.file(site);
    const size_t begin = file.find("core/cuda/");
    if (begin == std::string::npos) continue;
    const std::string where = absl::StrCat(file.substr(begin), ":", barriers.line(site));
    left.erase(where);
    const bool seen = IsSeen([&] {
      barriers.skip(site);
      return absl::c_any_of(std::vector<uint64_t>{1, 2, 3}, [&](uint64_t seed) {
        Shuffle(seed);
        return absl::c_any_of(calls_at[site], [](const Call* call) { return Differs(*call); });
      });
    });
    EXPECT_TRUE(seen) << "nothing needs the barrier at " << where;
  }
  EXPECT_THAT(left, testing::IsEmpty()) << "no call reaches them";
}

}  // namespace onward::schedule_test
