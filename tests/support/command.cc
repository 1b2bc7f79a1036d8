// SPDX-License-Identifier: Apache-2.0
#include "tests/support/command.h"

#include <sys/wait.h>

#include <cstdlib>

#include "tests/support/paths.h"
#include "tests/support/scratch.h"

namespace onward {

CommandResult RunOnward(const std::string& binary, const std::string& arguments) {
  const std::string folder = TemporaryFolder();
  const std::string line =
      binary + " " + arguments + " >" + folder + "/out 2>" + folder + "/err </dev/null";
  const int status = std::system(line.c_str());
  CommandResult result;
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (result.exit_code >= 128) result.exit_code = -1;
  result.output = FileBytes(folder + "/out");
  result.errors = FileBytes(folder + "/err");
  return result;
}

std::string OnnxruntimePython() {
  const char* named = std::getenv("ONWARD_ORT_PYTHON");
  if (named != nullptr) return named;
  const std::string python = OfficialCasesFolder() + "/../../venv/bin/python";
  const bool has = RunOnward(python, "-c 'import numpy, onnx, onnxruntime'").exit_code == 0;
  return has ? python : "";
}

}  // namespace onward
