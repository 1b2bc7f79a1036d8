// SPDX-License-Identifier: Apache-2.0
#include "optimizers/optimizer.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status.h"
#include "optimizers/definition.h"

namespace onward {
namespace {

const std::vector<OptimizerDef>& Optimizers() {
  static const auto* optimizers = [] {
    auto* all = new std::vector<OptimizerDef>{
        AdadeltaOptimizer(), AdafactorOptimizer(), AdagradOptimizer(),  AdamOptimizer(),
        AdamaxOptimizer(),   AdamWOptimizer(),     AmsgradOptimizer(),  LambOptimizer(),
        LarsOptimizer(),     LionOptimizer(),      MomentumOptimizer(), MuonOptimizer(),
        NadamOptimizer(),    NesterovOptimizer(),  RadamOptimizer(),    RmsPropOptimizer(),
        RpropOptimizer(),    SgdOptimizer(),
    };
    for (OptimizerDef& def : *all) def.options.push_back(NumberOption::Switch("maximize"));
    return all;
  }();
  return *optimizers;
}

absl::StatusOr<const OptimizerDef*> FindOptimizer(const std::string& name) {
  for (const OptimizerDef& def : Optimizers()) {
    if (def.name == name) return &def;
  }
  return UnknownWord("optimizer", name, OptimizerNames());
}

absl::StatusOr<const OptimizerDef*> CheckedOptimizer(const OptimizerSpec& spec) {
  ONWARD_ASSIGN_OR_RETURN(const OptimizerDef* def, FindOptimizer(spec.name));
  ONWARD_RETURN_IF_ERROR(
      CheckNumbers(absl::StrCat("optimizer '", def->name, "'"), spec.options, def->options));
  if (def->check != nullptr) ONWARD_RETURN_IF_ERROR(def->check(spec));
  return def;
}

// Sizes that are not known as 1: how many states there are depends on the rank alone.
std::vector<int64_t> Sizes(const ValueType& type) {
  std::vector<int64_t> sizes;
  for (const Dim& dim : type.dims) sizes.push_back(dim.value < 0 ? 1 : dim.value);
  return sizes;
}

bool IsStandardType(DType dtype) {
  return dtype == DType::kUndefined || dtype == DType::kFloat || dtype == DType::kDouble;
}

}  // namespace

std::vector<std::string> OptimizerNames() {
  std::vector<std::string> names;
  for (const OptimizerDef& def : Optimizers()) names.push_back(def.name);
  return names;
}

std::vector<Description> DescribeOptimizers() {
  std::vector<Description> all;
  for (const OptimizerDef& def : Optimizers()) {
    Description& optimizer = all.emplace_back(Description{def.name, def.summary, {}});
    for (const NumberOption& option : def.options) optimizer.options.push_back(Describe(option));
    for (const ListOption& list : def.lists) {
      std::vector<std::string> values;
      for (const std::string& part : list.parts) {
        values.push_back(absl::StrCat(ValueOf({}, def.options, part)));
      }
      optimizer.options.push_back({list.name, absl::StrJoin(values, "/"),
                                   absl::StrCat(absl::StrJoin(list.parts, " and "), " together")});
    }
  }
  return all;
}

absl::StatusOr<OptimizerSpec> ParseOptimizer(absl::string_view text) {
  ONWARD_ASSIGN_OR_RETURN(SpecText parsed, ParseSpecText(text));
  ONWARD_ASSIGN_OR_RETURN(const OptimizerDef* def, FindOptimizer(parsed.name));
  OptimizerSpec spec{def->name, {}};
  const std::string kind = absl::StrCat("optimizer '", def->name, "'");
  ONWARD_RETURN_IF_ERROR(SpreadLists(kind, def->lists, &parsed.options));
  ONWARD_ASSIGN_OR_RETURN(spec.options, ParseNumbers(kind, parsed.options, def->options));
  ONWARD_RETURN_IF_ERROR(CheckedOptimizer(spec).status());
  return spec;
}

std::string OptimizerText(const OptimizerSpec& spec) {
  const absl::StatusOr<const OptimizerDef*> def = FindOptimizer(spec.name);
  if (!def.ok()) return spec.name;
  return SpecToText({spec.name, NumberTexts(spec.options, (*def)->options)});
}

absl::Status CheckOptimizer(const OptimizerSpec& spec) { return CheckedOptimizer(spec).status(); }

double OptionOf(const OptimizerSpec& spec, absl::string_view option) {
  const absl::StatusOr<const OptimizerDef*> def = FindOptimizer(spec.name);
  return def.ok() ? ValueOf(spec.options, (*def)->options, option) : 0;
}

std::vector<StateTensor> States(const OptimizerSpec& spec, const Shape& variable) {
  const absl::StatusOr<const OptimizerDef*> def = FindOptimizer(spec.name);
  if (!def.ok()) return {};
  std::vector<StateTensor> states = (*def)->states(spec, variable);
  for (StateTensor& s : states) {
    if (!s.shape.has_value()) s.shape = variable;
  }
  return states;
}

int FirstStep(const OptimizerSpec& spec) {
  const absl::StatusOr<const OptimizerDef*> def = FindOptimizer(spec.name);
  return def.ok() ? (*def)->first_step : 0;
}

absl::Status BuildUpdate(GraphBuilder& b, const OptimizerSpec& spec, const Expr& lr,
                         const Expr& step, absl::Span<const Variable> variables,
                         std::vector<std::vector<Expr>>* updated) {
  ONWARD_ASSIGN_OR_RETURN(const OptimizerDef* def, CheckedOptimizer(spec));
  if (variables.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("optimizer '", spec.name, "' has no variables to update"));
  }
  for (const Variable& variable : variables) {
    CheckInvariant(
        !variable.value.type().has_rank ||
            variable.states.size() == def->states(spec, Shape(Sizes(variable.value.type()))).size(),
        "a variable comes with its optimizer's states");
  }
  std::vector<Variable> climbing;
  if (OptionOf(spec, "maximize") != 0) {
    for (const Variable& v : variables) climbing.push_back({v.value, -v.gradient, v.states});
    variables = climbing;
  }
  updated->clear();
  ONWARD_RETURN_IF_ERROR(def->update(b, spec, lr, step, variables, updated));
  return b.status();
}

