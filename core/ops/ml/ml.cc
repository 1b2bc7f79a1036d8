// SPDX-License-Identifier: Apache-2.0
// Operators of ai.onnx.ml.
#include "core/ops/cpu/register.h"

namespace onward {

void RegisterMlKernels(KernelTable& table) { static_cast<void>(table); }

}  // namespace onward
