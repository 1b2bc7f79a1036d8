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
Command PredictCommand();
Command NewCommand();
Command DoctorCommand();
Command ExportCommand();
Command GradientCommand();
Command CompareCommand();
Command BenchCommand();
Command ReportCommand();
Command OpsCommand();
Command LossesCommand();
Command OptimizersCommand();
Command SchedulesCommand();
Command InitializersCommand();

// Set by Ctrl-C (SIGINT, SIGTERM) and by a terminal that closes (SIGHUP) once
// WatchInterrupts was called; a second Ctrl-C ends the process at once.
const std::atomic<bool>& Interrupted();
void WatchInterrupts();
// From now on a pipe that nobody reads any more does not end the process.
void OutliveReaders();

}  // namespace onward

#endif  // ONWARD_CLI_COMMANDS_H_
