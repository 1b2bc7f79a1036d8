// SPDX-License-Identifier: Apache-2.0
// Flags of every command that computes.
#ifndef ONWARD_CLI_COMPUTE_FLAGS_H_
#define ONWARD_CLI_COMPUTE_FLAGS_H_

#include "cli/args.h"

namespace onward {

// The command with --threads, --exact-conv and --memory-limit, which take effect before it runs.
Command Computing(Command command);

}  // namespace onward

#endif  // ONWARD_CLI_COMPUTE_FLAGS_H_
