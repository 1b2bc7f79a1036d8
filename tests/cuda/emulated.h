// SPDX-License-Identifier: Apache-2.0
// The CUDA device on the emulator, opened once per test program as the runtime opens it. Where
// ONWARD_CUDA_DEVICE is "cuda", it is the one for GPUs.
#ifndef ONWARD_TESTS_CUDA_EMULATED_H_
#define ONWARD_TESTS_CUDA_EMULATED_H_

#include <dlfcn.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "core/base/status.h"
#include "core/device/device.h"
#include "tests/support/device_trial.h"
#include "tests/support/paths.h"

namespace onward {

inline std::string CudaDeviceName() {
  const char* wanted = std::getenv("ONWARD_CUDA_DEVICE");
  return wanted == nullptr ? "cuda-emu" : wanted;
}

inline const Device& Emulated() {
  static const Device* const device = [] {
    auto opened = OpenDevice(CudaDeviceName() == "cuda" ? BuiltCuda() : EmulatedCuda(), {});
    CheckInvariant(opened.ok(), opened.ok() ? "" : opened.status().ToString().c_str());
    return opened->release();
  }();
  return *device;
}

// A function of the emulator inside the device's library (tests/cuda_emu/control.h).
template <typename Function>
Function* EmulatorFunction(const char* name) {
  Emulated();
  void* const library = dlopen(EmulatedCuda().c_str(), RTLD_NOW | RTLD_NOLOAD);
  void* const found = library == nullptr ? nullptr : dlsym(library, name);
  CheckInvariant(found != nullptr, name);
  return reinterpret_cast<Function*>(found);
}

inline Stream& EmulatedStream() {
  static Stream* const stream = [] {
    auto made = Emulated().MakeStream();
    CheckInvariant(made.ok(), made.ok() ? "" : made.status().ToString().c_str());
    return made->release();
  }();
  return *stream;
}

}  // namespace onward

#endif  // ONWARD_TESTS_CUDA_EMULATED_H_
