// SPDX-License-Identifier: Apache-2.0
#include "tests/support/paths.h"

#include <cstdlib>
#include <filesystem>

namespace onward {

std::string SharedPath(const std::string& relative) {
  const char* shared = std::getenv("ONWARD_SHARED");
  if (shared == nullptr || *shared == 0) return "";
  const std::filesystem::path path = std::filesystem::path(shared) / relative;
  return std::filesystem::exists(path) ? path.string() : "";
}

}  // namespace onward
