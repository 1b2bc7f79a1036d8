// SPDX-License-Identifier: Apache-2.0
// How many threads are worth having just now. A team waits for its last member; where other
// processes want the cores too, that member is often not running, and a loop of 0.1 ms
// lasts as long as another's slice of time. Where all members together get less done than
// one thread would, fewer threads are faster.
#ifndef ONWARD_CORE_BASE_STALL_GUARD_H_
#define ONWARD_CORE_BASE_STALL_GUARD_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>

namespace onward {

// Watches the loops of one calling thread. Times are nanoseconds of one clock.
class StallGuard {
 public:
  // `preemptions` counts how often a thread of this process lost its core to another.
  explicit StallGuard(std::function<int64_t()> preemptions)
      : preemptions_(std::move(preemptions)) {}

  // Of so many threads, those that should share a loop that begins now.
  int64_t Team(int64_t threads, int64_t now) const {
    return now < rest_until_ ? std::min(threads, limit_) : threads;
  }
  // Whether Record wants to know how long the members computed: asking costs a little.
  bool measures() const { return measures_; }
  // A loop of a team: the caller was done with what it found to do at `own_end`, the last
  // member at `end`; together they computed for `busy`, time off their cores not counted.
  void Record(int64_t threads, int64_t begin, int64_t own_end, int64_t end, int64_t busy);

 private:
  void Watch(int64_t now);
  void Measure(int64_t threads, int64_t begin, int64_t end, int64_t busy);

  std::function<int64_t()> preemptions_;
  int64_t window_begin_ = 0, preempted_before_ = 0, waited_ = 0;  // while it watches
  bool measures_ = false;
  int64_t measured_ = 0, busy_ = 0;  // while it measures
  int64_t limit_ = 0, rest_until_ = 0, rest_ = 0;
};

// Of the whole process, as the system counts them.
int64_t Preemptions();
// How long the calling thread has been running.
int64_t ThreadTime();

}  // namespace onward

#endif  // ONWARD_CORE_BASE_STALL_GUARD_H_
