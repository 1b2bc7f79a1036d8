// SPDX-License-Identifier: Apache-2.0
#include "environment/environment.h"

#include <utility>

#include "core/device/cpu.h"
#include "core/onnx_io/operators.h"
#include "core/runtime/fuse.h"
#include "optimizers/optimizer.h"

namespace onward {
namespace {

void RegisterOwnFunctions(FunctionLibrary& library) {
  RegisterGradientFunctions(library);
  RegisterOptimizerFunctions(library);
  RegisterFusedFunctions(library);
  RegisterRowFunctions(library);
  RegisterWinnerFunctions(library);
}

}  // namespace

std::unique_ptr<const Environment> Environment::Make(const EnvironmentOptions& options) {
  std::unique_ptr<Environment> made(new Environment);
  RegisterOwnFunctions(made->functions_);
  RegisterRules(made->rules_);
  made->operators_ = MakeOnnxOperators(&made->functions_);
  made->cpu_ = MakeCpuDevice(
      {.exact_convolutions = options.exact_convolutions, .memory_limit = options.memory_limit});
  return made;
}

const Environment& DefaultEnvironment() {
  static const Environment* const environment = Environment::Make({}).release();
  return *environment;
}

}  // namespace onward
