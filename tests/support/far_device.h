// SPDX-License-Identifier: Apache-2.0
// A device with memory of its own and queued work, made of the CPU's kernels: what the runtime
// must keep to on any accelerator. Its pointers fault when the host follows them; nothing that was
// queued happens before somebody waits.
#ifndef ONWARD_TESTS_SUPPORT_FAR_DEVICE_H_
#define ONWARD_TESTS_SUPPORT_FAR_DEVICE_H_

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/device/device.h"
#include "core/runtime/plan/plan.h"

namespace onward {

struct FarCounters {
  int64_t live_bytes = 0;
  // What was done, not what was queued.
  int copies_in = 0, copies_out = 0, copies_within = 0, kernels = 0;
  int recordings = 0, replays = 0;
  int waits = 0;  // of the host
  // What is to fail: the call of this number, counted from 1 over all that can.
  int fail_at = 0;
  int calls = 0;
};

struct FarOptions {
  std::string name = "far";
  // Operators that it has no kernel for.
  std::set<std::string> without = {};
  // Those that it has, if not empty.
  std::set<std::string> only = {};
  size_t memory_limit = size_t{1} << 32;
};

// What a first run of the plan copies between devices.
int CopiesOf(const Plan& plan);
// Of a plan's text, without the arenas.
std::vector<std::string> StepLines(const std::string& text);

std::unique_ptr<const Device> MakeFarDevice(const Device& cpu, const FarOptions& options,
                                            std::shared_ptr<FarCounters> counters);

}  // namespace onward

#endif  // ONWARD_TESTS_SUPPORT_FAR_DEVICE_H_
