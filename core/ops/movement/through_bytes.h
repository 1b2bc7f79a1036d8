// SPDX-License-Identifier: Apache-2.0
// Packed elements for kernels that move elements of whole bytes.
#ifndef ONWARD_CORE_OPS_MOVEMENT_THROUGH_BYTES_H_
#define ONWARD_CORE_OPS_MOVEMENT_THROUGH_BYTES_H_

#include "core/device/kernel.h"

namespace onward {

// A factory that also serves types narrower than a byte: their elements are spread to a byte
// each, moved by `factory`'s kernel as uint8, and packed again.
KernelFactory ThroughBytes(KernelFactory factory);

}  // namespace onward

#endif  // ONWARD_CORE_OPS_MOVEMENT_THROUGH_BYTES_H_
