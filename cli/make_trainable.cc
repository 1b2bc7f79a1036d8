// SPDX-License-Identifier: Apache-2.0
// onward make-trainable: inference model -> model with TrainingInfoProto.
#include <algorithm>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "cli/author_flags.h"
#include "cli/commands.h"
#include "cli/compute_flags.h"
#include "cli/write_checked.h"
#include "core/base/status.h"
#include "trainer/report/log/jsonl.h"
#include "trainer/run/class_labels.h"

namespace onward {
namespace {

absl::StatusOr<int> RunMakeTrainable(const Args& args, const Environment& environment) {
  ONWARD_ASSIGN_OR_RETURN(Model model, ReadModel(args.Argument("MODEL")));
  AuthorOptions options;
  ONWARD_RETURN_IF_ERROR(ReadAuthorFlags(args, &options));
  options.seed = static_cast<uint64_t>(args.Int("seed"));
  options.free_batch = args.Has("free-batch");
  // A new head is one for other classes.
  if (args.Has("head")) StoreClasses({}, &model);
  ONWARD_ASSIGN_OR_RETURN(AuthorResult result, MakeTrainable(model, options, environment));
  result.model.set_path(model.path());
  StoreAuthorFlags(args, &result.model);
  if (const std::string note = TwiceNote(model, options); !note.empty())
    result.notes.push_back(note);
  ONWARD_RETURN_IF_ERROR(
      WriteChecked(result.model, args.String("output"), ReadWriteFlags(args), environment));
  if (args.Has("json")) {
    JsonWriter w;
    w.BeginObject().Field("output", args.String("output")).Key("trained").Values(result.trained);
    w.Key("left").BeginArray();
    for (const WeightDecision& d : result.decisions) {
      if (std::find(result.trained.begin(), result.trained.end(), d.name) == result.trained.end())
        w.BeginObject().Field("name", d.name).Field("reason", d.reason).EndObject();
    }
    w.EndArray().Key("notes").Values(result.notes).EndObject();
    std::cout << w.text() << "\n";
    return 0;
  }
  for (const std::string& note : result.notes) std::cerr << "note: " << note << "\n";
  std::cout << args.String("output") << ": " << result.trained.size()
            << " weights will be trained; next: onward train " << args.String("output")
            << " --data SPEC -o OUT\n";
  return 0;
}

}  // namespace

Command MakeTrainableCommand() {
  std::vector<Flag> flags = {Flag::Value("output", "OUT", "the trainable model")
                                 .Short('o')
                                 .Names(FlagNames::kResult)
                                 .Required(),
                             OverwriteFlag(), ExternalDataFlag()};
  for (Flag& f : AuthorFlags()) flags.push_back(std::move(f));
  flags.push_back(Flag::Count("seed", "S", "of new weights", 0).Default("0"));
  flags.push_back(Flag::Switch("free-batch", "make a fixed batch size variable"));
  flags.push_back(Flag::Switch("json", "print one JSON object"));
  return InEnvironment(
      {.name = "make-trainable",
       .summary = "writes a model that carries its training (TrainingInfoProto)",
       .arguments = {{"MODEL", "an inference model"}},
       .flags = std::move(flags),
       .example =
           "onward make-trainable model.onnx -o trainable.onnx --loss cross_entropy --optimizer "
           "adamw:lr=1e-3",
       .check = CheckAuthorFlags},
      RunMakeTrainable);
}

}  // namespace onward
