// SPDX-License-Identifier: Apache-2.0
// A device in a shared library of its own, opened on demand: who does not use it does not pay for
// the libraries that it needs. It is built from the same sources as the program that opens it.
#ifndef ONWARD_CORE_DEVICE_PLUGIN_H_
#define ONWARD_CORE_DEVICE_PLUGIN_H_

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "core/device/device.h"

namespace onward {

struct DeviceOptions {
  int index = 0;              // which of the machine's
  size_t memory_limit = 0;    // zero: what the device has
  bool allow_tf32 = false;    // float products in fewer bits
  bool deterministic = true;  // the same bits in every run
};

// Changes whenever a type that crosses the border does.
inline constexpr int kDeviceAbi = 2;

struct DevicePlugin {
  int abi = kDeviceAbi;
  const char* version;  // of Onward
  absl::StatusOr<std::unique_ptr<const Device>> (*make)(const DeviceOptions& options);
};

// What the library exports, as extern "C" const DevicePlugin* onward_device_plugin().
using DevicePluginFunction = const DevicePlugin* (*)();

}  // namespace onward

#endif  // ONWARD_CORE_DEVICE_PLUGIN_H_
