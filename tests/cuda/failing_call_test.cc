// SPDX-License-Identifier: Apache-2.0
// The k-th allocation, launch, copy, library call, stream or graph of a training step fails, for
// every k there is: the step is an error in words, the state is as before, nothing is leaked, and
// the next step is the one that did not happen.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/cuda/beside_cpu.h"
#include "tests/cuda/emulated.h"
#include "tests/cuda/peers.h"
#include "tests/cuda_emu/control.h"

namespace onward::failing_call_test {

using testing::AnyOf;
using testing::HasSubstr;

struct Emulator {
  decltype(&OnwardEmuFailCall) fail =
      EmulatorFunction<decltype(OnwardEmuFailCall)>("OnwardEmuFailCall");
  decltype(&OnwardEmuCalls) calls = EmulatorFunction<decltype(OnwardEmuCalls)>("OnwardEmuCalls");
  decltype(&OnwardEmuReset) reset = EmulatorFunction<decltype(OnwardEmuReset)>("OnwardEmuReset");

  // What is not given back: device bytes, pinned bytes, objects.
  std::vector<int64_t> Live() const {
    OnwardEmuCounters c;
    EmulatorFunction<decltype(OnwardEmuGetCounters)>("OnwardEmuGetCounters")(&c);
    return {c.live_bytes, c.live_allocations, c.live_host_bytes, c.live_objects};
  }
};

struct Row {
  std::string name;
  OnwardEmuKind kind;
  // 0: everything is opened in the step that fails; 1: its graph is captured there.
  int steps_before;
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

std::vector<Row> Rows() {
  const std::pair<const char*, OnwardEmuKind> kinds[] = {{"Allocation", kOnwardEmuAlloc},
                                                         {"Launch", kOnwardEmuLaunch},
                                                         {"Copy", kOnwardEmuCopy},
                                                         {"LibraryCall", kOnwardEmuLibrary},
                                                         {"Object", kOnwardEmuObject}};
  std::vector<Row> rows;
  for (const auto& [name, kind] : kinds) {
    for (const int before : {0, 1, 2}) {
      const char* const when[] = {"OfTheFirstStep", "OfTheCapturedStep", "OfALaterStep"};
      rows.push_back({absl::StrCat(name, when[before]), kind, before});
    }
  }
  return rows;
}

Variables StateOf(const TrainingModel& model) {
  Variables copy;
  for (const auto& [name, tensor] : model.variables()) copy.emplace(name, tensor.Clone());
  return copy;
}

class FailingCalls : public testing::Test {
 protected:
  const Model trainable_ = SmallPeer("lenet", "adamw:lr=1e-3");
  const PeerBatches batches_{trainable_};
  const Emulator emulator_;

  void Train(TrainingModel& model, int from, int to) const {
    for (int step = from; step < to; ++step) {
      const auto done = model.Step(batches_(step), {"loss"});
      ASSERT_TRUE(done.ok()) << done.status();
    }
  }
};

class EveryFailingCall : public FailingCalls, public testing::WithParamInterface<Row> {
 protected:
  // One life of a device: false where fewer than k calls were made.
  bool FailsAt(int64_t k, const Variables& before, const Variables& after) {
    const Row& row = GetParam();
    const auto cuda = EmulatedEnvironment();
    auto model = Open(trainable_, *cuda);
    Train(*model, 0, row.steps_before);
    emulator_.fail(row.kind, k);
    const auto failed = model->Step(batches_(row.steps_before), {"loss"});
    const bool reached = emulator_.calls(row.kind) >= k;
    emulator_.fail(row.kind, 0);
    EXPECT_EQ(failed.ok(), !reached) << row.name << " " << k << ": " << failed.status();
    if (!reached) return false;
    EXPECT_THAT(std::string(failed.status().message()),
                AnyOf(HasSubstr("cuda"), HasSubstr("cuBLAS"), HasSubstr("cuDNN")));
    EXPECT_TRUE(SameVariables(std::as_const(*model).variables(), before)) << row.name << " " << k;
    Train(*model, row.steps_before, row.steps_before + 1);
    EXPECT_TRUE(SameVariables(std::as_const(*model).variables(), after)) << row.name << " " << k;
    return true;
  }
};

TEST_P(EveryFailingCall, ChangeNothing) {
  Variables before, after;
  {
    const auto cuda = EmulatedEnvironment();
    const auto model = Open(trainable_, *cuda);
    Train(*model, 0, GetParam().steps_before);
    before = StateOf(*model);
    Train(*model, GetParam().steps_before, GetParam().steps_before + 1);
    after = StateOf(*model);
  }
  const std::vector<int64_t> live = emulator_.Live();
  int64_t k = 1;
  for (; FailsAt(k, before, after); ++k) {
    EXPECT_EQ(emulator_.Live(), live) << "the failure of call " << k << " leaks";
    if (HasFailure()) return;
  }
  RecordProperty("calls", static_cast<int>(k - 1));
}

INSTANTIATE_TEST_SUITE_P(Steps, EveryFailingCall, testing::ValuesIn(Rows()),
                         [](const auto& info) { return info.param.name; });

// What is read back from the device is told once, and there the next time.
TEST_F(FailingCalls, OfReadingBackLoseNothing) {
  const auto cuda = EmulatedEnvironment();
  auto expected = Open(trainable_, *cuda), model = Open(trainable_, *cuda);
  Train(*expected, 0, 2);
  Train(*model, 0, 1);
  emulator_.fail(kOnwardEmuCopy, 2);
  EXPECT_THAT(std::string(model->Export().status().message()), HasSubstr("cannot copy from"));
  EXPECT_TRUE(model->Export().ok());
  Train(*model, 1, 2);
  emulator_.fail(kOnwardEmuCopy, 2);
  model->variables();
  EXPECT_THAT(std::string(model->Step(batches_(2), {"loss"}).status().message()),
              HasSubstr("cannot copy from"));
  EXPECT_TRUE(
      SameVariables(std::as_const(*model).variables(), std::as_const(*expected).variables()));
}

// Every call after it fails too: the process has lost the GPU, and says so.
TEST_F(FailingCalls, ThatLoseTheGpuAreTold) {
  const auto cuda = EmulatedEnvironment();
  auto model = Open(trainable_, *cuda);
  const Variables before = StateOf(*model);
  emulator_.fail(kOnwardEmuFault, 5);
  const auto failed = model->Step(batches_(0), {"loss"});
  EXPECT_THAT(std::string(failed.status().message()), HasSubstr("start it again"));
  EXPECT_THAT(std::string(model->Step(batches_(0), {"loss"}).status().message()),
              HasSubstr("cudaErrorIllegalAddress"));
  EXPECT_TRUE(SameVariables(std::as_const(*model).variables(), before));
  const auto exported = model->Export();
  EXPECT_TRUE(exported.ok()) << exported.status();
  model.reset();
  emulator_.reset();
}

}  // namespace onward::failing_call_test
