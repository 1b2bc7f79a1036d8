// SPDX-License-Identifier: Apache-2.0
// The commands of `onward`, one function each (see main.cc for the list).
#ifndef ONWARD_CLI_COMMANDS_H_
#define ONWARD_CLI_COMMANDS_H_

#include <atomic>

#include "cli/args.h"

namespace onward {

Command InspectCommand();
Command CheckCommand();
Command RunCommand();
Command ScoreCommand();
Command MakeTrainableCommand();
Command StepCommand();
Command TrainCommand();
Command EvalCommand();
Command ExportCommand();
Command GradientCommand();
Command CompareCommand();
Command BenchCommand();
Command OpsCommand();

// Set by Ctrl-C (SIGINT, SIGTERM) once WatchInterrupts was called; a second
// signal ends the process at once.
const std::atomic<bool>& Interrupted();
void WatchInterrupts();

}  // namespace onward

#endif  // ONWARD_CLI_COMMANDS_H_
