// SPDX-License-Identifier: Apache-2.0
#include "training_info/recipe.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/spec.h"
#include "core/base/status.h"

namespace onward {
namespace {

constexpr double kDefaultRate = 0.01;  // of an optimizer from a file

bool IsFile(absl::string_view name) { return absl::EndsWith(name, ".onnx"); }

absl::StatusOr<std::map<std::string, double>> FileNumbers(const SpecText& text) {
  std::map<std::string, double> numbers;
  for (const auto& [name, value] : text.options) {
    const NumberOption option =
        name == "lr" ? NumberOption::AtLeast(name, kDefaultRate, 0) : NumberOption{.name = name};
    const absl::StatusOr<double> number = ParseNumber(option, value);
    if (!number.ok()) return Annotate(number.status(), absl::StrCat("optimizer '", text.name, "'"));
    numbers[name] = *number;
  }
  return numbers;
}

// 10x: ten times the base rate.
absl::StatusOr<double> GroupRate(const std::string& text, double base) {
  const NumberOption option = NumberOption::AtLeast("lr", base, 0);
  if (!absl::EndsWith(text, "x")) return ParseNumber(option, text);
  ONWARD_ASSIGN_OR_RETURN(const double factor,
                          ParseNumber(option, absl::string_view(text).substr(0, text.size() - 1)));
  return factor * base;
}

}  // namespace

absl::StatusOr<LossTerm> ParseLossTerm(absl::string_view text) {
  LossTerm term;
  const absl::string_view whole = text;
  if (const size_t star = text.find('*'); star != absl::string_view::npos) {
    const NumberOption weight = {.name = "weight of the loss", .otherwise = 1};
    ONWARD_ASSIGN_OR_RETURN(term.weight, ParseNumber(weight, text.substr(0, star)));
    text.remove_prefix(star + 1);
  }
  if (const size_t at = text.rfind('@'); at != absl::string_view::npos) {
    term.outputs = absl::StrSplit(text.substr(at + 1), ',', absl::SkipEmpty());
    if (term.outputs.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("expected names of outputs after the @ of '", whole, "'"));
    }
    text = text.substr(0, at);
  }
  if (!IsFile(text)) {
    ONWARD_ASSIGN_OR_RETURN(term.spec, ParseLoss(text));
    return term;
  }
  if (!term.outputs.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", whole,
                     "': the inputs of the file say which outputs it compares, by "
                     "their names; leave the @ away"));
  }
  term.file = std::string(text);
  return term;
}

std::string LossTermText(const LossTerm& term) {
  std::string text = term.weight == 1 ? "" : absl::StrCat(ExactText(term.weight), "*");
  absl::StrAppend(&text, term.file.empty() ? LossText(term.spec) : term.file);
  if (!term.outputs.empty()) absl::StrAppend(&text, "@", absl::StrJoin(term.outputs, ","));
  return text;
}

double OptimizerChoice::lr() const {
  if (!is_file()) return OptionOf(spec, "lr");
  auto it = numbers.find("lr");
  return it == numbers.end() ? kDefaultRate : it->second;
}

absl::StatusOr<OptimizerChoice> ParseOptimizerChoice(absl::string_view text) {
  OptimizerChoice choice;
  ONWARD_ASSIGN_OR_RETURN(const SpecText parsed, ParseSpecText(text));
  if (!IsFile(parsed.name)) {
    ONWARD_ASSIGN_OR_RETURN(choice.spec, ParseOptimizer(text));
    return choice;
  }
  choice.file = parsed.name;
  ONWARD_ASSIGN_OR_RETURN(choice.numbers, FileNumbers(parsed));
  return choice;
}

std::string OptimizerChoiceText(const OptimizerChoice& choice) {
  if (!choice.is_file()) return OptimizerText(choice.spec);
  return SpecToText({choice.file, NumberTexts(choice.numbers, {})});
}

std::string OptimizerWords(const OptimizerChoice& choice) {
  if (choice.is_file()) return OptimizerChoiceText(choice);
  std::vector<std::string> words;
  for (const Description& known : DescribeOptimizers()) {
    if (known.name != choice.spec.name) continue;
    const SpecText given = ParseSpecText(OptimizerText(choice.spec)).value_or(SpecText());
    for (const OptionDescription& option : known.options) {
      const auto it = given.options.find(option.name);
      const bool is_given = it != given.options.end();
      const std::string value = is_given ? it->second : option.otherwise;
      // Pairs are there one by one, too, and what is off goes without saying.
      const bool pair = absl::StrContains(value, "/");
      if (!pair && (is_given || value != "0"))
        words.push_back(absl::StrCat(option.name, " ", value));
    }
  }
  return absl::StrCat(choice.spec.name, words.empty() ? "" : ": ", absl::StrJoin(words, ", "));
}

absl::StatusOr<ParameterGroup> ParseGroup(absl::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos || colon == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected PATTERN:OPTION=VALUE,..., as in 'head.*:lr=10x,weight_decay=0', got '", text,
        "'"));
  }
  ONWARD_ASSIGN_OR_RETURN(SpecText options,
                          ParseSpecText(absl::StrCat("group:", text.substr(colon + 1))));
  return ParameterGroup{std::string(text.substr(0, colon)), std::move(options.options)};
}

absl::StatusOr<OptimizerChoice> Specialized(const OptimizerChoice& base,
                                            const std::map<std::string, std::string>& options) {
  OptimizerChoice choice = base;
  std::map<std::string, std::string> others = options;
  const auto rate = others.extract("lr");
  if (base.is_file()) {
    ONWARD_ASSIGN_OR_RETURN(const auto numbers, FileNumbers({base.file, others}));
    for (const auto& [name, value] : numbers) choice.numbers[name] = value;
  } else {
    const std::string text =
        others.empty() ? base.spec.name
                       : absl::StrCat(base.spec.name, ":",
                                      absl::StrJoin(others, ",", absl::PairFormatter("=")));
    ONWARD_ASSIGN_OR_RETURN(const OptimizerSpec own, ParseOptimizer(text));
    for (const auto& [name, value] : own.options) choice.spec.options[name] = value;
    ONWARD_RETURN_IF_ERROR(CheckOptimizer(choice.spec));
  }
  if (!rate.empty()) {
    ONWARD_ASSIGN_OR_RETURN(const double lr, GroupRate(rate.mapped(), base.lr()));
    (base.is_file() ? choice.numbers : choice.spec.options)["lr"] = lr;
  }
  return choice;
}

}  // namespace onward
