// SPDX-License-Identifier: Apache-2.0
// Devices by name.
#ifndef ONWARD_ENVIRONMENT_DEVICES_H_
#define ONWARD_ENVIRONMENT_DEVICES_H_

#include <string>

#include "absl/status/statusor.h"
#include "core/device/plugin.h"
#include "environment/environment.h"

namespace onward {

// "cuda" or "cuda:1": opened from libonward_cuda.so, which is looked for beside the program, in
// ../lib from there, in the folders of ONWARD_DEVICES (with colons), and where the system looks.
// "cuda-emu" likewise, for tests. `options.index` is the name's. An error for other names.
absl::StatusOr<MakeAccelerator> AcceleratorNamed(const std::string& name, DeviceOptions options);

}  // namespace onward

#endif  // ONWARD_ENVIRONMENT_DEVICES_H_
