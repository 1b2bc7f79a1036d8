// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cpu/register.h"

namespace onward {

void RegisterCpuKernels(const CpuOptions& options, KernelTable& table) {
  RegisterElementwiseKernels(table);
  RegisterActivationKernels(table);
  RegisterReduceKernels(table);
  RegisterShapeKernels(table);
  RegisterIndexKernels(table);
  RegisterRandomKernels(table);
  RegisterMatMulKernels(table);
  RegisterConvKernels(options, table);
  RegisterPoolKernels(table);
  RegisterNormKernels(table);
  RegisterSoftmaxKernels(table);
  RegisterAttentionKernels(table);
  RegisterRnnKernels(table);
  RegisterLossKernels(table);
  RegisterOptimizerKernels(table);
  RegisterRowOptimizerKernels(table);
  RegisterSequenceKernels(table);
  RegisterQuantizeKernels(table);
  RegisterImageKernels(table);
  RegisterSignalKernels(table);
  RegisterTextKernels(table);
  RegisterMlKernels(table);
  if (options.more_kernels) options.more_kernels(table);
}

}  // namespace onward
