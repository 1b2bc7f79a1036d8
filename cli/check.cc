// SPDX-License-Identifier: Apache-2.0
// onward check: every finding at once.
#include <iostream>

#include "cli/commands.h"
#include "cli/compute_flags.h"
#include "core/base/status.h"
#include "core/onnx_io/model.h"
#include "trainer/report/jsonl.h"
#include "training_info/validate.h"

namespace onward {
namespace {

absl::StatusOr<int> RunCheck(const Args& args, const Environment& environment) {
  ONWARD_ASSIGN_OR_RETURN(Model model, ReadModel(args.Argument("MODEL")));
  ONWARD_ASSIGN_OR_RETURN(std::vector<Finding> findings, CheckModel(model, environment));
  for (const Finding& f : findings) {
    if (args.Has("json")) {
      JsonWriter w;
      w.BeginObject()
          .Field("rule", f.rule)
          .Field("place", f.place)
          .Field("what", f.what)
          .Field("fix", f.fix)
          .EndObject();
      std::cout << w.text() << "\n";
    } else {
      std::cout << f.ToString() << "\n";
    }
  }
  if (!args.Has("json")) {
    std::cout << (findings.empty() ? "ok"
                                   : std::to_string(findings.size()) +
                                         (findings.size() == 1 ? " finding" : " findings"))
              << ": " << model.path() << "\n";
  }
  return findings.empty() ? 0 : 1;
}

}  // namespace

Command CheckCommand() {
  return InEnvironment(
      {.name = "check",
       .summary = "validates a model and its training_info; exit 1 if anything is wrong",
       .arguments = {{"MODEL", "an .onnx file"}},
       .flags = {Flag::Switch("json", "print one JSON object per finding")},
       .example = "onward check trainable.onnx"},
      RunCheck);
}

}  // namespace onward
