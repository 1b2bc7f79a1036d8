// SPDX-License-Identifier: Apache-2.0
// onward export: writing models made from models.
#include "training_info/export.h"

#include <iostream>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/commands.h"
#include "cli/compute_flags.h"
#include "cli/write_checked.h"
#include "core/base/status.h"
#include "core/onnx_io/model.h"
#include "trainer/prepare/raw_export.h"
#include "trainer/prepare/stored.h"
#include "trainer/run/class_labels.h"
#include "trainer/run/judging.h"
#include "training_info/adapters/files.h"
#include "training_info/author.h"
#include "training_info/averages.h"
#include "training_info/portable_step.h"
#include "training_info/step.h"

namespace onward {
namespace {

void Note(const std::string& text) { std::cerr << "note: " << text << "\n"; }

// Nothing of an original's bytes tells which columns and names its numbers stand for: those of a
// table or a text go along.
absl::Status KeepTable(const Model& trained, Model* out) {
  ONWARD_ASSIGN_OR_RETURN(const Preparation preparation, StoredPreparation(trained));
  if (!preparation.table && !preparation.text) return absl::OkStatus();
  StorePreparation(preparation, out);
  ONWARD_ASSIGN_OR_RETURN(const std::vector<std::string> classes, StoredClasses(trained));
  StoreClasses(classes, out);
  return absl::OkStatus();
}

absl::StatusOr<Model> Like(const Args& args, const Model& model, const Environment& environment) {
  ONWARD_ASSIGN_OR_RETURN(Model original, ReadModel(args.String("like")));
  ONWARD_ASSIGN_OR_RETURN(Model out, ExportLike(model, original, environment));
  ONWARD_RETURN_IF_ERROR(KeepTable(model, &out));
  Model as_inference = out;
  ONWARD_ASSIGN_OR_RETURN(const ModeChange change, ToInferenceMode(&as_inference));
  if (change.any()) {
    Note(absl::StrCat("'", original.path(), "' is in training mode (", change.ToString(),
                      ") and stays so; without --like inference mode is written"));
  }
  return out;
}

absl::StatusOr<Model> Plain(const Model& model) {
  ONWARD_ASSIGN_OR_RETURN(PlainModel plain, ExportPlain(model));
  if (plain.change.any()) {
    Note(absl::StrCat("'", model.path(), "' is in training mode (", plain.change.ToString(),
                      "); inference mode is written"));
  }
  return std::move(plain.model);
}

// What --merge says of adapters: into the weights, or left as nodes.
absl::StatusOr<Model> Merge(const Args& args, const Model& model, const Environment& environment) {
  const std::string how = args.String("merge");
  if (how == "none") return model;
  ONWARD_ASSIGN_OR_RETURN(
      MergedModel done,
      WithAdaptersMerged(model, how == "auto" ? MergeMode::kFloat : MergeMode::kDequantize,
                         environment));
  if (!done.merged.merged.empty())
    Note(absl::StrCat("adapters merged into their weights: ", done.merged.merged.size()));
  if (!done.merged.kept.empty()) {
    Note(absl::StrCat(
        "adapters kept as nodes, because their weights are quantized: ", done.merged.kept.size(),
        " (", done.merged.kept.front(), done.merged.kept.size() > 1 ? ", ..." : "",
        "); --merge dequantize makes these weights float"));
  }
  return std::move(done.model);
}

// The adapters to a file, and the model without them.
absl::StatusOr<Model> TakeApart(const Args& args, const Model& model,
                                const Environment& environment) {
  ONWARD_ASSIGN_OR_RETURN(const Model adapters, AdaptersApart(model));
  ONWARD_RETURN_IF_ERROR(WriteModel(adapters, args.String("adapters"), ReadWriteFlags(args)));
  std::cout << args.String("adapters") << ": written\n";
  ONWARD_ASSIGN_OR_RETURN(const Model plain, Plain(model));
  ONWARD_ASSIGN_OR_RETURN(MergedModel base,
                          WithAdaptersMerged(plain, MergeMode::kDrop, environment));
  return std::move(base.model);
}

// What --raw and --names ask for, with what the trained file tells of itself.
absl::StatusOr<RawOptions> ReadRawFlags(const Args& args, const Model& trained) {
  RawOptions options;
  const std::vector<std::pair<std::string, RawForm>> forms = {{"columns", RawForm::kColumns},
                                                              {"matrix", RawForm::kMatrix},
                                                              {"nchw", RawForm::kNchw},
                                                              {"nhwc", RawForm::kNhwc}};
  for (const auto& [word, form] : forms) {
    if (args.String("raw") == word) options.form = form;
  }
  options.names = args.Has("names");
  ONWARD_ASSIGN_OR_RETURN(options.classes, StoredClasses(trained));
  ONWARD_ASSIGN_OR_RETURN(const Graph graph, InferenceGraph(trained));
  options.output = trained.Metadata(kMetaOutput);
  if (options.output.empty()) options.output = DefaultOutput(graph);
  const int64_t classes = static_cast<int64_t>(options.classes.size());
  options.scoring =
      ScoringOf(StoredLoss(trained).value_or(DefaultLoss(graph, options.output, classes)));
  return options;
}

// What --raw and --names add to a plain model.
absl::StatusOr<Model> Raw(const Args& args, const Model& trained, const Model& plain,
                          const Environment& environment) {
  if (!args.Has("raw") && !args.Has("names")) return plain;
  ONWARD_ASSIGN_OR_RETURN(const RawOptions raw, ReadRawFlags(args, trained));
  ONWARD_ASSIGN_OR_RETURN(const Preparation preparation, StoredPreparation(trained));
  return WithRawInputs(plain, preparation, raw, environment);
}

absl::StatusOr<Model> Exported(const Args& args, Model model, const Environment& environment) {
  if (args.Has("portable-step")) {
    return PortableStep(
        model, args.Has("entry") ? std::optional<int>(args.SmallInt("entry")) : std::nullopt,
        environment);
  }
  if (args.Has("adapters")) return TakeApart(args, model, environment);
  if (args.Has("apply")) {
    ONWARD_ASSIGN_OR_RETURN(const Model adapters, ReadModel(args.String("apply")));
    ONWARD_ASSIGN_OR_RETURN(const Model plain, Plain(model));
    ONWARD_ASSIGN_OR_RETURN(AppliedModel applied, WithAdapters(plain, adapters, environment));
    for (const std::string& note : applied.notes) Note(note);
    model = std::move(applied.model);
  }
  if (args.Has("like")) return Like(args, model, environment);
  ONWARD_ASSIGN_OR_RETURN(const Model plain, Plain(model));
  ONWARD_ASSIGN_OR_RETURN(const Model merged, Merge(args, plain, environment));
  return Raw(args, model, merged, environment);
}

absl::StatusOr<int> RunExport(const Args& args, const Environment& environment) {
  ONWARD_ASSIGN_OR_RETURN(Model model, ReadModel(args.Argument("MODEL")));
  WarnOfTraining(model);
  if (args.Has("ema")) ONWARD_RETURN_IF_ERROR(UseAverages(&model));
  ONWARD_ASSIGN_OR_RETURN(const Model out, Exported(args, std::move(model), environment));
  if (!args.Has("output")) return 0;
  ONWARD_RETURN_IF_ERROR(
      WriteChecked(out, args.String("output"), ReadWriteFlags(args), environment));
  std::cout << args.String("output") << ": written\n";
  return 0;
}

absl::Status CheckExportFlags(const Args& args) {
  if (!args.Has("output") && !args.Has("adapters")) {
    return absl::InvalidArgumentError("-o OUT says where to write");
  }
  // What each of these writes is another thing.
  std::vector<std::string> given;
  for (const char* flag : {"portable-step", "adapters", "apply"}) {
    if (args.Has(flag)) given.push_back(absl::StrCat("--", flag));
  }
  if (args.Has("like") && !args.Has("apply")) given.push_back("--like");
  if (args.Has("merge") && !args.Has("apply")) given.push_back("--merge");
  if (given.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(absl::StrJoin(given, " and "), " do not go together: choose one"));
  }
  if (args.Has("entry") && !args.Has("portable-step")) {
    return absl::InvalidArgumentError(
        "--entry says which entry --portable-step writes: add --portable-step, or leave it out");
  }
  const bool raw = args.Has("raw") || args.Has("names");
  for (const char* other : {"like", "portable-step", "adapters"}) {
    if (raw && args.Has(other)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--raw and --names add nodes to the model, which --", other, " does not"));
    }
  }
  if (args.Has("like") && args.Has("merge")) {
    return absl::InvalidArgumentError("--like merges adapters: leave --merge out");
  }
  return absl::OkStatus();
}

}  // namespace

