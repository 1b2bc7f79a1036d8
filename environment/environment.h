// SPDX-License-Identifier: Apache-2.0
// All that is known by name: operators, functions with their traits, gradient rules, and the
// device with its kernels. An Environment is made once, is const from then on, and is handed
// down to whatever reads, differentiates or runs a model; two in one process do not meet.
#ifndef ONWARD_ENVIRONMENT_ENVIRONMENT_H_
#define ONWARD_ENVIRONMENT_ENVIRONMENT_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "autograd/rule.h"
#include "core/device/device.h"
#include "core/graph/function_library.h"
#include "core/graph/operator_set.h"
#include "core/runtime/compile/compile_options.h"

namespace onward {

using MakeAccelerator =
    std::function<absl::StatusOr<std::unique_ptr<const Device>>(const Device& cpu)>;

struct EnvironmentOptions {
  bool exact_convolutions = false;        // CpuOptions
  size_t memory_limit = 0;                // CpuOptions
  std::vector<std::string> plugins = {};  // shared libraries (onward/plugin.h), in order
  // Devices wanted before the CPU, in order, made once it is there (OpenDevice in devices.h).
  std::vector<MakeAccelerator> accelerators = {};
  bool require_accelerator = false;                    // CompileOptions
  std::function<void(const Plan&)> planned = nullptr;  // CompileOptions
};

class Environment {
 public:
  // Errors are those of plugins and accelerators.
  static absl::StatusOr<std::unique_ptr<const Environment>> Make(const EnvironmentOptions& options);

  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  // What gradients and optimizers call, and what plugins add.
  const FunctionLibrary& functions() const { return functions_; }
  // The standard's operators and those functions.
  const OperatorSet& operators() const { return *operators_; }
  const RuleTable& rules() const { return rules_; }
  const Device& cpu() const { return *cpu_; }
  std::vector<const Device*> accelerators() const;
  // For these devices and operators; the rest is the caller's.
  CompileOptions compile_options() const;

 private:
  Environment() = default;

  FunctionLibrary functions_;
  RuleTable rules_;
  std::unique_ptr<const OperatorSet> operators_;  // refers to functions_
  std::unique_ptr<const Device> cpu_;
  std::vector<std::unique_ptr<const Device>> accelerators_;
  bool require_accelerator_ = false;
  std::function<void(const Plan&)> planned_;
};

// What Onward knows by itself, for programs that ask for nothing else. Never ends.
const Environment& DefaultEnvironment();

}  // namespace onward

#endif  // ONWARD_ENVIRONMENT_ENVIRONMENT_H_
