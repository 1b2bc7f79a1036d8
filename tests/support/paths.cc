// SPDX-License-Identifier: Apache-2.0
#include "tests/support/paths.h"

#include <cstdlib>
#include <filesystem>

namespace onward {
namespace {

namespace fs = std::filesystem;

struct Root {
  fs::path path;
  int next = 0;
  Root() {
    std::string name = (fs::temp_directory_path() / "onward-test-XXXXXX").string();
    path = mkdtemp(name.data());
  }
  ~Root() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

}  // namespace

std::string SharedPath(const std::string& relative) {
  const char* shared = std::getenv("ONWARD_SHARED");
  if (shared == nullptr || *shared == 0) return "";
  const fs::path path = fs::path(shared) / relative;
  return fs::exists(path) ? path.string() : "";
}

std::string TemporaryFolder() {
  static Root root;
  const fs::path folder = root.path / std::to_string(root.next++);
  fs::create_directories(folder);
  return folder.string();
}

}  // namespace onward
