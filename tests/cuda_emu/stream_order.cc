// SPDX-License-Identifier: Apache-2.0
// Work that the host has not waited for, by stream, with what it touches.
#include "tests/cuda_emu/stream_order.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "tests/cuda_emu/state.h"

namespace onward::cuda_emu {
namespace {

struct Work {
  uint64_t number;
  Accesses accesses;
};

struct Order {
  uint64_t streams = 0;
  std::map<uint64_t, std::deque<Work>> queued;  // by stream, in ascending numbers
};

Order& Get() {
  static auto* order = new Order;
  return *order;
}

bool Overlap(const Access& a, const Access& b) {
  const char *at_a = static_cast<const char*>(a.data), *at_b = static_cast<const char*>(b.data);
  return at_a < at_b + b.bytes && at_b < at_a + a.bytes;
}

void Compare(const std::vector<Access>& before, const std::vector<Access>& now) {
  for (const Access& a : before) {
    for (const Access& b : now) {
      if ((!a.written && !b.written) || !Overlap(a, b)) continue;
      Fatal(
          "race between streams: %s %s bytes that %s, queued on another stream before, %s; no "
          "event and no wait of the host orders them",
          b.by, b.written ? "writes" : "reads", a.by, a.written ? "writes" : "reads");
    }
  }
}

}  // namespace

void Join(Clock* clock, const Clock& other) {
  for (const auto& [stream, number] : other) {
    uint64_t& known = (*clock)[stream];
    known = std::max(known, number);
  }
}

uint64_t NewOrderedStream() { return ++Get().streams; }

void QueueInOrder(uint64_t stream, Clock* clock, const Accesses& accesses) {
  const uint64_t number = ++(*clock)[stream];
  if (accesses == nullptr || accesses->empty() || !GetState().checks_order) return;
  for (const auto& [other, works] : Get().queued) {
    if (other == stream) continue;
    const auto known = clock->find(other);
    const uint64_t done = known == clock->end() ? 0 : known->second;
    for (auto work = works.rbegin(); work != works.rend() && work->number > done; ++work) {
      Compare(*work->accesses, *accesses);
    }
  }
  Get().queued[stream].push_back({number, accesses});
}

void HostWaitedFor(const Clock& clock) {
  auto& queued = Get().queued;
  for (const auto& [stream, number] : clock) {
    const auto found = queued.find(stream);
    if (found == queued.end()) continue;
    std::deque<Work>& works = found->second;
    while (!works.empty() && works.front().number <= number) works.pop_front();
    if (works.empty()) queued.erase(found);
  }
}

void ForgetAccesses(const void* data, size_t bytes) {
  const Access gone = {data, bytes, true, ""};
  for (auto& [stream, works] : Get().queued) {
    std::erase_if(works, [&](const Work& work) {
      return std::any_of(work.accesses->begin(), work.accesses->end(),
                         [&](const Access& access) { return Overlap(access, gone); });
    });
  }
}

void ForgetAllAccesses() { Get().queued.clear(); }

}  // namespace onward::cuda_emu
