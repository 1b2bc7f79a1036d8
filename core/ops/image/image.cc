// SPDX-License-Identifier: Apache-2.0
// Resizing and sampling of pictures, regions of interest, decoding.
#include "core/ops/cpu/register.h"

namespace onward {

void RegisterImageKernels(KernelTable& table) { static_cast<void>(table); }

}  // namespace onward
