// SPDX-License-Identifier: Apache-2.0
// onward export: writing models made from models.
#include "training_info/export.h"

#include <algorithm>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/compute_flags.h"
#include "cli/write_checked.h"
#include "core/base/status.h"
#include "core/graph/verify.h"
#include "core/onnx_io/model.h"
#include "trainer/prepare/raw_export.h"
#include "trainer/prepare/stored.h"
#include "trainer/run/class_labels.h"
#include "trainer/run/evaluate.h"
#include "training_info/author.h"
#include "training_info/combine.h"
#include "training_info/import.h"
#include "training_info/lower.h"
#include "training_info/step.h"

namespace onward {
namespace {

// One training step as an ordinary model: the variables are inputs with their
// present values as defaults, their new values are outputs.
absl::StatusOr<Model> PortableStep(const Model& model, const Environment& environment) {
  ONWARD_ASSIGN_OR_RETURN(TrainingSpec spec, ImportTraining(model));
  if (spec.entries.size() != 1) {
    return absl::UnimplementedError(absl::StrCat("--portable-step: '", model.path(), "' has ",
                                                 spec.entries.size(),
                                                 " training entries; exactly one is supported"));
  }
  ONWARD_ASSIGN_OR_RETURN(Graph combined, Combine(spec, 0));
  ONWARD_ASSIGN_OR_RETURN(Graph graph, WritableGraph(combined, environment));
  ONWARD_ASSIGN_OR_RETURN(graph, ExpandGradients(graph, environment));
  ONWARD_ASSIGN_OR_RETURN(graph, InlineOwnFunctions(graph, environment, /*optimizers=*/true));
  for (const std::string& name : spec.StateVariables()) {
    if (graph.IsInput(name)) continue;
    auto it = graph.initializers.find(name);
    if (it == graph.initializers.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--portable-step: a binding of '", model.path(), "' names '", name,
                       "', which is no initializer; `onward check` lists all such findings"));
    }
    graph.inputs.push_back({name, ValueType::Of(it->second.dtype(), it->second.shape())});
  }
  std::vector<std::string> wanted;
  for (const NamedType& out : graph.outputs) wanted.push_back(out.name);
  Prune(&graph, wanted);
  return InferenceOnly(RebuildLike(model, graph, std::max(model.ir_version(), kWrittenIr)));
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

absl::Status CheckExportFlags(const Args& args) {
  if (!args.Has("raw") && !args.Has("names")) return absl::OkStatus();
  for (const char* other : {"like", "portable-step"}) {
    if (args.Has(other)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--raw and --names add nodes to the model, which --", other, " does not"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<int> RunExport(const Args& args, const Environment& environment) {
  ONWARD_ASSIGN_OR_RETURN(Model model, ReadModel(args.Argument("MODEL")));
  WarnOfTraining(model);
  Model out;
  if (args.Has("portable-step")) {
    ONWARD_ASSIGN_OR_RETURN(out, PortableStep(model, environment));
  } else if (args.Has("like")) {
    ONWARD_ASSIGN_OR_RETURN(Model original, ReadModel(args.String("like")));
    ONWARD_ASSIGN_OR_RETURN(out, ExportLike(model, original, environment));
    Model as_inference = out;
    ONWARD_ASSIGN_OR_RETURN(const ModeChange change, ToInferenceMode(&as_inference));
    if (change.any()) {
      std::cerr << "note: '" << original.path() << "' is in training mode (" << change.ToString()
                << ") and stays so; without --like inference mode is written\n";
    }
  } else {
    ONWARD_ASSIGN_OR_RETURN(PlainModel plain, ExportPlain(model));
    if (plain.change.any()) {
      std::cerr << "note: '" << model.path() << "' is in training mode (" << plain.change.ToString()
                << "); inference mode is written\n";
    }
    out = std::move(plain.model);
    if (args.Has("raw") || args.Has("names")) {
      ONWARD_ASSIGN_OR_RETURN(const RawOptions raw, ReadRawFlags(args, model));
      ONWARD_ASSIGN_OR_RETURN(const Preparation preparation, StoredPreparation(model));
      ONWARD_ASSIGN_OR_RETURN(out, WithRawInputs(out, preparation, raw, environment));
    }
  }
  ONWARD_RETURN_IF_ERROR(
      WriteChecked(out, args.String("output"), ReadWriteFlags(args), environment));
  std::cout << args.String("output") << ": written\n";
  return 0;
}

}  // namespace

Command ExportCommand() {
  return InEnvironment(
      {.name = "export",
       .summary = "writes the plain inference model with the trained weights",
       .arguments = {{"MODEL", "a trained model"}},
       .flags = {Flag::Value("output", "OUT", "the file to write")
                     .Short('o')
                     .Names(FlagNames::kResult)
                     .Required(),
                 OverwriteFlag(), ExternalDataFlag(),
                 Flag::Value(
                     "like", "ORIGINAL",
                     "put the weights into a copy of this file (its opset, names and bytes kept)")
                     .Names(FlagNames::kModel),
                 Flag::Choice("raw", {"columns", "matrix", "nchw", "nhwc"},
                              "a model that takes raw data: a table with one input per column, or "
                              "with its numbers as one matrix; pictures as bytes"),
                 Flag::Switch("names", "one more output, the name of the class"),
                 Flag::Switch("portable-step",
                              "write the training step as plain ONNX operators instead")},
       .example = "onward export trained.onnx -o model.onnx --like original.onnx\n"
                  "onward export trained.onnx -o served.onnx --raw columns --names",
       .check = CheckExportFlags},
      RunExport);
}

}  // namespace onward
