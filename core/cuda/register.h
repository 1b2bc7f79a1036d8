// SPDX-License-Identifier: Apache-2.0
// The kernels of the CUDA device, a function per family; each is in the folder of its name.
#ifndef ONWARD_CORE_CUDA_REGISTER_H_
#define ONWARD_CORE_CUDA_REGISTER_H_

#include <memory>

#include "core/device/kernel.h"
#include "core/device/plugin.h"

namespace onward::cuda {

class Libraries;  // cuBLAS and cuDNN (libraries.h)

// What kernels are made for.
struct Context {
  DeviceOptions options;
  std::shared_ptr<Libraries> libraries;
};

void RegisterElementwise(const Context& context, KernelTable& table);
void RegisterMovement(const Context& context, KernelTable& table);
void RegisterIndex(const Context& context, KernelTable& table);
void RegisterReduce(const Context& context, KernelTable& table);
void RegisterNorm(const Context& context, KernelTable& table);
void RegisterLoss(const Context& context, KernelTable& table);
void RegisterAttention(const Context& context, KernelTable& table);
void RegisterRandom(const Context& context, KernelTable& table);
void RegisterMatMul(const Context& context, KernelTable& table);
void RegisterConv(const Context& context, KernelTable& table);
void RegisterPool(const Context& context, KernelTable& table);
void RegisterRnn(const Context& context, KernelTable& table);
void RegisterOptimizers(const Context& context, KernelTable& table);

}  // namespace onward::cuda

#endif  // ONWARD_CORE_CUDA_REGISTER_H_
