// SPDX-License-Identifier: Apache-2.0
// Finds work that is queued on different streams, touches the same bytes, and is ordered by
// nothing: no event, no wait of the host. A GPU may do it at once or in either order. It is found
// when it is queued, whatever order it would be run in here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace onward::cuda_emu {

// Bytes of a device, or of pinned memory, that queued work reads or writes.
struct Access {
  const void* data;
  size_t bytes;
  bool written;
  const char* by;  // who does; the text lasts
};
using Accesses = std::shared_ptr<const std::vector<Access>>;
inline Accesses Touching(std::vector<Access> accesses) {
  return std::make_shared<const std::vector<Access>>(std::move(accesses));
}

// What is done before: of each stream, which has a number for ever, as much of its work.
using Clock = std::map<uint64_t, uint64_t>;
void Join(Clock* clock, const Clock& other);

uint64_t NewOrderedStream();
// Work is queued on the stream behind all that the clock tells, which it then tells of, too.
void QueueInOrder(uint64_t stream, Clock* clock, const Accesses& accesses);
// The host has waited: everything queued from now on comes after all that the clock tells.
void HostWaitedFor(const Clock& clock);
// Other work may have the bytes from now on.
void ForgetAccesses(const void* data, size_t bytes);
void ForgetAllAccesses();

}  // namespace onward::cuda_emu
