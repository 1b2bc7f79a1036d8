// SPDX-License-Identifier: Apache-2.0
#include "cli/flag_meaning.h"

#include <map>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/spec.h"
#include "core/base/status.h"
#include "training_info/adapters/adapter.h"
#include "training_info/initializers/initializer.h"
#include "training_info/recipe.h"

namespace onward {
namespace {

// A number, numbers with '/' between them, a factor as in 10x, a switch, or a word.
std::string OptionMeaning(absl::string_view text) {
  if (absl::StrContains(text, '/')) {
    std::vector<std::string> parts;
    for (const absl::string_view part : absl::StrSplit(text, '/'))
      parts.push_back(OptionMeaning(part));
    return absl::StrJoin(parts, "/");
  }
  if (text == "true") return "1";
  if (text == "false") return "0";
  double number = 0;
  if (absl::SimpleAtod(text, &number)) return ExactText(number);
  if (absl::EndsWith(text, "x") && absl::SimpleAtod(text.substr(0, text.size() - 1), &number))
    return absl::StrCat(ExactText(number), "x");
  return std::string(text);
}

std::string SpecMeaning(SpecText spec, const std::vector<Description>& known) {
  for (const Description& description : known) {
    if (description.name != spec.name) continue;
    for (const OptionDescription& option : description.options)
      spec.options.emplace(option.name, option.otherwise);
  }
  for (auto& [name, value] : spec.options) value = OptionMeaning(value);
  return SpecToText(spec);
}
absl::StatusOr<std::string> SpecMeaning(const std::string& text,
                                        const std::vector<Description>& known) {
  ONWARD_ASSIGN_OR_RETURN(SpecText spec, ParseSpecText(text));
  return SpecMeaning(std::move(spec), known);
}

absl::StatusOr<std::string> LossMeaning(const std::string& value) {
  ONWARD_ASSIGN_OR_RETURN(LossTerm term, ParseLossTerm(value));
  std::string what = term.file;
  if (what.empty()) {
    ONWARD_ASSIGN_OR_RETURN(what, SpecMeaning(LossText(term.spec), DescribeLosses()));
  }
  return absl::StrCat(ExactText(term.weight), "*", what, "@", absl::StrJoin(term.outputs, ","));
}

absl::StatusOr<std::string> OptimizerMeaning(const std::string& value) {
  ONWARD_ASSIGN_OR_RETURN(const OptimizerChoice choice, ParseOptimizerChoice(value));
  return SpecMeaning(OptimizerChoiceText(choice), DescribeOptimizers());
}

absl::StatusOr<std::string> GroupMeaning(const std::string& value) {
  ONWARD_ASSIGN_OR_RETURN(ParameterGroup group, ParseGroup(value));
  return SpecMeaning({std::move(group.pattern), std::move(group.options)}, {});
}

absl::StatusOr<std::string> LoraMeaning(const std::string& value) {
  ONWARD_ASSIGN_OR_RETURN(const LoraSpec spec, ParseLora(value));
  return absl::StrCat(spec.pattern, ":", spec.rank, "/", ExactText(spec.alpha), "/",
                      ExactText(spec.dropout));
}

absl::StatusOr<std::string> InitMeaning(const std::string& value) {
  ONWARD_RETURN_IF_ERROR(ParseInit(value).status());
  return SpecMeaning(value, DescribeInitializers());
}

}  // namespace

std::string FlagMeaning(const Flag& flag, const std::string& value) {
  if (flag.number.has_value()) return OptionMeaning(value);
  using Reader = absl::StatusOr<std::string> (*)(const std::string&);
  static constexpr std::pair<const char*, Reader> kReaders[] = {{"loss", LossMeaning},
                                                                {"optimizer", OptimizerMeaning},
                                                                {"group", GroupMeaning},
                                                                {"lora", LoraMeaning},
                                                                {"init", InitMeaning}};
  for (const auto& [name, reader] : kReaders) {
    if (flag.name == name) return reader(value).value_or(value);
  }
  return value;
}

}  // namespace onward
