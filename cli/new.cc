// SPDX-License-Identifier: Apache-2.0
// onward new: a model for data.
#include <filesystem>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/compute_flags.h"
#include "cli/open_data.h"
#include "cli/shell_line.h"
#include "cli/write_checked.h"
#include "core/base/status.h"

namespace onward {
namespace {

absl::StatusOr<MadeSpec> SpecOf(const Args& args) {
  const std::string word = args.Argument("KIND");
  ONWARD_ASSIGN_OR_RETURN(const std::optional<MadeSpec> spec, ParseMadeModel(word));
  if (spec) return *spec;
  return absl::InvalidArgumentError(
      absl::StrCat("unknown kind of model '", word, "'; known are ", MadeModels()));
}

absl::Status CheckNewFlags(const Args& args) {
  ONWARD_RETURN_IF_ERROR(SpecOf(args).status());
  const std::string output = args.String("output");
  std::error_code error;
  if (args.Has("overwrite") || !std::filesystem::is_regular_file(output, error)) {
    return absl::OkStatus();
  }
  return absl::AlreadyExistsError(
      absl::StrCat("'", output, "' exists already: --overwrite replaces it, another -o keeps it"));
}

absl::StatusOr<int> RunNew(const Args& args, const Environment& environment) {
  ONWARD_ASSIGN_OR_RETURN(const MadeSpec spec, SpecOf(args));
  ONWARD_ASSIGN_OR_RETURN(const MadeModel made,
                          MakeModelFor(spec, args.String("data"),
                                       static_cast<uint64_t>(args.Int("seed")), environment));
  const std::string output = args.String("output");
  for (const std::string& note : made.data->notes()) std::cerr << "note: " << note << "\n";
  ONWARD_RETURN_IF_ERROR(WriteChecked(made.model, output, ReadWriteFlags(args), environment));
  // As `train KIND` does at once.
  const MadeTraining usual = TrainingFor(spec, *made.data, {});
  std::cout << output << ": a new model for " << Describe(*made.data) << "; next: onward train "
            << ShellWord(output) << " --data " << ShellWord(args.String("data")) << " --batch "
            << usual.batch << " --epochs " << usual.epochs << " --optimizer " << usual.optimizer
            << " --schedule " << usual.schedule << " -o OUT\n";
  return 0;
}

}  // namespace

Command NewCommand() {
  return InEnvironment(
      {.name = "new",
       .summary = "makes a model for data: as many inputs and outputs as it takes",
       .arguments = {{"KIND",
                      "mlp or mlp:64,64 (widths of its layers) for tables and pictures; gpt or "
                      "gpt:4x128 (layers x width) for text"}},
       .flags = {Flag::Value("data", "SPEC", "the data; see `onward eval --help` for the forms")
                     .Names(FlagNames::kData)
                     .Required(),
                 Flag::Value("output", "OUT", "the new model")
                     .Short('o')
                     .Names(FlagNames::kResult)
                     .Required(),
                 Flag::Switch("overwrite", "replace OUT where it exists"), ExternalDataFlag(),
                 Flag::Count("seed", "S", "of its weights", 0).Default("0")},
       .example = "onward new mlp:64,64 --data 'csv:table.csv?label=price' -o model.onnx",
       .check = CheckNewFlags},
      RunNew);
}

}  // namespace onward
