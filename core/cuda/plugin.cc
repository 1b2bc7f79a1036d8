// SPDX-License-Identifier: Apache-2.0
// What the shared library shows: one function (core/device/plugin.h).
#include "core/device/plugin.h"

#include "core/cuda/device.h"

extern "C" __attribute__((visibility("default"))) const onward::DevicePlugin*
onward_device_plugin() {
  static constexpr onward::DevicePlugin kPlugin = {onward::kDeviceAbi, ONWARD_VERSION,
                                                   onward::cuda::MakeDevice};
  return &kPlugin;
}
