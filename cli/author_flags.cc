// SPDX-License-Identifier: Apache-2.0
#include "cli/author_flags.h"

#include <array>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/flag_meaning.h"
#include "core/base/json.h"
#include "core/base/status.h"
#include "training_info/loss_parts.h"
#include "training_info/rate.h"

namespace onward {
namespace {

constexpr double kMostClasses = 10000000;
constexpr double kMostCalls = 1e9;
constexpr double kMostDecay = 0.9999999;

absl::Status ReadLosses(const std::vector<std::string>& texts, AuthorOptions* options) {
  std::vector<LossTerm> terms;
  for (const std::string& text : texts) {
    ONWARD_ASSIGN_OR_RETURN(terms.emplace_back(), ParseLossTerm(text));
  }
  if (terms[0].file.empty()) options->loss = terms[0].spec;
  const bool plain = terms.size() == 1 && terms[0].weight == 1 && terms[0].file.empty() &&
                     terms[0].outputs.empty();
  if (!plain) options->losses = std::move(terms);
  return absl::OkStatus();
}

std::string FlagText(const Flag& flag, const std::string& value) {
  return flag.placeholder.empty() ? absl::StrCat("--", flag.name)
                                  : absl::StrCat("--", flag.name, "=", value);
}

// A flag with all its values, in the order of the line.
struct GivenFlag {
  Flag flag;
  std::vector<std::string> values;
  std::vector<std::string> texts() const {
    std::vector<std::string> texts;
    for (const std::string& value : values) texts.push_back(FlagText(flag, value));
    return texts;
  }
};
// --balance, which not every command has, is one where it weighs classes.
std::vector<GivenFlag> GivenAuthorFlags(const Args& args) {
  std::vector<GivenFlag> given;
  for (const Flag& flag : AuthorFlags()) {
    if (flag.name != "schedule" && args.Has(flag.name))
      given.push_back({flag, args.All(flag.name)});
  }
  if (WeighsClasses(args)) given.push_back({Flag::Value("balance", "HOW", ""), {"weights"}});
  return given;
}

// Whether all values of a flag are those that made a file. The first group or adapter that means a
// weight counts, and losses and their labels go by their number.
bool IsAsMade(const GivenFlag& given, const std::vector<std::string>& known) {
  const auto meaning = [&](const std::string& value) {
    return FlagText(given.flag, FlagMeaning(given.flag, value));
  };
  std::vector<std::string> meant, made;
  for (const std::string& value : given.values) meant.push_back(meaning(value));
  for (const std::string& text : known) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
    if (parts.first == absl::StrCat("--", given.flag.name)) made.push_back(meaning(parts.second));
  }
  if (absl::c_linear_search(std::array{"group", "lora", "loss", "label"}, given.flag.name)) {
    return meant == made;
  }
  return std::set<std::string>(meant.begin(), meant.end()) ==
         std::set<std::string>(made.begin(), made.end());
}

// Whether it says what goes without saying. (What an optimizer is by default depends on the model.)
bool IsUsual(const GivenFlag& given, const std::vector<std::string>& known) {
  const std::string begin = absl::StrCat("--", given.flag.name, "=");
  return given.flag.name != "optimizer" && !given.flag.otherwise.empty() &&
         absl::c_all_of(given.values,
                        [&](const std::string& value) {
                          return FlagMeaning(given.flag, value) ==
                                 FlagMeaning(given.flag, given.flag.otherwise);
                        }) &&
         absl::c_none_of(known, [&](const auto& text) { return absl::StartsWith(text, begin); });
}

// Whether the file says itself that it is trained so.
bool IsSaidBy(const Model& model, const GivenFlag& given) {
  if (given.flag.name == "optimizer") {
    const absl::StatusOr<RateRecipe> rate = StoredRate(model);
    return rate.ok() && FlagMeaning(given.flag, OptimizerChoiceText(rate->optimizer)) ==
                            FlagMeaning(given.flag, given.values.back());
  }
  if (given.flag.name != "loss") return false;
  const std::optional<LossParts> stored = StoredLosses(model);
  if (!stored.has_value() || stored->parts.size() != given.values.size()) return false;
  for (size_t i = 0; i < given.values.size(); ++i) {
    const LossTerm& part = stored->parts[i].term;
    absl::StatusOr<LossTerm> term = ParseLossTerm(given.values[i]);
    if (!term.ok()) return false;
    if (term->outputs.empty()) term->outputs = part.outputs;
    if (FlagMeaning(given.flag, LossTermText(*term)) !=
        FlagMeaning(given.flag, LossTermText(part))) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool WeighsClasses(const Args& args) {
  const auto given = args.Given().find("balance");
  return given != args.Given().end() && given->second.back() == "weights";
}

std::vector<Flag> ChoiceFlags() {
  return {
      Flag::Value(
          "loss", "LOSS",
          absl::StrCat(absl::StrJoin(LossNames(), ", "),
                       "; options after a colon, as in cross_entropy:ignore_index=-100; or "
                       "a file FILE.onnx. Repeated, weighted and at named outputs: 0.1*l1@mask "
                       "(`onward losses` tells more)"))
          .Repeated(),
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
      Flag::Value(
          "optimizer", "OPT",
          absl::StrCat(absl::StrJoin(OptimizerNames(), ", "),
                       ", as in adamw:lr=1e-3,weight_decay=0.01; or a file FILE.onnx (`onward "
                       "optimizers` tells more)"))
          .Default("adamw"),
      Flag::Value(
          "schedule", "S",
          absl::StrCat("learning rate over steps: ", absl::StrJoin(ScheduleNames(), ", "),
                       ", as in cosine:warmup=100,total=1000 (`onward schedules` tells more)"))
          .Default("constant"),
      Flag::Value("group", "PATTERN:OPTIONS",
                  "options of the optimizer for these weights alone, as in "
                  "'head.*:lr=10x,weight_decay=0'; the first group that matches counts")
          .Repeated(),
      Flag::Value("no-decay", "PATTERN",
                  "no weight decay for these; norm: for the weights of normalisations")
          .Repeated(),
      Flag::Value("lora", "PATTERN:OPTIONS",
                  "train low-rank adapters beside these weights of MatMul, Gemm and Conv, also "
                  "quantized ones, and nothing else but what --train names, as in "
                  "'attention.*:rank=8,alpha=16,dropout=0.1'")
          .Repeated(),
      Flag::Value("init", "INIT",
                  absl::StrCat("how --initialize and --head draw matrices: ",
                               absl::StrJoin(InitNames(), ", "),
                               ", as in kaiming_normal:mode=fan_out (`onward initializers` tells "
                               "more)"))
          .Default("default"),
      Flag::Switch("freeze-statistics",
                   "BatchNormalization uses its running statistics and keeps them"),
      Flag::Count("accumulate", "K",
                  "make one update of K steps, as of one batch of K times the size", 1, kMostCalls),
      Flag::Number("ema", "DECAY", "keep moving averages of the weights, as in 0.999", 0,
                   kMostDecay),
      Flag::Choice("precision", {"bfloat16", "float16"},
                   "compute products and convolutions in this type; weights are kept in float"),
      Flag::Number("clip-norm", "X", "scale gradients down to this global norm", 0, 1e30),
      Flag::Number("clip-value", "X", "limit each element of a gradient to [-X, X]", 0, 1e30),
      Flag::Number("clip-adaptive", "X",
                   "limit the gradient of each unit to X times the norm of its weights", 0, 1e30),
      Flag::Count("head", "N", "replace the last classifier by one with N classes", 1,
                  kMostClasses),
      Flag::Choice("gradient", {"op", "expanded"},
                   "one Gradient node, or plain operators any runtime executes")
          .Default("op"),
      Flag::Value("label", "NAME", "name of the label input; repeated for several losses")
          .Default("label")
          .Repeated()};
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

absl::Status ReadChoiceFlags(const Args& args, AuthorOptions* options) {
  if (args.Has("loss")) ONWARD_RETURN_IF_ERROR(ReadLosses(args.All("loss"), options));
  options->train = args.All("train");
  options->freeze = args.All("freeze");
  options->output = args.String("train-output");
  return absl::OkStatus();
}

absl::Status ReadAuthorFlags(const Args& args, AuthorOptions* options) {
  ONWARD_RETURN_IF_ERROR(ReadChoiceFlags(args, options));
  ONWARD_ASSIGN_OR_RETURN(OptimizerChoice optimizer,
                          ParseOptimizerChoice(args.String("optimizer")));
  options->optimizer = std::move(optimizer.spec);
  options->optimizer_file = std::move(optimizer.file);
  options->optimizer_numbers = std::move(optimizer.numbers);
  ONWARD_ASSIGN_OR_RETURN(options->schedule, ParseSchedule(args.String("schedule")));
  for (const std::string& group : args.All("group")) {
    ONWARD_ASSIGN_OR_RETURN(options->groups.emplace_back(), ParseGroup(group));
  }
  options->no_decay = args.All("no-decay");
  for (const std::string& lora : args.All("lora")) {
    ONWARD_ASSIGN_OR_RETURN(options->lora.emplace_back(), ParseLora(lora));
  }
  ONWARD_ASSIGN_OR_RETURN(options->init, ParseInit(args.String("init")));
  options->freeze_statistics = args.Has("freeze-statistics");
  if (args.Has("accumulate")) options->accumulate = args.Int("accumulate");
  if (args.Has("ema")) options->ema = args.Double("ema");
  if (args.Has("precision")) {
    options->precision = args.String("precision") == "float16" ? DType::kFloat16 : DType::kBFloat16;
  }
  if (args.Has("clip-norm")) options->clip_norm = args.Double("clip-norm");
  if (args.Has("clip-value")) options->clip_value = args.Double("clip-value");
  if (args.Has("clip-adaptive")) options->clip_adaptive = args.Double("clip-adaptive");
  if (args.Has("head")) options->head_classes = args.Int("head");
  options->gradient =
      args.String("gradient") == "op" ? GradientForm::kOperator : GradientForm::kExpanded;
  const std::vector<std::string> labels = args.All("label");
  options->label = labels.empty() ? "label" : labels[0];
  if (labels.size() > 1) options->more_labels.assign(labels.begin() + 1, labels.end());
  return absl::OkStatus();
}

absl::Status CheckAuthorFlags(const Args& args) {
  AuthorOptions ignored;
  return ReadAuthorFlags(args, &ignored);
}

void StoreAuthorFlags(const Args& args, Model* model) {
  std::vector<std::string> texts;
  for (const GivenFlag& given : GivenAuthorFlags(args))
    absl::c_move(given.texts(), std::back_inserter(texts));
  if (!texts.empty()) model->SetMetadata(kMetaFlags, JsonStringList(texts));
}

absl::Status CheckFlagsOfTrainable(const Args& args, const Model& model) {
  std::vector<std::string> known;
  if (const std::string text = model.Metadata(kMetaFlags); !text.empty()) {
    auto read = ParseJsonStringList(text);
    if (!read.ok()) {
      return Annotate(read.status(), absl::StrCat("'", model.path(), "': metadata ", kMetaFlags));
    }
    known = *std::move(read);
  }
  std::vector<std::string> others;
  for (const GivenFlag& given : GivenAuthorFlags(args)) {
    if (IsAsMade(given, known) || IsUsual(given, known) || IsSaidBy(model, given)) continue;
    absl::c_move(given.texts(), std::back_inserter(others));
  }
  if (others.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      absl::StrJoin(others, ", "), ": '", model.path(), "' is trainable already",
      known.empty() ? "" : absl::StrCat(", made with ", absl::StrJoin(known, ", ")),
      "; leave them out (--lr and --schedule may be changed), or begin with `onward export` of "
      "it"));
}

std::string TwiceNote(const Model& model, const AuthorOptions& options) {
  if (!options.losses.empty()) return "";
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
