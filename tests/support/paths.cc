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

std::string BuiltProgram() { return ONWARD_BUILD "/onward"; }
std::string BuiltExamples() { return ONWARD_BUILD "/examples"; }
std::string BadPlugins() { return ONWARD_BUILD "/tests/plugins"; }
std::string EmulatedCuda() { return ONWARD_BUILD "/libonward_cuda_emu.so"; }
std::string BuiltCuda() { return ONWARD_BUILD "/libonward_cuda.so"; }
std::string SourceFolder() { return ONWARD_SOURCES; }
std::string GoldenFolder() { return SourceFolder() + "/tests/golden"; }
std::string KnownFailuresFile() { return SourceFolder() + "/tests/conformance/known_failures.txt"; }
std::string OfficialCasesFolder() { return ONWARD_ONNX_CASES; }

}  // namespace onward
