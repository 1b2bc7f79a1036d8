// SPDX-License-Identifier: Apache-2.0
#include "tests/support/case_graph.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/support/case_draws.h"

namespace onward {
namespace {

ValueType ArgType(const OpCase& c, size_t i, DType dtype, bool unknown) {
  const Arg& arg = c.args[i];
  if (arg.kind == Arg::Kind::kIntegers) dtype = arg.integers;
  if (arg.kind == Arg::Kind::kFlags) dtype = DType::kBool;
  ValueType type = ValueType::Of(dtype, arg.shape);
  if (unknown && std::count(c.unknown.begin(), c.unknown.end(), static_cast<int>(i)) > 0) {
    type.dims[0] = {-1, "N"};
  }
  return type;
}

}  // namespace

Tensor InType(const Tensor& t, DType dtype) {
  return t.dtype() == DType::kDouble ? Converted(t, dtype) : t;
}

TensorMap InType(const TensorMap& feeds, DType dtype) {
  TensorMap cast;
  for (const auto& [name, t] : feeds) cast[name] = InType(t, dtype);
  return cast;
}

bool IsFed(const Arg& arg) {
  return arg.kind == Arg::Kind::kReal || arg.kind == Arg::Kind::kIntegers ||
         arg.kind == Arg::Kind::kFlags;
}

std::string ArgName(size_t i) { return absl::StrCat("x", i); }

Expr DeclareArg(GraphBuilder& b, const OpCase& c, size_t i, DType dtype, bool unknown) {
  const Arg& arg = c.args[i];
  if (IsFed(arg)) return b.Input(ArgName(i), ArgType(c, i, dtype, unknown));
  if (arg.kind == Arg::Kind::kOmitted) return {};
  if (arg.kind == Arg::Kind::kConstantReal) {
    return b.Constant(InType(Doubles(arg.shape, arg.values), dtype));
  }
  if (arg.kind == Arg::Kind::kTrue) return b.Constant(Tensor::Scalar<bool>(true));
  return b.Constant(Integers(arg.shape, arg.values, arg.integers));
}

bool IsDifferentiated(const OpCase& c, size_t i) {
  if (c.args[i].kind != Arg::Kind::kReal) return false;
  return c.by.empty() || std::count(c.by.begin(), c.by.end(), static_cast<int>(i)) > 0;
}

Expr WeightedSum(GraphBuilder& b, const std::vector<Expr>& values, const std::string& prefix,
                 std::vector<std::string>* factors) {
  Expr total;
  for (const Expr& value : values) {
    factors->push_back(absl::StrCat(prefix, factors->size()));
    Expr term = ReduceSumAll(value * b.Input(factors->back(), value.type()));
    total = total.defined() ? total + term : term;
  }
  return total;
}

Built Build(const OpCase& c, DType dtype, bool unknown) {
  Built built;
  built.graph.opsets = {{"", kCanonicalOpset}, {std::string(kOnwardDomain), 1}};
  GraphBuilder b(&built.graph, &DefaultEnvironment().operators());
  std::vector<Expr> inputs;
  for (size_t i = 0; i < c.args.size(); ++i) {
    inputs.push_back(DeclareArg(b, c, i, dtype, unknown));
    if (IsDifferentiated(c, i)) built.xs.push_back(ArgName(i));
  }
  const std::vector<Expr> all = b.Ops(c.op, inputs, c.outputs, c.attributes, c.domain);
  std::vector<Expr> ys;
  for (const int k : c.used) {
    ys.push_back(all[k]);
    built.ys.push_back(all[k].name());
  }
  built.forward = built.graph;
  built.loss = WeightedSum(b, ys, "c", &built.cotangents).name();
  Must(b.status());
  return built;
}

GraphEvaluation::GraphEvaluation(const Graph& graph, std::vector<std::string> wanted,
                                 const Environment& environment)
    : wanted_(wanted) {
  CompileOptions options = environment.compile_options();
  options.outputs = std::move(wanted);
  session_.emplace(graph, std::move(options));
}

std::vector<Tensor> GraphEvaluation::Run(const TensorMap& feeds) {
  Variables none;
  TensorMap known;
  for (const NamedType& input : session_->graph().inputs) {
    known[input.name] = feeds.at(input.name);
  }
  const TensorMap found = Must(session_->Run(known, &none));
  std::vector<Tensor> results;
  for (const std::string& name : wanted_) results.push_back(found.at(name));
  return results;
}

Gradients Derive(const Graph& graph, const std::string& y, const std::vector<std::string>& xs,
                 const RuleTable& rules) {
  DifferentiateOptions options;
  options.operators = &DefaultEnvironment().operators();
  options.rules = &rules;
  Gradients gradients = Must(Differentiate(graph, y, xs, options));
  gradients.graph.outputs.clear();
  for (const std::string& value : gradients.values) {
    const ValueType* type = gradients.graph.TypeOf(value);
    gradients.graph.outputs.push_back({value, type == nullptr ? ValueType{} : *type});
  }
  return gradients;
}

}  // namespace onward
