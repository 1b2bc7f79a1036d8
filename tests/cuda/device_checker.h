// SPDX-License-Identifier: Apache-2.0
// Calls of single kernels on the emulated device against the reference.
#ifndef ONWARD_TESTS_CUDA_DEVICE_CHECKER_H_
#define ONWARD_TESTS_CUDA_DEVICE_CHECKER_H_

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/cuda/emulated.h"
#include "tests/support/device_trial.h"
#include "tests/support/kernel_rows.h"

namespace onward {

inline bool HasShapes(const KernelInputs& call) {
  for (const ValueSpec& output : call.outputs) {
    if (output.present() && !output.shape.has_value()) return false;
  }
  return true;
}

inline bool HasStrings(const KernelInputs& call) {
  for (const Tensor& t : call.values) {
    if (t.defined() && t.dtype() == DType::kString) return true;
  }
  for (const ValueSpec& output : call.outputs) {
    if (output.dtype == DType::kString) return true;
  }
  return false;
}

// Runs every kernel that the emulated device has for a call, and compares.
class DeviceChecker {
 public:
  void Check(const KernelInputs& call, const reference::Arrays& expected, const std::string& what) {
    // What the runtime never asks a device for.
    if (!HasShapes(call) || HasStrings(call)) return;
    const auto* entries = Emulated().kernels().Find(call.node.op_type, call.node.domain);
    for (size_t k = 0; entries != nullptr && k < entries->size(); ++k) {
      DeviceTrial trial(Emulated(), EmulatedStream(), (*entries)[k], call);
      if (absl::IsUnimplemented(trial.status())) continue;
      if (!trial.status().ok()) {
        ADD_FAILURE() << what << ": " << trial.status();
        continue;
      }
      CheckRun(trial.Run(), expected, what);
      for (const auto& [output, input] : trial.overwrites()) {
        CheckRun(trial.Run(output, input), expected,
                 absl::StrCat(what, ", output ", output, " over input ", input));
      }
      ++calls_;
    }
  }
  int calls() const { return calls_; }
  KernelCheck AsCheck() {
    return [this](const KernelInputs& call, const reference::Arrays& expected,
                  const std::string& what) { Check(call, expected, what); };
  }

 private:
  static void CheckRun(const absl::StatusOr<std::vector<Tensor>>& results,
                       const reference::Arrays& expected, const std::string& where) {
    if (!results.ok()) {
      ADD_FAILURE() << where << ": " << results.status();
      return;
    }
    for (size_t i = 0; i < results->size(); ++i) {
      if (!(*results)[i].defined()) continue;
      EXPECT_EQ(Difference((*results)[i], expected[i]), "") << where << ", output " << i;
    }
  }

  int calls_ = 0;
};

}  // namespace onward

#endif  // ONWARD_TESTS_CUDA_DEVICE_CHECKER_H_
