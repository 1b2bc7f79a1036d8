// SPDX-License-Identifier: Apache-2.0
#include "tests/support/paths.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace onward {

std::string SharedPath(const std::string& relative) {
  const char* shared = std::getenv("ONWARD_SHARED");
  if (shared == nullptr || *shared == 0) return "";
  const std::filesystem::path path = std::filesystem::path(shared) / relative;
  return std::filesystem::exists(path) ? path.string() : "";
}

std::string BuiltProgram() { return ONWARD_BUILD "/onward"; }
std::string BuiltExamples() { return ONWARD_BUILD "/examples"; }
std::string BadPlugins() { return ONWARD_BUILD "/tests/plugins"; }
std::string EmulatedCuda() { return ONWARD_BUILD "/libonward_cuda_emu.so"; }
std::string BuiltCuda() { return ONWARD_BUILD "/libonward_cuda.so"; }
std::string SourceFolder() { return ONWARD_SOURCES; }
std::string GoldenFolder() { return SourceFolder() + "/tests/golden"; }
std::string KnownFailuresFile() { return SourceFolder() + "/tests/conformance/known_failures.txt"; }
std::string OfficialCasesFolder() { return ONWARD_ONNX_CASES; }

std::vector<std::string> NamesOfFiles(const std::string& folder, const std::string& extension) {
  std::vector<std::string> names;
  std::error_code absent;
  for (const auto& entry : std::filesystem::directory_iterator(folder, absent)) {
    if (entry.path().extension() == extension) names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace onward