void RegisterOptimizerFunctions(FunctionLibrary& library) {
  library.Add("SgdStep", SgdStepFunction());
  library.Add("AdamWStep", AdamWStepFunction());
  RegisterStandardOptimizerBodies(library);
  RegisterAdamFamilySteps(library);
  RegisterRmsPropSteps(library);
  RegisterRateSteps(library);
  RegisterLayerwiseSteps(library);
  RegisterRowSteps(library);
}

absl::Status StandardUpdate(GraphBuilder& b, std::string_view op, Attributes attributes,
                            const Expr& lr, const Expr& step, absl::Span<const Variable> variables,
                            Updated* updated) {
  for (const Variable& variable : variables) {
    if (IsStandardType(variable.value.dtype())) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the standard's ", std::string(op), " updates float and double tensors; '",
                     variable.value.name(), "' is ", std::string(DTypeName(variable.value.dtype())),
                     ": use adamw or plain sgd, or --precision, which trains float copies"));
  }
  const size_t states = variables.front().states.size();
  std::vector<Expr> inputs = {lr, step};
  for (const Variable& variable : variables) inputs.push_back(variable.value);
  for (const Variable& variable : variables) inputs.push_back(variable.gradient);
  for (size_t k = 0; k < states; ++k) {
    for (const Variable& variable : variables) inputs.push_back(variable.states[k]);
  }
  const size_t n = variables.size();
  const std::vector<Expr> outputs = b.Ops(op, std::move(inputs), static_cast<int>(n * (1 + states)),
                                          std::move(attributes), kTrainingDomain);
  for (size_t i = 0; i < n; ++i) {
    std::vector<Expr>& news = updated->emplace_back();
    for (size_t k = 0; k <= states; ++k) news.push_back(outputs[k * n + i]);
  }
  return absl::OkStatus();
}

}  // namespace onward
