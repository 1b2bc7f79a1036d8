// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "cli/args.h"
#include "cli/commands.h"
#include "cli/manual.h"
#include "core/base/cpu_features.h"

namespace {

// Threads that wait for each other spin, with libgomp's own setting for
// milliseconds. Where other programs want the cores too, that delays the very
// threads they wait for: a step can take 20 times as long. A fraction of a
// millisecond costs nothing on an idle machine. libgomp reads its settings
// before main, hence the second start; where that fails, all goes on as it was.
void SpinBriefly(char** argv) {
  if (getenv("GOMP_SPINCOUNT") != nullptr || getenv("OMP_WAIT_POLICY") != nullptr) return;
  setenv("GOMP_SPINCOUNT", "10000", 1);
  execv("/proc/self/exe", argv);
}

}  // namespace

int main(int argc, char** argv) {
  if (const absl::Status usable = onward::CheckCpu(onward::ThisCpu()); !usable.ok()) {
    std::cerr << "onward: " << usable.message() << "\n";
    return 2;
  }
  if (argc > 2) SpinBriefly(argv);
  onward::CommandLine program = {
      .name = "onward",
      .summary = "trains ONNX models: inspects, makes trainable, fine-tunes, resumes, exports",
      .version = ONWARD_VERSION,
      .commands = {onward::InspectCommand(),       onward::CheckCommand(),
                   onward::RunCommand(),           onward::ScoreCommand(),
                   onward::MakeTrainableCommand(), onward::StepCommand(),
                   onward::TrainCommand(),         onward::EvalCommand(),
                   onward::PredictCommand(),       onward::NewCommand(),
                   onward::DoctorCommand(),        onward::ExportCommand(),
                   onward::GradientCommand(),      onward::CompareCommand(),
                   onward::BenchCommand(),         onward::ReportCommand(),
                   onward::OpsCommand(),           onward::LossesCommand(),
                   onward::OptimizersCommand(),    onward::SchedulesCommand(),
                   onward::InitializersCommand()}};
  program.commands.push_back(onward::ManCommand(program));
  program.commands.push_back(onward::CompletionCommand(program));
  const std::vector<std::string> words(argv + 1, argv + argc);
  return onward::RunProgram(program, words, std::cout, std::cerr);
}
