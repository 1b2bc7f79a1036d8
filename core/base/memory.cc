// SPDX-License-Identifier: Apache-2.0
#include "core/base/memory.h"

#include <unistd.h>

#include <fstream>
#include <string>

namespace onward {

std::optional<uint64_t> PhysicalMemory() {
  const long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page_bytes <= 0) return std::nullopt;
  return static_cast<uint64_t>(pages) * static_cast<uint64_t>(page_bytes);
}

std::optional<uint64_t> AvailableMemory() {
  std::ifstream info("/proc/meminfo");
  std::string key;
  for (uint64_t kilobytes = 0; info >> key >> kilobytes; info.ignore(64, '\n')) {
    if (key == "MemAvailable:") return kilobytes * 1024;
  }
  return std::nullopt;
}

bool MemoryIsThere(uint64_t bytes) {
  constexpr uint64_t kLarge = uint64_t{256} << 20;
  if (bytes < kLarge) return true;
  const std::optional<uint64_t> available = AvailableMemory();
  return !available.has_value() || bytes <= *available / 8 * 7;
}

}  // namespace onward
