// SPDX-License-Identifier: Apache-2.0
// What one executor has on the accelerators of its plan: memory, and recordings of its work.
#ifndef ONWARD_CORE_RUNTIME_DEVICES_ACCELERATORS_H_
#define ONWARD_CORE_RUNTIME_DEVICES_ACCELERATORS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "core/device/device.h"
#include "core/runtime/devices/queues.h"
#include "core/runtime/plan/plan.h"

namespace onward {

// What a device is told before a run and tells after it, in its memory and in pinned memory. Of
// what is checked before variables are assigned each has a word `bad`.
struct RunHeader {
  RandomState random;
  uint32_t stop = 0;
  uint32_t bad[1] = {0};  // and more behind it
};

// The work of a plan as it was put down for variables and feeds at certain addresses.
struct Recorded {
  std::vector<const void*> addresses;
  std::vector<bool> ran;                              // by stretch: in a run before this one
  std::vector<std::unique_ptr<Recording>> stretches;  // null: not yet
  // What assigns variables, by itself; by what of it is due.
  std::map<std::vector<bool>, std::unique_ptr<Recording>> commits;
};

class Accelerators {
 public:
  explicit Accelerators(std::shared_ptr<const Plan> plan);
  ~Accelerators();  // waits for what is queued

  bool open() const { return open_; }
  // Allocates, and has the constants copied in. `words`: how many of RunHeader::bad there are.
  absl::Status Open(int words);
  Queues& queues() { return *queues_; }
  Stream& stream(int device) { return queues_->compute(device); }

  char* arena(int device) { return static_cast<char*>(held_[device - 1].arena.get()); }
  void* constant(int value) { return constants_[value].get(); }
  // Pinned: what a stretch copies (PlanStep::slot).
  char* slots() { return static_cast<char*>(slots_.get()); }
  RunHeader& header(int device) {
    return *static_cast<RunHeader*>(held_[device - 1].pinned_header.get());
  }
  RunHeader* header_there(int device) {
    return static_cast<RunHeader*>(held_[device - 1].header.get());
  }
  size_t header_bytes() const { return sizeof(RunHeader) + words_ * sizeof(uint32_t); }
  uint32_t first_step() const { return first_step_; }

  // The recordings for these addresses, made or found; those used least recently are dropped.
  absl::StatusOr<Recorded*> RecordedFor(std::vector<const void*> addresses);

 private:
  struct Held {
    std::shared_ptr<void> arena, header, pinned_header;
  };
  std::shared_ptr<const Plan> plan_;
  std::shared_ptr<Queues> queues_;
  size_t words_ = 0;
  bool open_ = false;
  std::vector<Held> held_;
  std::shared_ptr<void> slots_;
  std::vector<std::shared_ptr<void>> constants_;  // by value
  uint32_t first_step_ = 0;
  std::vector<std::unique_ptr<Recorded>> recorded_;  // the one used last comes first
};

}  // namespace onward

#endif  // ONWARD_CORE_RUNTIME_DEVICES_ACCELERATORS_H_
