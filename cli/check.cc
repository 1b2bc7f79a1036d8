// SPDX-License-Identifier: Apache-2.0
// onward check: every finding at once, and mending what can be mended in one way only.
#include <iostream>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/compute_flags.h"
#include "cli/write_checked.h"
#include "core/base/status.h"
#include "core/onnx_io/model.h"
#include "trainer/report/log/jsonl.h"
#include "training_info/export_repaired.h"
#include "training_info/validate.h"

namespace onward {
namespace {

void PrintFinding(const Finding& finding, bool json) {
  const char* severity = IsRemark(finding) ? "remark" : "error";
  if (!json) {
    std::cout << (IsRemark(finding) ? "remark " : "") << finding.ToString() << "\n";
    return;
  }
  JsonWriter w;
  w.BeginObject()
      .Field("rule", finding.rule)
      .Field("severity", severity)
      .Field("place", finding.place)
      .Field("what", finding.what)
      .Field("fix", finding.fix)
      .EndObject();
  std::cout << w.text() << "\n";
}

// Puts the mended model in the place of the one that was read, and writes it.
absl::Status Mend(const Args& args, Model* model) {
  RepairedModel repaired = Repaired(*model);
  for (const std::string& change : repaired.changes) {
    if (args.Has("json")) {
      JsonWriter w;
      std::cout << w.BeginObject().Field("fixed", change).EndObject().text() << "\n";
    } else {
      std::cout << "fixed: " << change << "\n";
    }
  }
  *model = std::move(repaired.model);
  return WriteModel(*model, args.String("output"), ReadWriteFlags(args));
}

absl::StatusOr<int> RunCheck(const Args& args, const Environment& environment) {
  ONWARD_ASSIGN_OR_RETURN(Model model, ReadModel(args.Argument("MODEL")));
  if (args.Has("fix")) {
    if (model.training_damaged()) {
      return absl::InvalidArgumentError(absl::StrCat("--fix: training_info of '", model.path(),
                                                     "' is damaged; OUT would be without it"));
    }
    ONWARD_RETURN_IF_ERROR(Mend(args, &model));
  }
  ONWARD_ASSIGN_OR_RETURN(std::vector<Finding> findings, CheckModel(model, environment));
  for (const Finding& f : findings) PrintFinding(f, args.Has("json"));
  if (!args.Has("json")) {
    std::cout << (findings.empty() ? "ok"
                                   : std::to_string(findings.size()) +
                                         (findings.size() == 1 ? " finding" : " findings"))
              << ": " << (args.Has("fix") ? args.String("output") : model.path()) << "\n";
  }
  return findings.empty() ? 0 : 1;
}

absl::Status CheckFlags(const Args& args) {
  if (args.Has("fix") == args.Has("output")) return absl::OkStatus();
  return absl::InvalidArgumentError(args.Has("fix") ? "--fix needs -o OUT, the file to write"
                                                    : "-o OUT is for --fix");
}

}  // namespace

Command CheckCommand() {
  return InEnvironment(
      {.name = "check",
       .summary = "validates a model and its training_info; exit 1 if anything is wrong",
       .arguments = {{"MODEL", "an .onnx file"}},
       .flags =
           {Flag::Switch("fix", "mend what can be mended in one way only, and check the rest"),
            Flag::Value("output", "OUT", "the mended file").Short('o').Names(FlagNames::kResult),
            OverwriteFlag(), ExternalDataFlag(),
            Flag::Switch("json", "print one JSON object per finding")},
       .example = "onward check trainable.onnx --fix -o mended.onnx",
       .check = CheckFlags},
      RunCheck);
}

}  // namespace onward
