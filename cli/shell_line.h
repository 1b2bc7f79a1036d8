// SPDX-License-Identifier: Apache-2.0
// Command lines as a person would type them.
#ifndef ONWARD_CLI_SHELL_LINE_H_
#define ONWARD_CLI_SHELL_LINE_H_

#include <string>

#include "cli/args.h"

namespace onward {

// The word as a shell reads it back: quoted where it has to be.
std::string ShellWord(const std::string& word);

// The command that the program was started with.
std::string ShellLine(const std::string& command, const Args& args);

}  // namespace onward

#endif  // ONWARD_CLI_SHELL_LINE_H_
