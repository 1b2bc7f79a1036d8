// SPDX-License-Identifier: Apache-2.0
#include "training_info/initializers/initializer.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace onward {
namespace {

struct InitDef {
  std::string name;
  std::string summary;
  std::vector<NumberOption> options;
  Expr (*draw)(GraphBuilder& b, const InitSpec& spec, const WeightMatrix& weight,
               const std::string& name);
};

double Root(double x) { return std::sqrt(std::max(x, 0.0)); }

// Uniform and normal draws of mean 0 and this deviation.
Expr UniformOf(GraphBuilder& b, const WeightMatrix& w, double deviation, const std::string& name) {
  const double bound = Root(3) * deviation;
  return DrawUniform(b, w.dtype, w.shape, -bound, bound, name);
}
Expr NormalOf(GraphBuilder& b, const WeightMatrix& w, double deviation, const std::string& name) {
  return DrawNormal(b, w.dtype, w.shape, 0, deviation, name);
}

// The words of `nonlinearity`, in this order.
enum Nonlinearity { kLeakyRelu, kRelu, kLinear, kSigmoid, kTanh, kSelu };

double GainOf(const InitSpec& spec) {
  const double slope = OptionOf(spec, "a");
  switch (static_cast<Nonlinearity>(OptionOf(spec, "nonlinearity"))) {
    case kLeakyRelu: return Root(2 / (1 + slope * slope));
    case kRelu: return Root(2);
    case kLinear:
    case kSigmoid: return 1;
    case kTanh: return 5.0 / 3;
    case kSelu: return 0.75;
  }
  return 1;
}

// deviation = gain / sqrt(fan)
double KaimingDeviation(const InitSpec& spec, const WeightMatrix& w) {
  const int64_t fan = OptionOf(spec, "mode") != 0 ? w.fan_out : w.fan_in;
  return GainOf(spec) / Root(static_cast<double>(std::max<int64_t>(1, fan)));
}

// deviation = gain * sqrt(2 / (fan_in + fan_out))
double XavierDeviation(const InitSpec& spec, const WeightMatrix& w) {
  const double fans = static_cast<double>(w.fan_in) + static_cast<double>(w.fan_out);
  return OptionOf(spec, "gain") * Root(2 / std::max(1.0, fans));
}

// What kaiming_uniform with a = sqrt(5) comes to: the bound is 1 / sqrt(fan_in).
Expr DrawDefault(GraphBuilder& b, const InitSpec&, const WeightMatrix& w, const std::string& name) {
  return UniformOf(b, w, 1 / Root(3.0 * static_cast<double>(std::max<int64_t>(1, w.fan_in))), name);
}
Expr DrawKaimingUniform(GraphBuilder& b, const InitSpec& spec, const WeightMatrix& w,
                        const std::string& name) {
  return UniformOf(b, w, KaimingDeviation(spec, w), name);
}
Expr DrawKaimingNormal(GraphBuilder& b, const InitSpec& spec, const WeightMatrix& w,
                       const std::string& name) {
  return NormalOf(b, w, KaimingDeviation(spec, w), name);
}
Expr DrawXavierUniform(GraphBuilder& b, const InitSpec& spec, const WeightMatrix& w,
                       const std::string& name) {
  return UniformOf(b, w, XavierDeviation(spec, w), name);
}
Expr DrawXavierNormal(GraphBuilder& b, const InitSpec& spec, const WeightMatrix& w,
                      const std::string& name) {
  return NormalOf(b, w, XavierDeviation(spec, w), name);
}
Expr DrawScaledOrthogonal(GraphBuilder& b, const InitSpec& spec, const WeightMatrix& w,
                          const std::string& name) {
  const Expr drawn = DrawOrthogonal(b, w, name);
  const double gain = OptionOf(spec, "gain");
  return gain == 1 ? drawn : drawn * gain;
}
Expr DrawPlainNormal(GraphBuilder& b, const InitSpec& spec, const WeightMatrix& w,
                     const std::string& name) {
  return DrawNormal(b, w.dtype, w.shape, OptionOf(spec, "mean"), OptionOf(spec, "std"), name);
}
Expr DrawPlainUniform(GraphBuilder& b, const InitSpec& spec, const WeightMatrix& w,
                      const std::string& name) {
  return DrawUniform(b, w.dtype, w.shape, OptionOf(spec, "a"), OptionOf(spec, "b"), name);
}
Expr DrawPlainTruncated(GraphBuilder& b, const InitSpec& spec, const WeightMatrix& w,
                        const std::string& name) {
  return DrawTruncatedNormal(b, w.dtype, w.shape, OptionOf(spec, "mean"), OptionOf(spec, "std"),
                             OptionOf(spec, "a"), OptionOf(spec, "b"), name);
}
Expr DrawConstant(GraphBuilder& b, const InitSpec& spec, const WeightMatrix& w,
                  const std::string& name) {
  return Fill(b, w.dtype, w.shape, OptionOf(spec, "val"), name);
}

// Of the weights that are no matrices; PyTorch's LSTM has no convention for the forget gate.
std::vector<NumberOption> WithLayers(std::vector<NumberOption> options, double forget_bias) {
  options.push_back({.name = "forget_bias", .otherwise = forget_bias});
  options.push_back({.name = "update_bias", .otherwise = 0});
  options.push_back(NumberOption::AtLeast("embedding_std", 1, 0));
  return options;
}

// What is fitted to sizes of layers leaves the weights of states orthogonal, as Keras does.
std::vector<NumberOption> Fitted(std::vector<NumberOption> options) {
  options.push_back(NumberOption::Words("recurrent", {"orthogonal", "same"}));
  return WithLayers(std::move(options), 1);
}

std::vector<NumberOption> KaimingOptions() {
  return Fitted({{.name = "a", .otherwise = 0},
                 NumberOption::Words("mode", {"fan_in", "fan_out"}),
                 NumberOption::Words("nonlinearity",
                                     {"leaky_relu", "relu", "linear", "sigmoid", "tanh", "selu"})});
}

const std::vector<InitDef>& Initializers() {
  static const auto* const all = new std::vector<InitDef>{
      {"constant", "one number", WithLayers({{.name = "val", .otherwise = 0}}, 1), DrawConstant},
      {"default", "as PyTorch's layers begin: uniform up to 1/sqrt(fan_in), biases too",
       WithLayers({}, 0), DrawDefault},
      {"kaiming_normal", "normal with deviation gain/sqrt(fan)", KaimingOptions(),
       DrawKaimingNormal},
      {"kaiming_uniform", "uniform with deviation gain/sqrt(fan)", KaimingOptions(),
       DrawKaimingUniform},
      {"normal", "normal",
       WithLayers({{.name = "mean", .otherwise = 0}, NumberOption::AtLeast("std", 1, 0)}, 1),
       DrawPlainNormal},
      {"ones", "ones", WithLayers({{.name = "val", .otherwise = 1, .low = 1, .high = 1}}, 1),
       DrawConstant},
      {"orthogonal", "orthonormal rows or columns, times gain",
       WithLayers({{.name = "gain", .otherwise = 1}}, 1), DrawScaledOrthogonal},
      {"truncated_normal", "normal between a and b",
       WithLayers({{.name = "mean", .otherwise = 0},
                   NumberOption::Positive("std", 1),
                   {.name = "a", .otherwise = -2},
                   {.name = "b", .otherwise = 2}},
                  1),
       DrawPlainTruncated},
      {"uniform", "uniform between a and b",
       WithLayers({{.name = "a", .otherwise = 0}, {.name = "b", .otherwise = 1}}, 1),
       DrawPlainUniform},
      {"xavier_normal", "normal with deviation gain*sqrt(2/(fan_in + fan_out))",
       Fitted({NumberOption::AtLeast("gain", 1, 0)}), DrawXavierNormal},
      {"xavier_uniform", "uniform with deviation gain*sqrt(2/(fan_in + fan_out))",
       Fitted({NumberOption::AtLeast("gain", 1, 0)}), DrawXavierUniform},
      {"zeros", "zeros", WithLayers({{.name = "val", .otherwise = 0, .low = 0, .high = 0}}, 1),
       DrawConstant},
  };
  return *all;
}

// Other names that people use, and what they are short for.
const std::map<std::string, std::string>& ShortNames() {
  static const auto* const names =
      new std::map<std::string, std::string>{{"kaiming", "kaiming_uniform"},
                                             {"xavier", "xavier_uniform"},
                                             {"trunc_normal", "truncated_normal"}};
  return *names;
}

absl::StatusOr<const InitDef*> FindInit(const std::string& name) {
  auto other = ShortNames().find(name);
  std::vector<std::string> known;
  for (const InitDef& def : Initializers()) {
    if (def.name == (other == ShortNames().end() ? name : other->second)) return &def;
    known.push_back(def.name);
  }
  for (const auto& [brief, full] : ShortNames()) known.push_back(brief);
  return UnknownWord("initialiser", name, known);
}

absl::Status CheckBounds(const InitSpec& spec) {
  const bool bounded = spec.name == "uniform" || spec.name == "truncated_normal";
  if (!bounded || OptionOf(spec, "a") < OptionOf(spec, "b")) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("initialiser '", spec.name, "': 'a' has to be below 'b', got ",
                   OptionOf(spec, "a"), " and ", OptionOf(spec, "b")));
}

