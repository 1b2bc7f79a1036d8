// SPDX-License-Identifier: Apache-2.0
// Flags that say in which environment a command works.
#ifndef ONWARD_CLI_COMPUTE_FLAGS_H_
#define ONWARD_CLI_COMPUTE_FLAGS_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "cli/args.h"
#include "core/onnx_io/model.h"
#include "environment/environment.h"

namespace onward {

// Command::run of a command that works on operators.
using RunIn = std::function<absl::StatusOr<int>(const Args&, const Environment&)>;

// The command, run in an environment of its own: with --plugin.
Command InEnvironment(Command command, RunIn run);
// Likewise for one that says what would be computed where: also with --device and what belongs
// to it.
Command Planning(Command command, RunIn run);
// Likewise for one that computes: also with --threads, --exact-conv and --memory-limit.
Command Computing(Command command, RunIn run);

// --entry K, the number of a training entry.
Flag EntryFlag(std::string help);

// Says on standard error that training_info is damaged, to who uses the rest of the file.
void WarnOfTraining(const Model& model);

}  // namespace onward

#endif  // ONWARD_CLI_COMPUTE_FLAGS_H_
