// SPDX-License-Identifier: Apache-2.0
// Environments that want the CUDA device on the emulator, opened by its name as a program opens it.
#ifndef ONWARD_TESTS_CUDA_EMULATED_ENVIRONMENT_H_
#define ONWARD_TESTS_CUDA_EMULATED_ENVIRONMENT_H_

#include <cstdlib>
#include <filesystem>
#include <memory>

#include "environment/devices.h"
#include "environment/environment.h"
#include "tests/support/paths.h"

namespace onward {

inline std::unique_ptr<const Environment> EmulatedEnvironment(bool require = false,
                                                              const DeviceOptions& device = {}) {
  setenv("ONWARD_DEVICES", std::filesystem::path(EmulatedCuda()).parent_path().c_str(), 1);
  EnvironmentOptions options;
  options.require_accelerator = require;
  options.accelerators.push_back(AcceleratorNamed("cuda-emu", device).value());
  return Environment::Make(options).value();
}

}  // namespace onward

#endif  // ONWARD_TESTS_CUDA_EMULATED_ENVIRONMENT_H_
