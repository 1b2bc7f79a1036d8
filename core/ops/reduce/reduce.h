// SPDX-License-Identifier: Apache-2.0
// The parts of the reduce family.
#ifndef ONWARD_CORE_OPS_REDUCE_REDUCE_H_
#define ONWARD_CORE_OPS_REDUCE_REDUCE_H_

#include "core/device/kernel.h"
#include "core/device/plan/reduce.h"

namespace onward {

// ArgMax, ArgMin, CumSum, CumProd.
void RegisterAxisKernels(KernelTable& table);

}  // namespace onward

#endif  // ONWARD_CORE_OPS_REDUCE_REDUCE_H_
