// SPDX-License-Identifier: Apache-2.0
// What a system knows of a program beside it: manual pages and completion for shells, made
// from the declarations that --help is made from.
#ifndef ONWARD_CLI_MANUAL_H_
#define ONWARD_CLI_MANUAL_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "cli/args.h"

namespace onward {

// In roff: PROGRAM(1), which lists the commands, and PROGRAM-COMMAND(1).
std::string ManualPage(const CommandLine& program);
std::string ManualPage(const CommandLine& program, const Command& command);

// Scripts that complete commands, flags, values that are one of a list, and files.
std::string BashCompletion(const CommandLine& program);
std::string ZshCompletion(const CommandLine& program);
std::string FishCompletion(const CommandLine& program);

// All of them below a folder that is laid out like /usr/share.
absl::Status WriteManual(const CommandLine& program, const std::string& folder);

// `man` and `completion`, commands that print them. They read `program` when they run, so
// it has to outlive them.
Command ManCommand(const CommandLine& program);
Command CompletionCommand(const CommandLine& program);

// A text in one line, for places that have no room for more.
std::string FirstSentence(absl::string_view text);

}  // namespace onward

#endif  // ONWARD_CLI_MANUAL_H_
