// SPDX-License-Identifier: Apache-2.0
// The machine's memory.
#ifndef ONWARD_CORE_BASE_MEMORY_H_
#define ONWARD_CORE_BASE_MEMORY_H_

#include <cstdint>
#include <optional>

namespace onward {

// In bytes; nothing where the system does not tell.
std::optional<uint64_t> PhysicalMemory();

}  // namespace onward

#endif  // ONWARD_CORE_BASE_MEMORY_H_
