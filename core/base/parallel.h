// SPDX-License-Identifier: Apache-2.0
// Loops over the OpenMP team that oneDNN also uses. Every thread begins with a share
// of its own, as it would in a loop dealt out beforehand, and then helps the others:
// where a core is slower, or busy with something else, the rest wait for one item and
// not for half of the work. What an item computes never depends on who does it, so
// results repeat bit for bit.
#ifndef ONWARD_CORE_BASE_PARALLEL_H_
#define ONWARD_CORE_BASE_PARALLEL_H_

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "absl/container/inlined_vector.h"

namespace onward {

inline int Threads() { return omp_get_max_threads(); }
inline void SetThreads(int n) { omp_set_num_threads(n); }

// Pieces per thread that let threads help each other without costing much.
inline constexpr int64_t kItemsPerThread = 4;

// In which order a thread goes through its share. Where a tensor is too large for the
// caches, they hold the end that was written last, and whoever reads the result begins
// at its front: a pass between two others does well to walk backwards.
enum class Walk { kForwards, kBackwards };

namespace internal {

// Items [begin, end) of one thread, and how many of them are taken; a cache line each.
struct alignas(64) WorkShare {
  std::atomic<int64_t> taken{0};
  int64_t begin = 0, end = 0;
};
using WorkShares = absl::InlinedVector<WorkShare, 16>;

}  // namespace internal

// Calls body(i, slot) for every i in [0, n) on at most `slots` threads. The slot, below
// `slots`, numbers the thread: no two calls with the same one run at once, so that it
// can choose a scratch buffer.
template <typename Body>
void ParallelItems(int64_t n, int64_t slots, const Body& body, Walk walk = Walk::kForwards) {
  slots = omp_in_parallel() ? 1 : std::min(slots, n);
  if (slots <= 1) {
    for (int64_t i = 0; i < n; ++i) body(walk == Walk::kForwards ? i : n - 1 - i, int64_t{0});
    return;
  }
  internal::WorkShares shares(slots);
  for (int64_t s = 0; s < slots; ++s) {
    shares[s].begin = n * s / slots;
    shares[s].end = n * (s + 1) / slots;
  }
#pragma omp parallel num_threads(static_cast <int>(slots))
  {
    const int64_t slot = omp_get_thread_num();
    for (int64_t s = 0; s < slots; ++s) {
      internal::WorkShare& share = shares[(slot + s) % slots];
      while (true) {
        const int64_t taken = share.taken.fetch_add(1, std::memory_order_relaxed);
        if (taken >= share.end - share.begin) break;
        body(walk == Walk::kForwards ? share.begin + taken : share.end - 1 - taken, slot);
      }
    }
  }
}

// Calls body(begin, end) on disjoint ranges that cover [0, n). Ranges depend on
// n, grain and the team size alone. Work smaller than `grain` stays on the calling
// thread.
template <typename Body>
void ParallelFor(int64_t n, int64_t grain, const Body& body, Walk walk = Walk::kForwards) {
  if (n <= 0) return;
  const int64_t worth = (n - 1) / std::max<int64_t>(grain, 1) + 1;
  const int64_t threads = omp_in_parallel() ? 1 : std::min<int64_t>(Threads(), worth);
  if (threads <= 1) {
    body(int64_t{0}, n);
    return;
  }
  const int64_t ranges = std::min({n, worth, threads * kItemsPerThread});
  ParallelItems(
      ranges, threads, [&](int64_t i, int64_t) { body(n * i / ranges, n * (i + 1) / ranges); },
      walk);
}

}  // namespace onward

#endif  // ONWARD_CORE_BASE_PARALLEL_H_