std::vector<int64_t> DimsOf(const Shape& shape) { return {shape.begin(), shape.end()}; }

Expr Narrowed(const Expr& drawn, DType dtype) {
  return drawn.dtype() == dtype ? drawn : Cast(drawn, dtype);
}

}  // namespace

std::vector<std::string> InitNames() {
  std::vector<std::string> names;
  for (const InitDef& def : Initializers()) names.push_back(def.name);
  return names;
}

std::vector<Description> DescribeInitializers() {
  std::vector<Description> all;
  for (const InitDef& def : Initializers()) {
    Description& d = all.emplace_back(Description{def.name, def.summary, {}});
    for (const NumberOption& option : def.options) {
      // What ones and zeros are.
      if (option.low == option.high) continue;
      d.options.push_back(Describe(option));
    }
  }
  return all;
}

absl::StatusOr<InitSpec> ParseInit(absl::string_view text) {
  ONWARD_ASSIGN_OR_RETURN(SpecText parsed, ParseSpecText(text));
  ONWARD_ASSIGN_OR_RETURN(const InitDef* def, FindInit(parsed.name));
  InitSpec spec{def->name, {}};
  ONWARD_ASSIGN_OR_RETURN(spec.options, ParseNumbers(absl::StrCat("initialiser '", def->name, "'"),
                                                     parsed.options, def->options));
  ONWARD_RETURN_IF_ERROR(CheckBounds(spec));
  return spec;
}

