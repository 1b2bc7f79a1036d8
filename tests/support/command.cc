// SPDX-License-Identifier: Apache-2.0
#include "tests/support/command.h"

#include <sys/wait.h>

#include <cstdlib>

#include "tests/support/paths.h"
#include "tests/support/scratch.h"

namespace onward {

namespace {

// `after` is a shell line behind the command.
CommandResult RunLine(const std::string& binary, const std::string& arguments,
                      const std::string& after) {
  const std::string folder = TemporaryFolder();
  const std::string line =
      binary + " " + arguments + " >" + folder + "/out 2>" + folder + "/err </dev/null" + after;
  const int status = std::system(line.c_str());
  CommandResult result;
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (result.exit_code >= 128) result.exit_code = -1;
  result.output = FileBytes(folder + "/out");
  result.errors = FileBytes(folder + "/err");
  return result;
}

}  // namespace

CommandResult RunOnward(const std::string& binary, const std::string& arguments) {
  return RunLine(binary, arguments, "");
}

CommandResult RunOnwardUntil(const std::string& binary, const std::string& arguments,
                             const std::string& file) {
  return RunLine(binary, arguments,
                 " & p=$!; i=0; while [ $i -lt 6000 ] && [ ! -e " + file +
                     " ] && kill -0 $p 2>/dev/null; do sleep 0.01; i=$((i+1)); done; "
                     "kill -KILL $p 2>/dev/null; wait $p 2>/dev/null");
}

std::string OnnxruntimePython() {
  const char* named = std::getenv("ONWARD_ORT_PYTHON");
  if (named != nullptr) return named;
  const std::string python = OfficialCasesFolder() + "/../../venv/bin/python";
  const bool has = RunOnward(python, "-c 'import numpy, onnx, onnxruntime'").exit_code == 0;
  return has ? python : "";
}

}  // namespace onward
