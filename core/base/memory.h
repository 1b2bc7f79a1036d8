// SPDX-License-Identifier: Apache-2.0
// The machine's memory.
#ifndef ONWARD_CORE_BASE_MEMORY_H_
#define ONWARD_CORE_BASE_MEMORY_H_

#include <cstdint>
#include <optional>

namespace onward {

// In bytes; nothing where the system does not tell.
std::optional<uint64_t> PhysicalMemory();
// What could be allocated now without driving other things out of memory.
std::optional<uint64_t> AvailableMemory();
// Whether so much can be asked for. Linux hands out memory that it does not have, and ends the
// process that touches it, so large pieces are asked for only if they are there.
bool MemoryIsThere(uint64_t bytes);

}  // namespace onward

#endif  // ONWARD_CORE_BASE_MEMORY_H_
