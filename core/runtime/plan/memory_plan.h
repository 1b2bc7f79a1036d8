// SPDX-License-Identifier: Apache-2.0
// Placing buffers with known lifetimes into one arena.
#ifndef ONWARD_CORE_RUNTIME_PLAN_MEMORY_PLAN_H_
#define ONWARD_CORE_RUNTIME_PLAN_MEMORY_PLAN_H_

#include <cstddef>
#include <vector>

namespace onward {

struct Lifetime {
  size_t bytes = 0;
  int first = 0;  // step that writes it
  int last = 0;   // step that reads it last
  size_t offset = 0;
};

// The most bytes that are live at once, and the first step at which they are.
struct LivePeak {
  size_t bytes = 0;
  int step = 0;
};
LivePeak FindLivePeak(const std::vector<Lifetime>& buffers);

struct MemoryPlan {
  size_t arena_bytes = 0;
  size_t live_bytes = 0;  // lower bound: largest sum of live buffers
};

// Sets the offsets: buffers whose lifetimes overlap do not overlap in memory.
// Largest first, each at the lowest place that fits; offsets are 64-aligned.
MemoryPlan PlaceBuffers(std::vector<Lifetime>* buffers);

}  // namespace onward

#endif  // ONWARD_CORE_RUNTIME_PLAN_MEMORY_PLAN_H_
