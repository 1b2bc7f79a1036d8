// SPDX-License-Identifier: Apache-2.0
// When to stop sharing work. A team of threads waits for its last member; where another
// process holds a core, that member is often not running, and a loop that takes 0.1 ms
// lasts as long as the other's slice of time. Then one thread alone is faster than two.
#ifndef ONWARD_CORE_BASE_STALL_GUARD_H_
#define ONWARD_CORE_BASE_STALL_GUARD_H_

#include <cstdint>

namespace onward {

// Watches the loops of one calling thread. Times are nanoseconds of one clock.
class StallGuard {
 public:
  // Whether to leave the team out of a loop that begins now.
  bool Alone(int64_t now) const { return now < alone_until_; }
  // A loop of the team: the caller was done with what it found to do at `own_end`, the last
  // member at `end`.
  void Record(int64_t begin, int64_t own_end, int64_t end);

 private:
  int64_t window_begin_ = 0;
  int64_t stalled_ = 0;  // since then
  int64_t alone_until_ = 0;
  int64_t alone_for_ = 0;
};

}  // namespace onward

#endif  // ONWARD_CORE_BASE_STALL_GUARD_H_
