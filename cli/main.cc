// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <string>
#include <vector>

#include "cli/args.h"
#include "cli/commands.h"
#include "cli/compute_flags.h"

using onward::Computing;

int main(int argc, char** argv) {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
    std::cerr << "onward: this program needs a CPU with AVX2 and FMA\n";
    return 2;
  }
  const onward::Program program = {
      .name = "onward",
      .summary = "trains ONNX models: inspects, makes trainable, fine-tunes, resumes, exports",
      .version = "0.1.0",
      .commands = {onward::InspectCommand(), onward::CheckCommand(),
                   Computing(onward::RunCommand()), Computing(onward::ScoreCommand()),
                   onward::MakeTrainableCommand(), Computing(onward::StepCommand()),
                   Computing(onward::TrainCommand()), Computing(onward::EvalCommand()),
                   onward::ExportCommand(), onward::GradientCommand(),
                   Computing(onward::CompareCommand()), Computing(onward::BenchCommand()),
                   onward::OpsCommand()}};
  const std::vector<std::string> words(argv + 1, argv + argc);
  return onward::RunProgram(program, words, std::cout, std::cerr);
}