absl::Status CheckInit(const InitSpec& spec) {
  ONWARD_ASSIGN_OR_RETURN(const InitDef* def, FindInit(spec.name));
  ONWARD_RETURN_IF_ERROR(
      CheckNumbers(absl::StrCat("initialiser '", def->name, "'"), spec.options, def->options));
  return CheckBounds(spec);
}

double OptionOf(const InitSpec& spec, absl::string_view option) {
  const absl::StatusOr<const InitDef*> def = FindInit(spec.name);
  if (!def.ok() || std::none_of((*def)->options.begin(), (*def)->options.end(),
                                [&](const NumberOption& o) { return o.name == option; })) {
    return 0;
  }
  return ValueOf(spec.options, (*def)->options, option);
}

Expr DrawWeight(GraphBuilder& b, const InitSpec& spec, const WeightMatrix& weight,
                const std::string& name) {
  const absl::StatusOr<const InitDef*> def = FindInit(spec.name);
  return def.ok() ? (*def)->draw(b, spec, weight, name) : b.Fail(def.status());
}

Expr DrawUniform(GraphBuilder& b, DType dtype, const Shape& shape, double low, double high,
                 const std::string& name) {
  return Narrowed(b.Op("RandomUniform", {},
                       {{"dtype", static_cast<int64_t>(DrawnType(dtype))},
                        {"shape", DimsOf(shape)},
                        {"low", low},
                        {"high", high}},
                       "", name),
                  dtype);
}

Expr DrawNormal(GraphBuilder& b, DType dtype, const Shape& shape, double mean, double deviation,
                const std::string& name) {
  return Narrowed(b.Op("RandomNormal", {},
                       {{"dtype", static_cast<int64_t>(DrawnType(dtype))},
                        {"shape", DimsOf(shape)},
                        {"mean", mean},
                        {"scale", deviation}},
                       "", name),
                  dtype);
}

Expr Fill(GraphBuilder& b, DType dtype, const Shape& shape, double value, const std::string& name) {
  return b.Op("ConstantOfShape", {b.Ints(DimsOf(shape))},
              {{"value", ScalarOf(dtype, value, Shape{1})}}, "", name);
}

}  // namespace onward