Command ExportCommand() {
  return InEnvironment(
      {.name = "export",
       .summary = "writes the plain inference model with the trained weights",
       .arguments = {{"MODEL", "a trained model; with --apply one to put adapters on"}},
       .flags =
           {Flag::Value("output", "OUT", "the file to write").Short('o').Names(FlagNames::kResult),
            OverwriteFlag(), ExternalDataFlag(),
            Flag::Value(
                "like", "ORIGINAL",
                "put the weights into a copy of this file (its opset, names and bytes kept)")
                .Names(FlagNames::kModel),
            Flag::Choice("merge", {"auto", "dequantize", "none"},
                         "what becomes of adapters (LoRA): into the weights where these are "
                         "float; into quantized ones too, as float; left as nodes")
                .Default("auto"),
            Flag::Value("adapters", "FILE",
                        "write the adapters alone, an ONNX file without nodes; OUT, if given, "
                        "is the model without them")
                .Names(FlagNames::kResult),
            Flag::Value("apply", "FILE", "put these adapters on MODEL, then merge")
                .Names(FlagNames::kModel),
            Flag::Choice("raw", {"columns", "matrix", "nchw", "nhwc"},
                         "a model that takes raw data: a table with one input per column, or "
                         "with its numbers as one matrix; pictures as bytes"),
            Flag::Switch("names", "one more output, the name of the class"),
            Flag::Switch("ema", "with the averages of the weights in their place"),
            Flag::Switch("portable-step",
                         "write the training step as plain ONNX operators instead: an iteration "
                         "of all entries, or --entry"),
            EntryFlag("with --portable-step: this entry only (from 0)")},
       .example = "onward export trained.onnx -o model.onnx --like original.onnx\n"
                  "onward export trained.onnx -o served.onnx --raw columns --names\n"
                  "onward export trainable.onnx -o step.onnx --portable-step\n"
                  "onward export trained.onnx --adapters adapters.onnx\n"
                  "onward export original.onnx --apply adapters.onnx -o model.onnx",
       .check = CheckExportFlags},
      RunExport);
}

}  // namespace onward
