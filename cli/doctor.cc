// SPDX-License-Identifier: Apache-2.0
// onward doctor: why a model does not learn.
#include "trainer/doctor/doctor.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/author_flags.h"
#include "cli/commands.h"
#include "cli/compute_flags.h"
#include "cli/open_data.h"
#include "cli/trainable.h"
#include "core/base/status.h"
#include "trainer/doctor/checks.h"
#include "trainer/report/log/jsonl.h"
#include "training_info/weights/choice.h"

namespace onward {
namespace {

constexpr int kShownLosses = 10;

absl::StatusOr<DoctorReport> Examine(const Args& args, const Environment& environment) {
  ONWARD_ASSIGN_OR_RETURN(Model model, ReadModel(args.Argument("MODEL")));
  ONWARD_ASSIGN_OR_RETURN(std::shared_ptr<const Dataset> data,
                          OpenDataFor(model, args.String("data"), Split::kTrain));
  DoctorOptions options;
  options.run.batch = args.Int("batch");
  options.run.seed = static_cast<uint64_t>(args.Int("seed"));
  options.steps = args.Int("steps");
  options.initialize = args.Has("initialize");
  std::vector<std::string> notes;
  auto trainable =
      TrainableModel(args, data, std::nullopt, std::move(model), environment, &options.run, &notes);
  if (!trainable.ok()) {
    const std::string why(trainable.status().message());
    if (!absl::StrContains(why, kNothingToTrain)) return trainable.status();
    return DoctorReport{.findings = {NothingTrains(why)}, .not_examined = why};
  }
  ONWARD_ASSIGN_OR_RETURN(DoctorReport report,
                          Diagnose(*std::move(trainable), std::move(data), std::move(options),
                                   environment, &Interrupted()));
  report.notes.insert(report.notes.begin(), notes.begin(), notes.end());
  return report;
}

void PrintJson(const DoctorReport& report) {
  for (const DoctorFinding& f : report.findings) {
    JsonWriter w;
    w.BeginObject().Field("finding", f.id).Field("place", f.place).Field("number", f.number);
    w.Field("what", f.what).Field("help", f.help).EndObject();
    std::cout << w.text() << "\n";
  }
  for (const Trial& trial : report.trials) {
    JsonWriter w;
    w.BeginObject().Field("one_batch_rate", trial.rate).Key("losses").Values(trial.losses);
    std::cout << w.Field("broke", trial.broke).EndObject().text() << "\n";
  }
  if (report.not_examined.empty()) return;
  JsonWriter w;
  w.BeginObject().Field("not_examined", report.not_examined).EndObject();
  std::cout << w.text() << "\n";
}

// The course of the loss, some steps of it.
void PrintTrial(const Trial& trial) {
  std::cout << "one batch";
  if (!std::isnan(trial.rate)) std::cout << absl::StrFormat(", rate %.3g", trial.rate);
  std::cout << ": loss";
  const size_t every = std::max<size_t>(1, trial.losses.size() / kShownLosses);
  for (size_t i = 0; i < trial.losses.size(); ++i) {
    if (i % every == 0 || i + 1 == trial.losses.size()) {
      std::cout << absl::StrFormat(" %.4g", trial.losses[i]);
    }
  }
  std::cout << absl::StrFormat(" (%d steps%s)\n", trial.losses.size(),
                               trial.broke.empty() ? "" : ", then not finite");
}

void PrintText(const std::string& model, const DoctorReport& report) {
  for (const DoctorFinding& f : report.findings) {
    std::cout << "[" << f.id << "] " << f.place << ": " << f.what << "\n  try: " << f.help << "\n";
  }
  for (const Trial& trial : report.trials) PrintTrial(trial);
  if (!report.not_examined.empty()) {
    std::cout << "the rest was not looked at: " << report.not_examined << "\n";
  }
  const size_t count = report.findings.size();
  std::cout << model << ": "
            << (count == 0 ? "nothing found"
                           : absl::StrCat(count, count == 1 ? " finding" : " findings"))
            << "\n";
}

absl::StatusOr<int> RunDoctor(const Args& args, const Environment& environment) {
  WatchInterrupts();
  ONWARD_ASSIGN_OR_RETURN(const DoctorReport report, Examine(args, environment));
  if (!args.Has("quiet")) {
    for (const std::string& note : report.notes) std::cerr << "note: " << note << "\n";
  }
  if (args.Has("json")) {
    PrintJson(report);
  } else {
    PrintText(args.Argument("MODEL"), report);
  }
  return report.findings.empty() ? 0 : 1;
}

}  // namespace

Command DoctorCommand() {
  std::vector<Flag> flags = {
      Flag::Value("data", "SPEC", "training data; see `onward eval --help` for the forms")
          .Names(FlagNames::kData)
          .Required(),
      Flag::Count("batch", "N", "examples per step", 1).Default("64"),
      Flag::Count("steps", "N", "how long to train on one batch, for each rate that is tried", 1)
          .Default("50"),
      Flag::Count("seed", "S", "of shuffling, dropout and new weights", 0).Default("0"),
      Flag::Number("lr", "X", "learning rate, in the place of the optimizer's own or the file's", 0,
                   1e30),
      Flag::Switch("initialize", "start from newly drawn weights (the file's initialization)"),
      Flag::Switch("quiet", "no notes"),
      Flag::Switch("json", "print one JSON object for each finding and each trial on one batch")};
  for (Flag& f : AuthorFlags()) flags.push_back(std::move(f));
  return Computing(
      {.name = "doctor",
       .summary = "why a model does not learn, each reason with its number and the flag that helps",
       .arguments = {{"MODEL", "an .onnx file; it is not changed"}},
       .flags = std::move(flags),
       .example = "onward doctor model.onnx --data mnist:DIR --optimizer sgd:lr=0.1",
       .check = CheckAuthorFlags},
      RunDoctor);
}

}  // namespace onward
