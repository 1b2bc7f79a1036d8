// SPDX-License-Identifier: Apache-2.0
// Fourier transforms and what is made of them.
#include "core/ops/cpu/register.h"

namespace onward {

void RegisterSignalKernels(KernelTable& table) { static_cast<void>(table); }

}  // namespace onward
