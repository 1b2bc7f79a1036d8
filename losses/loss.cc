// SPDX-License-Identifier: Apache-2.0
#include "losses/loss.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status.h"
#include "core/graph/infer.h"
#include "losses/definition.h"

namespace onward {
namespace {

const std::vector<LossDef>& Losses() {
  static const auto* losses = new std::vector<LossDef>{
      BceLoss(), CrossEntropyLoss(), HuberLoss(), L1Loss(), MseLoss(), NllLoss(),
  };
  return *losses;
}

absl::StatusOr<const LossDef*> FindLoss(const std::string& name) {
  for (const LossDef& def : Losses()) {
    if (def.name == name) return &def;
  }
  return UnknownWord("loss", name, LossNames());
}

absl::Status CheckWord(const LossDef& def, const WordOption& option, const std::string& value) {
  if (std::count(option.words.begin(), option.words.end(), value) > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("loss '", def.name, "': '", option.name, "' has to be one of ",
                   absl::StrJoin(option.words, ", "), ", got '", value, "'"));
}

absl::Status CheckOptions(const LossDef& def, const LossSpec& spec) {
  std::map<std::string, std::string> numbers = spec.options;
  std::vector<std::string> names;
  for (const NumberOption& option : def.numbers) names.emplace_back(option.name);
  for (const WordOption& option : def.words) {
    names.push_back(option.name);
    auto it = numbers.find(option.name);
    if (it == numbers.end()) continue;
    ONWARD_RETURN_IF_ERROR(CheckWord(def, option, it->second));
    numbers.erase(it);
  }
  const std::string kind = absl::StrCat("loss '", def.name, "'");
  for (const auto& [name, value] : numbers) {
    if (std::count(names.begin(), names.end(), name) == 0) {
      return UnknownWord(absl::StrCat("option of ", kind), name, names);
    }
  }
  return ParseNumbers(kind, numbers, def.numbers).status();
}

// Dimensions [first, rank) are all known to be 1.
bool AllOnes(const ValueType& type, int first) {
  return std::all_of(type.dims.begin() + first, type.dims.end(),
                     [](const Dim& d) { return d.value == 1; });
}

bool ClassesLast(const LossSpec& spec) { return WordOf(spec, "axis", "1") == "-1"; }

// [N, C, 1, 1]: one prediction per example, in the shape that pooling leaves.
bool OnePerExample(const LossSpec& spec, const ValueType& output) {
  return !ClassesLast(spec) && output.rank() > 2 && AllOnes(output, 2);
}

// Brings scores and labels to the standard's form: classes on axis 1.
void ArrangeClasses(const LossSpec& spec, Expr* output, Expr* label) {
  GraphBuilder& b = output->builder();
  if (ClassesLast(spec)) {
    if (output->rank() == 2) return;
    const Expr classes = b.Op("Shape", {*output}, {{"start", -1}});
    *output = Reshape(*output, Concat({b.Ints({-1}), classes}, 0));
    *label = Reshape(*label, {-1});
  } else if (OnePerExample(spec, output->type()) && label->rank() == 1) {
    *output = Reshape(*output, {0, -1});
  }
}

absl::Status CheckShapes(const LossDef& def, const LossSpec& spec, const Expr& output,
                         const Expr& label) {
  const auto bad = [&](const Expr& e, std::string expected) {
    return absl::InvalidArgumentError(absl::StrCat("loss '", def.name, "': '", e.name(),
                                                   "' has to be ", expected, ", got ",
                                                   e.type().ToString()));
  };
  if (output.dtype() != DType::kUndefined && !IsFloating(output.dtype())) {
    return bad(output, "a floating-point tensor");
  }
  if (def.classes) {
    if (output.rank() >= 0 && output.rank() < 2) return bad(output, "scores [N, C, ...]");
    if (label.dtype() != DType::kUndefined && label.dtype() != DType::kInt64 &&
        label.dtype() != DType::kInt32) {
      return bad(label, "int64 class numbers");
    }
  } else if (output.dtype() != label.dtype() && output.dtype() != DType::kUndefined &&
             label.dtype() != DType::kUndefined) {
    return bad(label, absl::StrCat("of type ", std::string(DTypeName(output.dtype()))));
  }
  const ValueType expected = LabelType(spec, output.type());
  if (!expected.has_rank || !label.type().has_rank) return absl::OkStatus();
  // [N, C, 1, 1] also takes the standard's own [N, 1, 1].
  if (def.classes && label.rank() == output.rank() - 1 && OnePerExample(spec, output.type())) {
    return absl::OkStatus();
  }
  // Broadcasting [N] against [N, 1] would quietly compare every pair.
  return ShapesFit(expected, label.type()) ? absl::OkStatus() : bad(label, expected.ToString());
}

}  // namespace

double NumberOf(const LossSpec& spec, const std::string& option, double otherwise) {
  auto it = spec.options.find(option);
  double value = otherwise;
  if (it != spec.options.end() && !absl::SimpleAtod(it->second, &value)) return otherwise;
  return value;
}

std::string WordOf(const LossSpec& spec, const std::string& option, const std::string& otherwise) {
  auto it = spec.options.find(option);
  return it == spec.options.end() ? otherwise : it->second;
}

Expr MeanOfAll(const Expr& x) { return x.builder().Op("ReduceMean", {x}, {{"keepdims", 0}}); }

Expr ClampedLog(const Expr& p) {
  double smallest = 1e-37;
  if (p.dtype() == DType::kDouble) smallest = 1e-300;
  if (p.dtype() == DType::kFloat16) smallest = 6.2e-5;
  return Log(Max(p, p.builder().Scalar(smallest, p)));
}

std::vector<std::string> LossNames() {
  std::vector<std::string> names;
  for (const LossDef& def : Losses()) names.push_back(def.name);
  return names;
}

absl::StatusOr<LossSpec> ParseLoss(absl::string_view text) {
  ONWARD_ASSIGN_OR_RETURN(SpecText parsed, ParseSpecText(text));
  LossSpec spec{std::move(parsed.name), std::move(parsed.options)};
  ONWARD_ASSIGN_OR_RETURN(const LossDef* def, FindLoss(spec.name));
  ONWARD_RETURN_IF_ERROR(CheckOptions(*def, spec));
  return spec;
}

std::string LossText(const LossSpec& spec) {
  const std::string options = absl::StrJoin(spec.options, ",", absl::PairFormatter("="));
  return options.empty() ? spec.name : absl::StrCat(spec.name, ":", options);
}

bool IsClassLoss(const LossSpec& spec) {
  const absl::StatusOr<const LossDef*> def = FindLoss(spec.name);
  return def.ok() && (*def)->classes;
}

ValueType LabelType(const LossSpec& spec, const ValueType& output) {
  if (!IsClassLoss(spec)) return output;
  ValueType label = output;
  label.dtype = DType::kInt64;
  if (OnePerExample(spec, output)) {
    label.dims.resize(1);
  } else if (label.rank() >= 2) {
    label.dims.erase(ClassesLast(spec) ? label.dims.end() - 1 : label.dims.begin() + 1);
  }
  return label;
}

absl::StatusOr<Expr> BuildLoss(GraphBuilder& b, const LossSpec& spec, const Expr& output,
                               const Expr& label) {
  ONWARD_ASSIGN_OR_RETURN(const LossDef* def, FindLoss(spec.name));
  ONWARD_RETURN_IF_ERROR(CheckOptions(*def, spec));
  ONWARD_RETURN_IF_ERROR(CheckShapes(*def, spec, output, label));
  Expr scores = output, target = label;
  if (def->classes) ArrangeClasses(spec, &scores, &target);
  const Expr loss = def->build(b, spec, scores, target);
  ONWARD_RETURN_IF_ERROR(b.status());
  return loss;
}

}  // namespace onward
