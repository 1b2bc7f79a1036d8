// SPDX-License-Identifier: Apache-2.0
#include "environment/environment.h"

#include <utility>

#include "contrib/microsoft/microsoft.h"
#include "core/base/status.h"
#include "core/device/cpu.h"
#include "core/onnx_io/operators.h"
#include "core/runtime/rewrite/fuse.h"
#include "environment/plugin_registry.h"
#include "optimizers/optimizer.h"

namespace onward {
namespace {

void RegisterOwnFunctions(FunctionLibrary& library) {
  RegisterGradientFunctions(library);
  RegisterOptimizerFunctions(library);
  RegisterFusedFunctions(library);
  RegisterRowFunctions(library);
  RegisterWinnerFunctions(library);
  RegisterMicrosoftFunctions(library);
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Environment>> Environment::Make(
    const EnvironmentOptions& options) {
  std::unique_ptr<Environment> made(new Environment);
  RegisterOwnFunctions(made->functions_);
  RegisterRules(made->rules_);
  made->operators_ = MakeOnnxOperators(&made->functions_);
  PluginRegistry registry(&made->functions_, &made->rules_);
  for (const std::string& file : options.plugins) ONWARD_RETURN_IF_ERROR(registry.Load(file));
  ONWARD_RETURN_IF_ERROR(registry.CheckBodies(*made->operators_));
  made->cpu_ = MakeCpuDevice({.exact_convolutions = options.exact_convolutions,
                              .memory_limit = options.memory_limit,
                              .more_kernels = registry.kernels()});
  made->require_accelerator_ = options.require_accelerator;
  made->planned_ = options.planned;
  for (const MakeAccelerator& make : options.accelerators) {
    ONWARD_ASSIGN_OR_RETURN(made->accelerators_.emplace_back(), make(*made->cpu_));
  }
  return std::unique_ptr<const Environment>(std::move(made));
}

std::vector<const Device*> Environment::accelerators() const {
  std::vector<const Device*> devices;
  for (const auto& device : accelerators_) devices.push_back(device.get());
  return devices;
}

CompileOptions Environment::compile_options() const {
  CompileOptions options;
  options.device = cpu_.get();
  options.accelerators = accelerators();
  options.operators = operators_.get();
  options.require_accelerator = require_accelerator_;
  options.planned = planned_;
  return options;
}

const Environment& DefaultEnvironment() {
  static const Environment* const environment = [] {
    absl::StatusOr<std::unique_ptr<const Environment>> made = Environment::Make({});
    CheckInvariant(made.ok(), "only plugins can fail");
    return made->release();
  }();
  return *environment;
}

}  // namespace onward
