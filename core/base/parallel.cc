// SPDX-License-Identifier: Apache-2.0
#include "core/base/parallel.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <chrono>

#include "absl/container/inlined_vector.h"
#include "core/base/stall_guard.h"

namespace onward {
namespace {

int64_t Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

thread_local StallGuard stall_guard(Preemptions);

// Items [begin, end) of one thread, and how many of them are taken; a cache line each.
struct alignas(64) WorkShare {
  std::atomic<int64_t> taken{0};
  int64_t begin = 0, end = 0;
  int64_t busy = 0;  // nanoseconds that the thread computed, where that is measured
};

}  // namespace

int Threads() { return omp_get_max_threads(); }
void SetThreads(int n) { omp_set_num_threads(n); }
int ThreadNumber() { return omp_get_thread_num(); }
int TeamNow() { return static_cast<int>(stall_guard.Team(Threads(), Now())); }

int64_t ItemsFor(int64_t pieces, int64_t threads) {
  constexpr int64_t kItemsPerThread = 4;
  return threads <= 1 ? 1 : std::clamp(pieces, threads, threads * kItemsPerThread);
}

void ParallelItems(int64_t n, int64_t slots, ItemBody body, Walk walk) {
  slots = omp_in_parallel() ? 1 : std::min(slots, n);
  const int64_t begin = slots <= 1 ? 0 : Now();
  if (slots > 1) slots = stall_guard.Team(slots, begin);
  if (slots <= 1) {
    for (int64_t i = 0; i < n; ++i) body(walk == Walk::kForwards ? i : n - 1 - i, 0);
    return;
  }
  absl::InlinedVector<WorkShare, 16> shares(slots);
  for (int64_t s = 0; s < slots; ++s) {
    shares[s].begin = n * s / slots;
    shares[s].end = n * (s + 1) / slots;
  }
  const bool measures = stall_guard.measures();
  int64_t own_end = begin;
#pragma omp parallel num_threads(static_cast <int>(slots))
  {
    const int64_t slot = omp_get_thread_num();
    const int64_t started = measures ? ThreadTime() : 0;
    for (int64_t s = 0; s < slots; ++s) {
      WorkShare& share = shares[(slot + s) % slots];
      while (true) {
        const int64_t taken = share.taken.fetch_add(1, std::memory_order_relaxed);
        if (taken >= share.end - share.begin) break;
        body(walk == Walk::kForwards ? share.begin + taken : share.end - 1 - taken, slot);
      }
    }
    if (measures) shares[slot].busy = ThreadTime() - started;
    if (slot == 0) own_end = Now();
  }
  int64_t busy = 0;
  for (const WorkShare& share : shares) busy += share.busy;
  stall_guard.Record(slots, begin, own_end, Now(), busy);
}

void ParallelFor(int64_t n, int64_t grain, RangeBody body, Walk walk) {
  if (n <= 0) return;
  const int64_t worth = (n - 1) / std::max<int64_t>(grain, 1) + 1;
  const int64_t threads = omp_in_parallel() ? 1 : std::min<int64_t>(Threads(), worth);
  if (threads <= 1) return body(0, n);
  const int64_t ranges = ItemsFor(std::min(n, worth), threads);
  ParallelItems(
      ranges, threads, [&](int64_t i, int64_t) { body(n * i / ranges, n * (i + 1) / ranges); },
      walk);
}

}  // namespace onward
