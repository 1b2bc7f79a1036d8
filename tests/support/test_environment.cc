// SPDX-License-Identifier: Apache-2.0
#include "tests/support/test_environment.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/status.h"
#include "core/runtime/plan/plan.h"
#include "environment/devices.h"
#include "tests/support/paths.h"

namespace onward {
namespace {

std::string DeviceName() {
  const char* name = std::getenv("ONWARD_TEST_DEVICE");
  return name == nullptr || std::string(name) == "cpu" ? "" : name;
}

// Operators that may fall back: lines "OPERATOR: reason".
std::set<std::string> ListedFallbacks() {
  std::ifstream in(SourceFolder() + "/tests/cuda/fallbacks.txt");
  std::set<std::string> operators;
  for (std::string line; std::getline(in, line);) {
    const size_t colon = line.find(": ");
    if (line.empty() || line[0] == '#' || colon == std::string::npos) continue;
    operators.insert(line.substr(0, colon));
  }
  return operators;
}

// What the plans of this program gave to the device, and what not.
class Tally : public testing::EmptyTestEventListener {
 public:
  void Count(const Plan& plan) {
    ++plans_;
    for (const PlanStep& step : plan.compute) taken_ += step.device != kHost && !step.transfer;
    for (const PlanStep& step : plan.commit) taken_ += step.device != kHost;
    for (const PlanStep* step : plan.Fallbacks()) {
      // Control flow, and what only data can tell the shape of, is the host's.
      if (step->late) {
        ++late_;
        continue;
      }
      // Chains are named after all that they are made of.
      for (const std::string& op :
           std::vector<std::string>(absl::StrSplit(step->node.op_type, '+'))) {
        ++fallen_back_[op];
        EXPECT_TRUE(listed_.contains(op))
            << op << " fell back to the CPU: " << step->why
            << "; it needs a kernel, or a line with a reason in tests/cuda/fallbacks.txt";
      }
    }
  }

  void OnTestProgramEnd(const testing::UnitTest&) override {
    int64_t all = 0;
    for (const auto& [op, count] : fallen_back_) all += count;
    std::cout << DeviceName() << ": " << plans_ << " plans, " << taken_ << " steps on the device, "
              << late_ << " whose shapes data decides, " << all << " fell back ("
              << absl::StrJoin(fallen_back_, ", ", absl::PairFormatter(" ")) << ")\n";
  }

 private:
  const std::set<std::string> listed_ = ListedFallbacks();
  int64_t plans_ = 0, taken_ = 0, late_ = 0;
  std::map<std::string, int64_t> fallen_back_;
};

const Environment* MakeDeviceEnvironment(const std::string& name) {
  // Test programs are in a folder below that of the library.
  const std::string folder = std::filesystem::path(EmulatedCuda()).parent_path();
  setenv("ONWARD_DEVICES", folder.c_str(), /*overwrite=*/0);
  auto* const tally = new Tally;
  testing::UnitTest::GetInstance()->listeners().Append(tally);
  EnvironmentOptions options;
  options.planned = [tally](const Plan& plan) { tally->Count(plan); };
  auto device = AcceleratorNamed(name, {});
  CheckInvariant(device.ok(), device.ok() ? "" : device.status().ToString().c_str());
  options.accelerators.push_back(*std::move(device));
  auto made = Environment::Make(options);
  CheckInvariant(made.ok(), made.ok() ? "" : made.status().ToString().c_str());
  return made->release();
}

}  // namespace

bool OnDevice() { return !DeviceName().empty(); }

const Environment& TestEnvironment() {
  static const Environment* const environment =
      OnDevice() ? MakeDeviceEnvironment(DeviceName()) : &DefaultEnvironment();
  return *environment;
}

}  // namespace onward
