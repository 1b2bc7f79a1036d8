// SPDX-License-Identifier: Apache-2.0
#include "cli/author_flags.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status.h"

namespace onward {
namespace {

constexpr double kMostClasses = 10000000;

}  // namespace

std::vector<Flag> ChoiceFlags() {
  return {
      Flag::Value("loss", "LOSS",
                  absl::StrCat(absl::StrJoin(LossNames(), ", "),
                               "; options after a colon, as in cross_entropy:ignore_index=-100")),
      Flag::Value("train", "PATTERN",
                  "train only weights with such names ('*' matches anything); a plain name takes "
                  "what is no weight, too")
          .Repeated(),
      Flag::Value("freeze", "PATTERN", "do not train these").Repeated(),
      Flag::Value("train-output", "NAME",
                  "the model output that the loss compares; the first float one by default")};
}

std::vector<Flag> AuthorFlags() {
  std::vector<Flag> flags = ChoiceFlags();
  std::vector<Flag> more = {
      Flag::Value("optimizer", "OPT",
                  absl::StrCat(absl::StrJoin(OptimizerNames(), ", "),
                               ", as in adamw:lr=1e-3,weight_decay=0.01"))
          .Default("adamw"),
      Flag::Value("schedule", "S", "learning rate over steps, as in cosine:warmup=100,total=1000")
          .Default("constant"),
      Flag::Number("clip-norm", "X", "scale gradients down to this global norm", 0, 1e30),
      Flag::Count("head", "N", "replace the last classifier by one with N classes", 1,
                  kMostClasses),
      Flag::Choice("gradient", {"op", "expanded"},
                   "one Gradient node, or plain operators any runtime executes")
          .Default("op"),
      Flag::Value("label", "NAME", "name of the label input").Default("label")};
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

absl::Status ReadChoiceFlags(const Args& args, AuthorOptions* options) {
  if (args.Has("loss")) {
    ONWARD_ASSIGN_OR_RETURN(options->loss, ParseLoss(args.String("loss")));
  }
  options->train = args.All("train");
  options->freeze = args.All("freeze");
  options->output = args.String("train-output");
  return absl::OkStatus();
}

absl::Status ReadAuthorFlags(const Args& args, AuthorOptions* options) {
  ONWARD_RETURN_IF_ERROR(ReadChoiceFlags(args, options));
  ONWARD_ASSIGN_OR_RETURN(options->optimizer, ParseOptimizer(args.String("optimizer")));
  ONWARD_ASSIGN_OR_RETURN(options->schedule, ParseSchedule(args.String("schedule")));
  if (args.Has("clip-norm")) options->clip_norm = args.Double("clip-norm");
  if (args.Has("head")) options->head_classes = args.Int("head");
  options->gradient =
      args.String("gradient") == "op" ? GradientForm::kOperator : GradientForm::kExpanded;
  options->label = args.String("label");
  return absl::OkStatus();
}

absl::Status CheckAuthorFlags(const Args& args) {
  AuthorOptions ignored;
  return ReadAuthorFlags(args, &ignored);
}

std::string TwiceNote(const Model& model, const AuthorOptions& options) {
  const bool binary = options.loss.name == "bce";
  if ((!binary && options.loss.name != "cross_entropy") || options.loss.options.contains("logits"))
    return "";
  auto graph = InferenceGraph(model);
  if (!graph.ok() || graph->outputs.empty()) return "";
  const std::string output = options.output.empty() ? DefaultOutput(*graph) : options.output;
  const std::string last = LastOperator(*graph, output);
  const bool fits = binary ? last == "Sigmoid" : last == "Softmax" || last == "LogSoftmax";
  if (!fits) return "";
  return absl::StrCat("output '", output, "' is already a ", last, ", and ", options.loss.name,
                      " applies ", binary ? "sigmoid" : "softmax", " to it again; ",
                      options.loss.name,
                      ":logits=", last == "LogSoftmax" ? "log_probabilities" : "probabilities",
                      " takes it for what it is");
}

}  // namespace onward
