// SPDX-License-Identifier: Apache-2.0
// onward eval.
#include <cmath>
#include <iostream>
#include <utility>

#include "absl/strings/str_format.h"
#include "cli/commands.h"
#include "cli/compute_flags.h"
#include "cli/open_data.h"
#include "core/base/status.h"
#include "trainer/report/log/jsonl.h"
#include "trainer/report/numbers/part_figures.h"
#include "trainer/run/class_labels.h"
#include "trainer/run/evaluate.h"
#include "training_info/averages.h"
#include "training_info/import.h"
#include "training_info/lower.h"
#include "training_info/step.h"

namespace onward {
namespace {

absl::Status CheckEvalFlags(const Args& args) {
  for (const std::string& loss : args.All("loss")) {
    ONWARD_RETURN_IF_ERROR(ParseLossTerm(loss).status());
  }
  return absl::OkStatus();
}

// What to evaluate: the losses asked for, else those that the file was trained with, else one
// that goes with the labels.
absl::StatusOr<Graph> GraphToEvaluate(const Args& args, const Model& model,
                                      const Environment& environment, EvaluateOptions* options) {
  for (const std::string& loss : args.All("loss")) {
    ONWARD_ASSIGN_OR_RETURN(options->terms.emplace_back(), ParseLossTerm(loss));
  }
  const bool chosen = args.Has("loss") || args.Has("train-output");
  if (!chosen && model.has_training()) {
    ONWARD_ASSIGN_OR_RETURN(const TrainingSpec spec, ImportTraining(model, ImportMode::kBoth));
    const bool readable = !spec.entries.empty() && spec.entries[0].readable;
    if (readable && StoredLosses(model).has_value()) {
      return EvaluationGraph(model, spec, environment, options);
    }
  }
  options->output =
      args.Has("train-output") ? args.String("train-output") : model.Metadata(kMetaOutput);
  if (const auto stored = StoredLosses(model); stored.has_value() && options->terms.empty()) {
    LossTerm first = stored->parts[0].term;
    first.weight = 1;
    first.outputs.clear();
    if (first.file.empty()) options->terms.push_back(std::move(first));
  }
  return RunnableGraph(model, environment);
}

void PrintJson(const Model& model, const Evaluation& e) {
  JsonWriter w;
  w.BeginObject().Field("model", model.path()).Field("examples", e.examples).Field("loss", e.loss);
  if (!std::isnan(e.perplexity)) w.Field("perplexity", e.perplexity);
  if (!std::isnan(e.accuracy)) w.Field("accuracy", e.accuracy).Field("wrong", e.wrong_total);
  if (!std::isnan(e.rmse)) w.Field("mae", e.mae).Field("rmse", e.rmse);
  if (e.parts.size() > 1) WriteParts(e.parts, &w.Key("parts"));
  std::cout << w.EndObject().text() << "\n";
}

void PrintText(const Model& model, const Evaluation& e) {
  if (e.parts.size() > 1) {
    std::cout << absl::StrFormat("%s: loss %.6g over %d examples\n", model.path(), e.loss,
                                 e.examples);
    for (const std::string& line : PartLines(e)) std::cout << "  " << line << "\n";
  } else if (!std::isnan(e.accuracy)) {
    std::cout << absl::StrFormat("%s: %s (%d of %d right)\n", model.path(), ShortFigures(e),
                                 e.judged - e.wrong_total, e.judged);
  } else if (!std::isnan(e.rmse)) {
    std::cout << absl::StrFormat("%s: loss %.6g, MAE %.6g, RMSE %.6g over %d examples\n",
                                 model.path(), e.loss, e.mae, e.rmse, e.examples);
  } else {
    std::cout << absl::StrFormat("%s: loss %.6g over %d examples\n", model.path(), e.loss,
                                 e.examples);
  }
}

// Whether the figures are what was asked for; an error where there is no such figure.
absl::StatusOr<int> Verdict(const Args& args, const Evaluation& e) {
  if (args.Has("at-least") && std::isnan(e.accuracy)) {
    return absl::InvalidArgumentError(
        "--at-least asks for an accuracy, and there is none: the model gives numbers, not classes; "
        "--at-most E asks for an RMSE of E or less");
  }
  if (args.Has("at-most") && std::isnan(e.rmse)) {
    return absl::InvalidArgumentError(
        "--at-most asks for an RMSE, and there is none: the model gives classes, not numbers; "
        "--at-least A asks for an accuracy of A or more");
  }
  bool met = true;
  if (args.Has("at-least") && e.accuracy < args.Double("at-least")) {
    std::cerr << absl::StrFormat("accuracy %.4f is below --at-least %s\n", e.accuracy,
                                 args.String("at-least"));
    met = false;
  }
  if (args.Has("at-most") && e.rmse > args.Double("at-most")) {
    std::cerr << absl::StrFormat("RMSE %.6g is above --at-most %s\n", e.rmse,
                                 args.String("at-most"));
    met = false;
  }
  return met ? 0 : 1;
}

absl::StatusOr<int> RunEval(const Args& args, const Environment& environment) {
  WatchInterrupts();
  ONWARD_ASSIGN_OR_RETURN(Model model, ReadModel(args.Argument("MODEL")));
  if (args.Has("ema")) ONWARD_RETURN_IF_ERROR(UseAverages(&model));
  ONWARD_ASSIGN_OR_RETURN(std::shared_ptr<const Dataset> data,
                          OpenDataFor(model, args.String("data"), Split::kTest));
  for (const std::string& note : data->notes()) std::cerr << "note: " << note << "\n";
  EvaluateOptions options;
  ONWARD_ASSIGN_OR_RETURN(Graph graph, GraphToEvaluate(args, model, environment, &options));
  if (args.Has("batch")) options.batch = args.Int("batch");
  options.looked_at = std::as_const(model).weights().PageReleaser();
  ONWARD_ASSIGN_OR_RETURN(options.classes, StoredClasses(model));
  ONWARD_ASSIGN_OR_RETURN(std::unique_ptr<Evaluator> evaluator,
                          Evaluator::Create(std::move(graph), data, options, environment));
  if (!evaluator->note().empty()) std::cerr << "note: " << evaluator->note() << "\n";
  ONWARD_ASSIGN_OR_RETURN(const Evaluation e, evaluator->Run(nullptr, &Interrupted()));
  if (args.Has("json")) {
    PrintJson(model, e);
  } else {
    PrintText(model, e);
  }
  return Verdict(args, e);
}

}  // namespace

Command EvalCommand() {
  return Computing(
      {.name = "eval",
       .summary = "losses and accuracy (or error) over a data set",
       .arguments = {{"MODEL", "an .onnx file"}},
       .flags =
           {Flag::Value("data", "SPEC", DataSpecHelp()).Names(FlagNames::kData).Required(),
            Flag::Value("loss", "LOSS",
                        "which losses to report, as `train` takes them; by default those that it "
                        "was trained with, or one from the labels")
                .Repeated(),
            Flag::Value("train-output", "NAME",
                        "the model output to judge; the first float one by default"),
            Flag::Count("batch", "N",
                        "examples at a time; by default 256, fewer where they are large", 1),
            Flag::Switch("ema", "with the averages of the weights in their place"),
            Flag::Number("at-least", "A", "exit 1 if the accuracy (0 to 1) is below this", 0, 1),
            Flag::Number("at-most", "E", "exit 1 if the RMSE of numbers is above this", 0, 1e30),
            Flag::Switch("json", "print one JSON object")},
       .example = "onward eval model.onnx --data mnist:DIR",
       .check = CheckEvalFlags},
      RunEval);
}

}  // namespace onward
