// SPDX-License-Identifier: Apache-2.0
// One registration function per family; all.cc calls them in order. oneDNN
// variants are registered before the plain ones of the same operator.
#ifndef ONWARD_CORE_OPS_CPU_REGISTER_H_
#define ONWARD_CORE_OPS_CPU_REGISTER_H_

#include "core/device/cpu.h"
#include "core/device/kernel.h"

namespace onward {

void RegisterElementwiseKernels(KernelTable& table);
void RegisterActivationKernels(KernelTable& table);
void RegisterReduceKernels(KernelTable& table);
void RegisterShapeKernels(KernelTable& table);
void RegisterIndexKernels(KernelTable& table);
void RegisterRandomKernels(KernelTable& table);
void RegisterMatMulKernels(KernelTable& table);
void RegisterConvKernels(const CpuOptions& options, KernelTable& table);
void RegisterPoolKernels(KernelTable& table);
void RegisterNormKernels(KernelTable& table);
void RegisterSoftmaxKernels(KernelTable& table);
void RegisterAttentionKernels(KernelTable& table);
void RegisterRnnKernels(KernelTable& table);
void RegisterLossKernels(KernelTable& table);
void RegisterOptimizerKernels(KernelTable& table);
void RegisterRowOptimizerKernels(KernelTable& table);
void RegisterSequenceKernels(KernelTable& table);
void RegisterQuantizeKernels(KernelTable& table);
void RegisterImageKernels(KernelTable& table);
void RegisterSignalKernels(KernelTable& table);
void RegisterTextKernels(KernelTable& table);
void RegisterMlKernels(KernelTable& table);

// All of the above, then what the options add.
void RegisterCpuKernels(const CpuOptions& options, KernelTable& table);

}  // namespace onward

#endif  // ONWARD_CORE_OPS_CPU_REGISTER_H_
