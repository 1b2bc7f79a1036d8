// SPDX-License-Identifier: Apache-2.0
// Loops over the OpenMP team that oneDNN also uses. Every thread begins with a share
// of its own, as it would in a loop dealt out beforehand, and then helps the others:
// where a core is slower, or busy with something else, the rest wait for one item and
// not for half of the work. What an item computes never depends on who does it, so
// results repeat bit for bit.
#ifndef ONWARD_CORE_BASE_PARALLEL_H_
#define ONWARD_CORE_BASE_PARALLEL_H_

#include <cstdint>

#include "absl/functional/function_ref.h"

namespace onward {

int Threads();
void SetThreads(int n);
// Of the calling thread in its team, from 0.
int ThreadNumber();
// How many threads a loop that begins now would use: Threads(), or fewer where others hold
// the cores (stall_guard.h).
int TeamNow();

// SetThreads for a while.
class ScopedThreads {
 public:
  explicit ScopedThreads(int n) : before_(Threads()) { SetThreads(n); }
  ~ScopedThreads() { SetThreads(before_); }
  ScopedThreads(const ScopedThreads&) = delete;
  ScopedThreads& operator=(const ScopedThreads&) = delete;

 private:
  const int before_;
};

// How many items to make of work that falls into so many pieces: one for each thread,
// and up to four where the pieces allow it, so that threads can help each other.
int64_t ItemsFor(int64_t pieces, int64_t threads);

// In which order a thread goes through its share. Where a tensor is too large for the
// caches, they hold the end that was written last, and whoever reads the result begins
// at its front: a pass between two others does well to walk backwards.
enum class Walk { kForwards, kBackwards };

using ItemBody = absl::FunctionRef<void(int64_t item, int64_t slot)>;
using RangeBody = absl::FunctionRef<void(int64_t begin, int64_t end)>;

// Calls body(i, slot) for every i in [0, n) on at most `slots` threads. The slot, below
// `slots`, numbers the thread: no two calls with the same one run at once, so that it
// can choose a scratch buffer.
void ParallelItems(int64_t n, int64_t slots, ItemBody body, Walk walk = Walk::kForwards);

// Calls body(begin, end) on disjoint ranges that cover [0, n). Ranges depend on
// n, grain and the team size alone. Work smaller than `grain` stays on the calling
// thread.
void ParallelFor(int64_t n, int64_t grain, RangeBody body, Walk walk = Walk::kForwards);

}  // namespace onward

#endif  // ONWARD_CORE_BASE_PARALLEL_H_
