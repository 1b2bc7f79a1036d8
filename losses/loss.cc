// SPDX-License-Identifier: Apache-2.0
#include "losses/loss.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/status.h"
#include "core/graph/infer.h"
#include "losses/definition.h"

namespace onward {
namespace {

const std::vector<LossDef>& Losses() {
  static const auto* losses = [] {
    auto* all = new std::vector<LossDef>{
        BceLoss(),     ContrastiveLoss(), CosineLoss(),      CrossEntropyLoss(), CtcLoss(),
        DiceLoss(),    FocalLoss(),       GaussianNllLoss(), HingeLoss(),        HuberLoss(),
        IouLoss(),     KlLoss(),          L1Loss(),          MseLoss(),          NllLoss(),
        PoissonLoss(), SmoothL1Loss(),    TripletLoss(),
    };
    for (LossDef& def : *all) def.words.push_back({"reduction", def.reductions});
    return all;
  }();
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

absl::StatusOr<std::vector<double>> ParseList(const LossDef& def, const std::string& option,
                                              const std::string& text) {
  std::vector<double> values;
  for (absl::string_view part : absl::StrSplit(text, '/')) {
    const absl::StatusOr<double> value = ParseNumber(NumberOption::AtLeast(option, 0, 0), part);
    if (!value.ok()) return Annotate(value.status(), absl::StrCat("loss '", def.name, "'"));
    values.push_back(*value);
  }
  return values;
}

// The type that the option label_type names; kUndefined where it is not given.
absl::StatusOr<DType> GivenLabelType(const LossSpec& spec) {
  auto it = spec.options.find("label_type");
  if (it == spec.options.end()) return DType::kUndefined;
  std::vector<std::string> known;
  for (const DType dtype :
       {DType::kFloat, DType::kDouble, DType::kFloat16, DType::kBFloat16, DType::kInt8,
        DType::kInt16, DType::kInt32, DType::kInt64, DType::kUint8, DType::kUint16, DType::kUint32,
        DType::kUint64, DType::kBool}) {
    if (DTypeName(dtype) == it->second) return dtype;
    known.emplace_back(DTypeName(dtype));
  }
  return UnknownWord("label_type", it->second, known);
}

absl::Status CheckOptions(const LossDef& def, const LossSpec& spec) {
  std::map<std::string, std::string> numbers = spec.options;
  std::vector<std::string> names = {"label_type"};
  ONWARD_RETURN_IF_ERROR(GivenLabelType(spec).status());
  numbers.erase("label_type");
  for (const NumberOption& option : def.numbers) names.emplace_back(option.name);
  for (const WordOption& option : def.words) {
    names.push_back(option.name);
    auto it = numbers.find(option.name);
    if (it == numbers.end()) continue;
    ONWARD_RETURN_IF_ERROR(CheckWord(def, option, it->second));
    numbers.erase(it);
  }
  for (const std::string& option : def.lists) {
    names.push_back(option);
    auto it = numbers.find(option);
    if (it == numbers.end()) continue;
    ONWARD_RETURN_IF_ERROR(ParseList(def, option, it->second).status());
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

LabelKind KindOf(const LossDef& def, const LossSpec& spec, size_t outputs) {
  return def.labels_of == nullptr ? def.labels : def.labels_of(spec, outputs);
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

absl::Status Misfit(const LossDef& def, const Expr& e, const std::string& expected) {
  return absl::InvalidArgumentError(absl::StrCat("loss '", def.name, "': '", e.name(),
                                                 "' has to be ", expected, ", got ",
                                                 e.type().ToString()));
}

absl::Status CheckOutputs(const LossDef& def, LabelKind kind, absl::Span<const Expr> outputs) {
  if (std::count(def.outputs.begin(), def.outputs.end(), outputs.size()) == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "loss '", def.name, "' compares ", absl::StrJoin(def.outputs, " or "),
        " outputs of the model, got ", outputs.size(), "; name them after an @, as in ", def.name,
        "@a", def.outputs.back() > 1 ? ",b" : "", def.outputs.back() > 2 ? ",c" : ""));
  }
  for (const Expr& output : outputs) {
    if (output.dtype() != DType::kUndefined && !IsFloating(output.dtype())) {
      return Misfit(def, output, "a floating-point tensor");
    }
    // Broadcasting would quietly compare every pair.
    if (!ShapesFit(outputs[0].type(), output.type())) {
      return Misfit(def, output,
                    absl::StrCat(outputs[0].type().ToString(), " as '", outputs[0].name(), "'"));
    }
  }
  const int rank = outputs[0].rank();
  if (kind == LabelKind::kClasses && rank >= 0 && rank < 2) {
    return Misfit(def, outputs[0], "scores [N, C, ...]");
  }
  if (kind == LabelKind::kSequences && rank >= 0 && rank != 3) {
    return Misfit(def, outputs[0], "scores [T, N, C]");
  }
  return absl::OkStatus();
}

absl::Status CheckLabel(const LossDef& def, const LossSpec& spec, LabelKind kind,
                        absl::Span<const Expr> outputs, const Expr& label) {
  const Expr& output = outputs[0];
  const ValueType expected = LabelType(spec, output.type(), outputs.size());
  const bool integers = expected.dtype == DType::kInt64 && !spec.options.contains("label_type");
  if (label.dtype() != DType::kUndefined && expected.dtype != DType::kUndefined) {
    if (integers && label.dtype() != DType::kInt64 && label.dtype() != DType::kInt32) {
      return Misfit(def, label, "int64 class numbers");
    }
    if (!integers && label.dtype() != expected.dtype) {
      return Misfit(def, label, absl::StrCat("of type ", std::string(DTypeName(expected.dtype))));
    }
  }
  if (!expected.has_rank || !label.type().has_rank) return absl::OkStatus();
  // [N, C, 1, 1] also takes the standard's own [N, 1, 1].
  if (kind == LabelKind::kClasses && label.rank() == output.rank() - 1 &&
      OnePerExample(spec, output.type())) {
    return absl::OkStatus();
  }
  // Broadcasting [N] against [N, 1] would quietly compare every pair.
  return ShapesFit(expected, label.type()) ? absl::OkStatus()
                                           : Misfit(def, label, expected.ToString());
}

// The label in the type that the loss computes with.
Expr Converted(LabelKind kind, const Expr& label, const Expr& output) {
  const bool numbers = kind == LabelKind::kLikeOutput || kind == LabelKind::kNumberEach;
  if (numbers) return label.dtype() == output.dtype() ? label : CastLike(label, output);
  const bool whole = label.dtype() == DType::kInt64 || label.dtype() == DType::kInt32 ||
                     label.dtype() == DType::kUndefined;
  return whole ? label : Cast(label, DType::kInt64);
}

}  // namespace

bool SwitchedOn(const LossSpec& spec, const std::string& option) {
  auto it = spec.options.find(option);
  if (it == spec.options.end()) return false;
  const absl::StatusOr<double> value = ParseNumber(NumberOption::Switch(option), it->second);
  return value.ok() && *value != 0;
}

std::string WordOf(const LossSpec& spec, const std::string& option, const std::string& otherwise) {
  auto it = spec.options.find(option);
  return it == spec.options.end() ? otherwise : it->second;
}

double LossCall::Number(const std::string& option) const {
  for (const NumberOption& known : def.numbers) {
    if (known.name != option) continue;
    auto it = spec.options.find(option);
    if (it == spec.options.end()) return known.otherwise;
    return ParseNumber(known, it->second).value_or(known.otherwise);
  }
  b.Fail(absl::InternalError(absl::StrCat("loss '", def.name, "' has no option ", option)));
  return 0;
}

std::string LossCall::Word(const std::string& option) const {
  for (const WordOption& known : def.words) {
    if (known.name == option) return WordOf(spec, option, known.words[0]);
  }
  b.Fail(absl::InternalError(absl::StrCat("loss '", def.name, "' has no option ", option)));
  return "";
}

Expr LossCall::List(const std::string& option, std::vector<int64_t> shape) const {
  const absl::StatusOr<std::vector<double>> values =
      ParseList(def, option, spec.options.at(option));
  if (!values.ok()) return b.Fail(values.status());
  const auto count = static_cast<int64_t>(values->size());
  for (int64_t& dim : shape) dim = dim < 0 ? count : dim;
  return CastLike(b.Constant(Tensor::FromValues<double>(Shape(shape), *values)), output());
}

Expr LossCall::Reduced(const Expr& each) const {
  const char* op = Is("reduction", "sum") ? "ReduceSum" : "ReduceMean";
  return b.Op(op, {each}, {{"keepdims", 0}});
}

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

std::vector<Description> DescribeLosses() {
  std::vector<Description> all;
  for (const LossDef& def : Losses()) {
    Description& loss = all.emplace_back(Description{def.name, def.summary, {}});
    for (const NumberOption& option : def.numbers) {
      loss.options.push_back(Describe(option));
      if (option.name == "ignore_index") loss.options.back().otherwise = "none";
    }
    for (const WordOption& option : def.words) {
      loss.options.push_back({option.name, option.words[0],
                              absl::StrCat("one of ", absl::StrJoin(option.words, ", "))});
    }
    for (const std::string& option : def.lists) {
      loss.options.push_back({option, "none", "numbers >= 0 with '/' between them"});
    }
  }
  return all;
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
  return def.ok() && KindOf(**def, spec, (*def)->outputs[0]) == LabelKind::kClasses;
}

size_t OutputsOf(const LossSpec& spec) {
  const absl::StatusOr<const LossDef*> def = FindLoss(spec.name);
  return def.ok() ? (*def)->outputs[0] : 1;
}

bool TakesLabel(const LossSpec& spec, size_t outputs) {
  const absl::StatusOr<const LossDef*> def = FindLoss(spec.name);
  return !def.ok() || KindOf(**def, spec, outputs) != LabelKind::kNone;
}

ValueType LabelType(const LossSpec& spec, const ValueType& output, size_t outputs) {
  const absl::StatusOr<const LossDef*> def = FindLoss(spec.name);
  const LabelKind kind = def.ok() ? KindOf(**def, spec, outputs) : LabelKind::kLikeOutput;
  ValueType label = output;
  if (kind != LabelKind::kLikeOutput && kind != LabelKind::kNumberEach) {
    label.dtype = DType::kInt64;
  }
  const absl::StatusOr<DType> given = GivenLabelType(spec);
  if (given.ok() && *given != DType::kUndefined) label.dtype = *given;
  if (kind == LabelKind::kClassEach || kind == LabelKind::kNumberEach) {
    if (label.rank() > 1) label.dims.resize(1);
  } else if (kind == LabelKind::kSequences) {
    if (output.rank() != 3) return ValueType::Unranked(label.dtype);
    label.dims = {output.dims[SwitchedOn(spec, "batch_first") ? 0 : 1], Dim{}};
  } else if (kind == LabelKind::kClasses) {
    if (OnePerExample(spec, output)) {
      label.dims.resize(1);
    } else if (label.rank() >= 2) {
      label.dims.erase(ClassesLast(spec) ? label.dims.end() - 1 : label.dims.begin() + 1);
    }
  }
  return label;
}

absl::StatusOr<Expr> BuildLoss(GraphBuilder& b, const LossSpec& spec,
                               absl::Span<const Expr> outputs, const Expr& label) {
  ONWARD_ASSIGN_OR_RETURN(const LossDef* def, FindLoss(spec.name));
  ONWARD_RETURN_IF_ERROR(CheckOptions(*def, spec));
  const LabelKind kind = KindOf(*def, spec, outputs.size());
  ONWARD_RETURN_IF_ERROR(CheckOutputs(*def, kind, outputs));
  LossCall call = {b, *def, spec, {outputs.begin(), outputs.end()}, label};
  if (kind != LabelKind::kNone) {
    ONWARD_RETURN_IF_ERROR(CheckLabel(*def, spec, kind, outputs, label));
    call.label = Converted(kind, label, outputs[0]);
  }
  if (kind == LabelKind::kClasses) ArrangeClasses(spec, &call.outputs[0], &call.label);
  const Expr loss = def->build(call);
  ONWARD_RETURN_IF_ERROR(b.status());
  return loss;
}

absl::StatusOr<Expr> BuildLoss(GraphBuilder& b, const LossSpec& spec, const Expr& output,
                               const Expr& label) {
  return BuildLoss(b, spec, absl::MakeConstSpan(&output, 1), label);
}

}  // namespace onward
