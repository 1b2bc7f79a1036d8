// SPDX-License-Identifier: Apache-2.0
// onward export, onward gradient: writing models made from models.
#include "training_info/export.h"

#include <algorithm>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "autograd/differentiate.h"
#include "cli/commands.h"
#include "cli/write_checked.h"
#include "core/base/status.h"
#include "core/graph/infer.h"
#include "core/graph/inline.h"
#include "core/graph/verify.h"
#include "core/onnx_io/model.h"
#include "training_info/combine.h"
#include "training_info/import.h"
#include "training_info/library.h"
#include "training_info/lower.h"

namespace onward {
namespace {

constexpr double kHighestOrder = 16;  // graphs grow with each

// The graph as it is written: functions inlined, opset at least 18.
absl::StatusOr<Graph> WritableGraph(const Graph& graph) {
  ONWARD_ASSIGN_OR_RETURN(Graph inlined, InlineFunctions(graph));
  ONWARD_RETURN_IF_ERROR(FindingsToStatus(CheckGraph(inlined)));
  return RaiseOpset(inlined, kOldestWrittenOpset);
}

// One training step as an ordinary model: the variables are inputs with their
// present values as defaults, their new values are outputs.
absl::StatusOr<Model> PortableStep(const Model& model) {
  ONWARD_ASSIGN_OR_RETURN(TrainingSpec spec, ImportTraining(model));
  if (spec.entries.size() != 1) {
    return absl::UnimplementedError(absl::StrCat("--portable-step: '", model.path(), "' has ",
                                                 spec.entries.size(),
                                                 " training entries; exactly one is supported"));
  }
  ONWARD_ASSIGN_OR_RETURN(Graph combined, Combine(spec, 0));
  ONWARD_ASSIGN_OR_RETURN(Graph graph, WritableGraph(combined));
  ONWARD_ASSIGN_OR_RETURN(graph, ExpandGradients(graph));
  ONWARD_ASSIGN_OR_RETURN(graph, InlineOwnFunctions(graph, /*optimizers=*/true));
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

absl::StatusOr<int> RunExport(const Args& args) {
  ONWARD_ASSIGN_OR_RETURN(Model model, ReadModel(args.Argument("MODEL")));
  Model out;
  if (args.Has("portable-step")) {
    ONWARD_ASSIGN_OR_RETURN(out, PortableStep(model));
  } else if (args.Has("like")) {
    ONWARD_ASSIGN_OR_RETURN(Model original, ReadModel(args.String("like")));
    ONWARD_ASSIGN_OR_RETURN(out, ExportLike(model, original));
  } else {
    out = InferenceOnly(model);
  }
  ONWARD_RETURN_IF_ERROR(WriteChecked(out, args.String("output")));
  std::cout << args.String("output") << ": written\n";
  return 0;
}

absl::StatusOr<int> RunGradient(const Args& args) {
  ONWARD_ASSIGN_OR_RETURN(Model model, ReadModel(args.Argument("MODEL")));
  ONWARD_ASSIGN_OR_RETURN(Graph graph, InferenceGraph(model));
  ONWARD_ASSIGN_OR_RETURN(graph, WritableGraph(graph));
  ONWARD_ASSIGN_OR_RETURN(graph, ExpandGradients(graph));
  const std::vector<std::string> xs = absl::StrSplit(args.String("wrt"), ',', absl::SkipEmpty());
  DifferentiateOptions options;
  options.operators = &Operators();
  std::vector<std::string> ys = {args.String("of")};
  std::vector<std::string> results;
  // Values in one list are held apart: where one depends on another, it takes a
  // list for each to get whole derivatives.
  const bool apart = std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    return std::any_of(node.outputs.begin(), node.outputs.end(), [&](const std::string& out) {
      return std::find(xs.begin(), xs.end(), out) != xs.end();
    });
  });
  for (int64_t order = 1; order <= args.Int("order"); ++order) {
    std::vector<std::string> next;
    for (size_t i = 0; i < xs.size(); ++i) {
      // The first order differentiates one y by all xs, later ones the gradient of
      // each x by that x.
      const bool at_once = order == 1 && !apart;
      const std::vector<std::string> by = at_once ? xs : std::vector<std::string>{xs[i]};
      auto gradients = Differentiate(graph, order == 1 ? ys[0] : ys[i], by, options);
      if (!gradients.ok())
        return Annotate(gradients.status(), absl::StrCat("'", model.path(), "'"));
      graph = std::move(gradients->graph);
      next.insert(next.end(), gradients->values.begin(), gradients->values.end());
      if (at_once) break;
    }
    ys = next;
    results.insert(results.end(), next.begin(), next.end());
  }
  ONWARD_ASSIGN_OR_RETURN(graph, InlineOwnFunctions(graph));
  for (const std::string& name : results) {
    const ValueType* type = graph.TypeOf(name);
    graph.outputs.push_back({name, type == nullptr ? ValueType{} : *type});
  }
  std::vector<std::string> wanted;
  for (const NamedType& out : graph.outputs) wanted.push_back(out.name);
  Prune(&graph, wanted);
  const Model out =
      InferenceOnly(RebuildLike(model, graph, std::max(model.ir_version(), kWrittenIr)));
  ONWARD_RETURN_IF_ERROR(WriteChecked(out, args.String("output")));
  std::cout << args.String("output") << ": outputs";
  for (const std::string& name : results) std::cout << " " << name;
  std::cout << "\n";
  return 0;
}

}  // namespace

Command ExportCommand() {
  return {
      .name = "export",
      .summary = "writes the plain inference model with the trained weights",
      .arguments = {{"MODEL", "a trained model"}},
      .flags = {Flag::Value("output", "OUT", "the file to write")
                    .Short('o')
                    .Names(FlagNames::kResult)
                    .Required(),
                OverwriteFlag(),
                Flag::Value(
                    "like", "ORIGINAL",
                    "put the weights into a copy of this file (its opset, names and bytes kept)")
                    .Names(FlagNames::kModel),
                Flag::Switch("portable-step",
                             "write the training step as plain ONNX operators instead")},
      .example = "onward export trained.onnx -o model.onnx --like original.onnx",
      .run = RunExport};
}

Command GradientCommand() {
  return {
      .name = "gradient",
      .summary = "writes a model that also outputs gradients, in standard operators",
      .arguments = {{"MODEL", "an .onnx file"}},
      .flags = {Flag::Value("of", "Y", "the value to differentiate (summed if it is not a scalar)")
                    .Required(),
                Flag::Value("wrt", "A,B", "inputs, initializers or inner values").Required(),
                Flag::Count("order", "K", "2 differentiates each gradient again", 1, kHighestOrder)
                    .Default("1"),
                Flag::Value("output", "OUT", "the file to write")
                    .Short('o')
                    .Names(FlagNames::kResult)
                    .Required(),
                OverwriteFlag()},
      .example = "onward gradient model.onnx --of y --wrt x,fc1.weight -o gradient.onnx",
      .run = RunGradient};
}

}  // namespace onward
