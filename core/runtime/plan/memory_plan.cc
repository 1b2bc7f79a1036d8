// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/plan/memory_plan.h"

#include <algorithm>
#include <numeric>

namespace onward {
namespace {

constexpr size_t kAlignment = 64;

size_t Aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

LivePeak FindLivePeak(const std::vector<Lifetime>& buffers) {
  int steps = 0;
  for (const Lifetime& b : buffers) steps = std::max(steps, b.last + 1);
  std::vector<long long> change(steps + 1, 0);
  for (const Lifetime& b : buffers) {
    change[b.first] += static_cast<long long>(b.bytes);
    change[b.last + 1] -= static_cast<long long>(b.bytes);
  }
  long long live = 0, most = 0;
  LivePeak peak;
  for (int step = 0; step < steps; ++step) {
    live += change[step];
    if (live > most) {
      most = live;
      peak = {static_cast<size_t>(most), step};
    }
  }
  return peak;
}

MemoryPlan PlaceBuffers(std::vector<Lifetime>* buffers) {
  std::vector<int> order(buffers->size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return (*buffers)[a].bytes > (*buffers)[b].bytes; });
  MemoryPlan plan;
  std::vector<int> placed;  // sorted by offset
  for (int index : order) {
    Lifetime& buffer = (*buffers)[index];
    const size_t size = Aligned(buffer.bytes);
    size_t at = 0;
    for (int other_index : placed) {
      const Lifetime& other = (*buffers)[other_index];
      if (other.last < buffer.first || buffer.last < other.first) continue;
      if (other.offset >= at + size) break;
      at = std::max(at, other.offset + Aligned(other.bytes));
    }
    buffer.offset = at;
    plan.arena_bytes = std::max(plan.arena_bytes, at + size);
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), index,
                         [&](int a, int b) { return (*buffers)[a].offset < (*buffers)[b].offset; }),
        index);
  }
  plan.live_bytes = FindLivePeak(*buffers).bytes;
  return plan;
}

}  // namespace onward
