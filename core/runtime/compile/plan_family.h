// SPDX-License-Identifier: Apache-2.0
#ifndef ONWARD_CORE_RUNTIME_COMPILE_PLAN_FAMILY_H_
#define ONWARD_CORE_RUNTIME_COMPILE_PLAN_FAMILY_H_

#include <cstddef>

#include "core/device/arrangements.h"

namespace onward {

// What the plans of one program share with each other, and with those of the programs within it:
// bodies, and what is left behind values that only data can shape.
struct PlanFamily {
  Arrangements arrangements;
  // What all plans together keep beside arrangements, the graphs' constants and the program's own
  // arena; an estimate. Arenas of the programs within it count.
  size_t kept_bytes = 0;
};

}  // namespace onward

#endif  // ONWARD_CORE_RUNTIME_COMPILE_PLAN_FAMILY_H_
