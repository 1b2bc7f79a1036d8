// SPDX-License-Identifier: Apache-2.0
#include "onward/device.h"

#include "api/access.h"
#include "core/base/cpu_features.h"

namespace onward::api {

Status CheckCpu() { return ToStatus(onward::CheckCpu(ThisCpu())); }

const char* Version() { return ONWARD_VERSION; }

}  // namespace onward::api
