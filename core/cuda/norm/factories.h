// SPDX-License-Identifier: Apache-2.0
// The parts of the norm family's registration.
#ifndef ONWARD_CORE_CUDA_NORM_FACTORIES_H_
#define ONWARD_CORE_CUDA_NORM_FACTORIES_H_

#include "core/device/kernel.h"

namespace onward::cuda {

void RegisterBatchNorm(KernelTable& table);  // batch_norm.cc

}  // namespace onward::cuda

#endif  // ONWARD_CORE_CUDA_NORM_FACTORIES_H_
