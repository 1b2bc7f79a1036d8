// SPDX-License-Identifier: Apache-2.0
// Every kernel once with each access of its threads looked at: by the emulator, or by the thread
// sanitizer where that is linked. Grids are small, since it takes long.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "tests/cuda/calls.h"
#include "tests/cuda/emulated.h"
#include "tests/cuda/emulated_environment.h"
#include "tests/cuda_emu/control.h"
#include "tests/support/far_training.h"
#include "tests/support/paths.h"
#include "tests/support/text_model.h"
#include "training_info/step.h"

namespace onward::access_test {

// The names of the kernels in the sources; no two have the same.
std::set<std::string> KernelsOfTheSources() {
  std::set<std::string> names;
  const std::regex kernel("__global__ void (\\w+)\\(");
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(SourceFolder() + "/core/cuda")) {
    std::ifstream in(entry.path());
    std::smatch found;
    for (std::string line; std::getline(in, line);) {
      if (!std::regex_search(line, found, kernel)) continue;
      EXPECT_TRUE(names.insert(found[1]).second) << "two kernels are called " << found[1];
    }
  }
  return names;
}

// "onward::cuda::(anonymous namespace)::NAME<...>(...)" without what is around the name.
std::string NameIn(const std::string& signature) {
  std::smatch found;
  return std::regex_search(signature, found, std::regex("::(\\w+)[<(]")) ? found[1] : signature;
}

// Small calls of the tables, those of element-wise operators too.
std::vector<Call> SmallCalls() {
  constexpr int64_t kMostElements = 1 << 12, kOfAReduction = 1 << 14;  // one in pieces
  std::vector<Call> small;
  const auto add = [&small](const KernelInputs& inputs, const reference::Arrays& expected,
                            const std::string& what) {
    int64_t elements = 0;
    for (const Tensor& t : inputs.values) elements += t.defined() ? t.elements() : 0;
    const bool reduces = absl::StartsWith(inputs.node.op_type, "Reduce");
    if (elements <= (reduces ? kOfAReduction : kMostElements)) {
      small.push_back({inputs, expected, what});
    }
  };
  for (const Call& call : Calls()) add(call.inputs, call.expected, call.what);
  for (auto* rows : {ElementwiseCases, ActivationCases}) {
    for (const OpCase& c : rows()) {
      if (Emulated().kernels().Find(c.op, c.domain) == nullptr) continue;
      CheckRow(c, DType::kFloat, DType::kInt64, add);
    }
  }
  return small;
}

// A step that looks at what it assigns, and one that is captured.
void TrainTwoSteps() {
  const auto cuda = EmulatedEnvironment();
  const auto model = Open(FarNetwork(), *cuda);
  for (int step = 0; step < 2; ++step) {
    const auto done = model->Step(FarBatch(step));
    EXPECT_TRUE(done.ok()) << done.status();
  }
}

TEST(Accesses, OfEveryKernelAreInBoundsAndOrdered) {
  const auto strict = EmulatorFunction<decltype(OnwardEmuStrict)>("OnwardEmuStrict");
  DeviceOptions in_any_order;
  in_any_order.deterministic = false;
  const auto unordered = OpenDevice(EmulatedCuda(), in_any_order);
  ASSERT_TRUE(unordered.ok()) << unordered.status();
  const std::vector<Call> calls = SmallCalls();
  EXPECT_GT(calls.size(), 500u);
  strict(2);
  Shuffle(1);
  for (const Call& call : calls) {
    EXPECT_FALSE(Differs(call)) << call.what;
    const std::string& op = call.inputs.node.op_type;
    if (!absl::StartsWith(op, "Scatter") && op != "GatherGrad") continue;
    EXPECT_FALSE(DiffersOn(**unordered, call)) << call.what << " in any order";
  }
  TrainTwoSteps();
  Shuffle(0);
  strict(0);
  // A GPU has 65536 registers for a block, of which a thread may take 255.
  OnwardEmuCounters counters;
  EmulatorFunction<decltype(OnwardEmuGetCounters)>("OnwardEmuGetCounters")(&counters);
  EXPECT_GT(counters.widest_block, 0);
  EXPECT_LE(counters.widest_block, 256);
  std::set<std::string> left = KernelsOfTheSources();
  EXPECT_GT(left.size(), 100u);
  const int checked =
      EmulatorFunction<decltype(OnwardEmuCheckedKernels)>("OnwardEmuCheckedKernels")();
  for (int i = 0; i < checked; ++i) {
    left.erase(
        NameIn(EmulatorFunction<decltype(OnwardEmuCheckedKernel)>("OnwardEmuCheckedKernel")(i)));
  }
  EXPECT_THAT(left, testing::IsEmpty()) << "nothing runs them";
}

// That it is seen here, where kernels are in a library, by the emulator or by the thread sanitizer.
TEST(Accesses, WithoutABarrierAreSeen) {
  if (dlsym(RTLD_DEFAULT, "__asan_init") != nullptr) {
    GTEST_SKIP() << "the address sanitizer takes the place";
  }
  std::vector<const Call*> calls;
  for (const Call& call : Calls()) {
    if (call.inputs.node.op_type == "ArgMax") calls.push_back(&call);
  }
  ASSERT_FALSE(calls.empty());
  for (const Call* call : calls) EXPECT_FALSE(Differs(*call)) << call->what;
  const int sites = EmulatorFunction<decltype(OnwardEmuBarrierSites)>("OnwardEmuBarrierSites")();
  const bool seen = IsSeen([&] {
    EmulatorFunction<decltype(OnwardEmuStrict)>("OnwardEmuStrict")(2);
    for (int site = 0; site < sites; ++site) {
      EmulatorFunction<decltype(OnwardEmuSkipBarrier)>("OnwardEmuSkipBarrier")(site);
      for (const Call* call : calls) Differs(*call);
    }
    OnwardEmuCounters counters;
    EmulatorFunction<decltype(OnwardEmuGetCounters)>("OnwardEmuGetCounters")(&counters);
    return counters.races > 0;
  });
  EXPECT_TRUE(seen);
}

}  // namespace onward::access_test
