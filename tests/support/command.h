// SPDX-License-Identifier: Apache-2.0
// Running the command line as a user does.
#ifndef ONWARD_TESTS_SUPPORT_COMMAND_H_
#define ONWARD_TESTS_SUPPORT_COMMAND_H_

#include <string>

namespace onward {

struct CommandResult {
  int exit_code = -1;  // -1: ended by a signal
  std::string output;  // standard output
  std::string errors;  // standard error
};

// Runs `onward ARGUMENTS` (a shell line) and waits.
CommandResult RunOnward(const std::string& binary, const std::string& arguments);

// Begins it, waits until the file is there (or the command ends, or for long), and kills it.
CommandResult RunOnwardUntil(const std::string& binary, const std::string& arguments,
                             const std::string& file);

// A Python that has onnx and onnxruntime: the one that ONWARD_ORT_PYTHON names, or that of the
// cache; "" where there is none.
std::string OnnxruntimePython();

}  // namespace onward

#endif  // ONWARD_TESTS_SUPPORT_COMMAND_H_
