// SPDX-License-Identifier: Apache-2.0
#include "tests/support/scratch.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace onward {

namespace fs = std::filesystem;

Scratch::Scratch() {
  std::string name = (fs::temp_directory_path() / "onward-test-XXXXXX").string();
  folder_ = mkdtemp(name.data());
}

Scratch::~Scratch() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

std::string Scratch::Write(const std::string& name, const std::string& bytes) const {
  fs::create_directories(fs::path(Path(name)).parent_path());
  std::ofstream(Path(name), std::ios::binary) << bytes;
  return Path(name);
}

std::string Scratch::Read(const std::string& name) const { return FileBytes(Path(name)); }

std::string TemporaryFolder() {
  static const Scratch root;
  static int next = 0;
  const std::string folder = root.Path(std::to_string(next++));
  fs::create_directories(folder);
  return folder;
}

std::string FileBytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace onward
