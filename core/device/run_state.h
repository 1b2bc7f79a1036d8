// SPDX-License-Identifier: Apache-2.0
// What a run tells kernels and what they tell it, as it lies in a device's memory: for host and
// device code.
#ifndef ONWARD_CORE_DEVICE_RUN_STATE_H_
#define ONWARD_CORE_DEVICE_RUN_STATE_H_

#include <cstdint>

namespace onward {

// Per-run facts for kernels that draw random numbers. A node's draw is a
// function of (its seed or `seed` and the node's `stream`, `step`) alone, so
// the step counter in a file is the whole generator state.
struct RandomState {
  uint64_t seed = 0;
  uint64_t step = 0;
};

// A number among a tensor's elements that a kernel cannot use: an index outside of what it counts.
// A kernel whose work is queued cannot return an error; it puts the first such number here, in the
// device's memory, and goes on with something harmless. Whoever waits for the device looks.
struct Fault {
  uint32_t step = 0;  // KernelCall::step of who has found it, set first and by an atomic; 0: nobody
  uint32_t reserved = 0;
  // `value`, at `position` of its tensor, is outside [low, high).
  int64_t value = 0, position = 0, low = 0, high = 0;
};

}  // namespace onward

#endif  // ONWARD_CORE_DEVICE_RUN_STATE_H_
