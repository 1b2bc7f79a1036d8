// SPDX-License-Identifier: Apache-2.0
// Environments that want the CUDA device of emulated.h, opened by its name as a program opens it.
#ifndef ONWARD_TESTS_CUDA_EMULATED_ENVIRONMENT_H_
#define ONWARD_TESTS_CUDA_EMULATED_ENVIRONMENT_H_

#include <cstdlib>
#include <filesystem>
#include <memory>

#include "environment/devices.h"
#include "environment/environment.h"
#include "tests/cuda/emulated.h"
#include "tests/support/paths.h"

namespace onward {

// Says where the devices' libraries are.
inline void FindDevices() {
  setenv("ONWARD_DEVICES", std::filesystem::path(EmulatedCuda()).parent_path().c_str(), 1);
}

// A new device before the CPU; a node that it cannot run is an error.
inline std::unique_ptr<const Environment> EmulatedEnvironment(const DeviceOptions& device = {}) {
  FindDevices();
  EnvironmentOptions options;
  options.require_accelerator = true;
  options.accelerators.push_back(AcceleratorNamed(CudaDeviceName(), device).value());
  return Environment::Make(options).value();
}

}  // namespace onward

#endif  // ONWARD_TESTS_CUDA_EMULATED_ENVIRONMENT_H_
