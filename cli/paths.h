// SPDX-License-Identifier: Apache-2.0
// The files a command line names: what is written can be written and destroys nothing
// that is read, and messages say which file they are about. By what Flag::names
// declares, so no command has to remember it.
#ifndef ONWARD_CLI_PATHS_H_
#define ONWARD_CLI_PATHS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cli/args.h"

namespace onward {

// Before the work: every file the command is going to write can be written, no two are
// the same, and none is a file that is read, by whatever name. Only the model that -o
// replaces may be one that is read, where --resume or --overwrite say so.
absl::Status CheckPaths(const Command& command, const Args& args);

// An error if writing `path` would replace one of `files` (what NAME=FILE names, for
// tensors); for names that are known only after the work.
absl::Status RefuseToReplace(const std::string& path, const std::vector<std::string>& files);

// The same status, its message preceded by the file's name unless it holds it already.
absl::Status Naming(const std::string& path, const absl::Status& status);
// The same status, its message preceded by the command's (first) model unless it names
// a model or a file to write already, or begins with the data file that it is about.
absl::Status NamingFile(const Command& command, const Args& args, const absl::Status& status);

}  // namespace onward

#endif  // ONWARD_CLI_PATHS_H_
