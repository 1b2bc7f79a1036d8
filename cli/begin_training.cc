// SPDX-License-Identifier: Apache-2.0
#include "cli/begin_training.h"

#include <filesystem>
#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/shell_line.h"
#include "cli/train_flags.h"
#include "cli/trainable.h"
#include "core/base/status.h"
#include "trainer/report/terminal/statement.h"
#include "trainer/run/find_rate.h"
#include "trainer/run/fingerprint.h"

namespace onward {
namespace {

// A resumed run belongs to the model it began with; OUT itself is none to compare with. What to
// warn of; "": nothing.
std::string OtherModel(const Args& args, const Model& output) {
  const std::string stored = output.Metadata(kMetaModelPrint), model = args.Argument("MODEL");
  std::error_code error;
  if (stored.empty() || std::filesystem::equivalent(model, args.String("output"), error)) {
    return "";
  }
  const auto read = ReadModel(model);
  const auto print = read.ok() ? ModelFingerprint(*read) : read.status();
  if (!print.ok() || *print == stored) return "";
  return absl::StrCat("'", model, "' is not the model that '", args.String("output"),
                      "' began with; the run goes on from '", args.String("output"), "'");
}

absl::Status CheckBalance(const Args& args, const Dataset& data) {
  if (!args.Has("balance") || data.classes() > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--balance: ", data.source(), " has no classes as labels; leave it out for numbers"));
}

}  // namespace

absl::StatusOr<BegunTraining> BeginTraining(const Args& args, const TrainingSpecs& specs,
                                            const Environment& environment, bool tells) {
  BegunTraining begun;
  tells &= !args.Has("quiet");
  ONWARD_ASSIGN_OR_RETURN(TrainingInputs inputs, OpenForTraining(args, specs, environment));
  begun.data = std::move(inputs.data);
  begun.eval = std::move(inputs.eval);
  begun.made = std::move(inputs.made);
  Model model = std::move(inputs.model);
  ONWARD_RETURN_IF_ERROR(CheckBalance(args, *begun.data));
  ONWARD_ASSIGN_OR_RETURN(begun.options, ReadTrainOptions(args, model));
  if (begun.made) {
    begun.options.epochs = begun.made->epochs;
    begun.options.batch = begun.made->batch;
  }
  const std::string other = begun.options.resumed ? OtherModel(args, model) : "";
  std::vector<std::string> notes;
  ONWARD_ASSIGN_OR_RETURN(model, TrainableModel(args, begun.data, begun.made, std::move(model),
                                                environment, &begun.options, &notes));
  std::vector<ReportNote>& told = begun.options.told;
  if (!other.empty()) told.push_back({other, true});
  for (std::string& note : notes) told.push_back({std::move(note)});
  for (const ReportNote& note : told) {
    if (tells) std::cerr << NoteLine(note) << "\n";
  }
  if (args.Has("find-lr")) ONWARD_RETURN_IF_ERROR(PrepareForSearch(environment, &model));
  ONWARD_ASSIGN_OR_RETURN(begun.training, TrainingModel::Create(std::move(model), environment));
  if (!begun.options.resumed) begun.training->set_random({begun.options.seed, 0});
  if (args.Has("initialize")) ONWARD_RETURN_IF_ERROR(begun.training->Initialize());
  begun.options.command = ShellLine("train", args);
  return begun;
}

}  // namespace onward
