// SPDX-License-Identifier: Apache-2.0
#include "tests/support/op_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "autograd/differentiate.h"
#include "core/graph/builder.h"
#include "core/graph/infer.h"
#include "core/onnx_io/model.h"
#include "core/runtime/session.h"
#include "environment/environment.h"
#include "tests/support/case_draws.h"
#include "tests/support/graph_case.h"
#include "tests/support/text_model.h"
#include "training_info/lower.h"

namespace onward {
namespace {

constexpr double kStep = 1e-5;             // of the central differences
constexpr double kDifferences = 1e-6;      // their accuracy in double
constexpr double kSameFormula = 1e-9;      // double against double
constexpr double kSinglePrecision = 1e-4;  // float against double

template <typename T>
T Must(absl::StatusOr<T> value) {
  if (!value.ok()) throw std::runtime_error(value.status().ToString());
  return *std::move(value);
}

void Must(const absl::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

Tensor InType(const Tensor& t, DType dtype) {
  return t.dtype() == DType::kDouble ? Converted(t, dtype) : t;
}

bool IsFed(const Arg& arg) {
  return arg.kind == Arg::Kind::kReal || arg.kind == Arg::Kind::kIntegers ||
         arg.kind == Arg::Kind::kFlags;
}

std::string ArgName(size_t i) { return absl::StrCat("x", i); }

// A row as a graph with a scalar loss: the sum of its outputs times cotangents,
// which are inputs.
struct Built {
  Graph forward;  // without the loss
  Graph graph;
  std::vector<std::string> ys, cotangents, xs;
  std::string loss;
};

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

Expr DeclareArg(GraphBuilder& b, const OpCase& c, size_t i, DType dtype, bool unknown) {
  const Arg& arg = c.args[i];
  if (IsFed(arg)) return b.Input(ArgName(i), ArgType(c, i, dtype, unknown));
  if (arg.kind == Arg::Kind::kOmitted) return {};
  if (arg.kind == Arg::Kind::kConstantReal) {
    return b.Constant(InType(Doubles({}, arg.values), dtype));
  }
  if (arg.kind == Arg::Kind::kTrue) return b.Constant(Tensor::Scalar<bool>(true));
  return b.Constant(Integers(arg.shape, arg.values, arg.integers));
}

bool IsDifferentiated(const OpCase& c, size_t i) {
  if (c.args[i].kind != Arg::Kind::kReal) return false;
  return c.by.empty() || std::count(c.by.begin(), c.by.end(), static_cast<int>(i)) > 0;
}

// sum over i of sum(values[i] * factors[i]), the factors being new inputs.
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

// Values of a graph at given inputs.
class Evaluation {
 public:
  Evaluation(const Graph& graph, std::vector<std::string> wanted) : wanted_(wanted) {
    CompileOptions options;
    options.device = &DefaultEnvironment().cpu();
    options.operators = &DefaultEnvironment().operators();
    options.outputs = std::move(wanted);
    session_.emplace(graph, std::move(options));
  }
  std::vector<Tensor> Run(const TensorMap& feeds) {
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

 private:
  std::vector<std::string> wanted_;
  std::optional<Session> session_;
};

TensorMap InType(const TensorMap& feeds, DType dtype) {
  TensorMap cast;
  for (const auto& [name, t] : feeds) cast[name] = InType(t, dtype);
  return cast;
}

void ExpectNear(const Tensor& actual, const Tensor& expected, double tolerance,
                const std::string& what) {
  ASSERT_EQ(actual.shape(), expected.shape()) << what;
  const std::vector<double> a = Must(ToDoubles(actual)), e = Must(ToDoubles(expected));
  double scale = 1;
  for (const double v : e) scale = std::max(scale, std::abs(v));
  for (size_t i = 0; i < a.size(); ++i) {
    // Not-a-number fails too.
    ASSERT_TRUE(std::abs(a[i] - e[i]) <= tolerance * scale)
        << what << ": element " << i << " of " << expected.shape().ToString() << " is " << a[i]
        << ", expected " << e[i];
  }
}

// d(scalar)/dx for each x, element by element.
std::vector<Tensor> CentralDifferences(const Graph& graph, const std::string& scalar,
                                       const std::vector<std::string>& xs, const TensorMap& feeds) {
  Evaluation evaluation(graph, {scalar});
  std::vector<Tensor> slopes;
  for (const std::string& name : xs) {
    TensorMap moved = feeds;
    Tensor x = feeds.at(name).Clone(), slope(DType::kDouble, x.shape());
    moved[name] = x;
    for (int64_t i = 0; i < x.elements(); ++i) {
      double& element = x.data<double>()[i];
      const double here = element;
      element = here + kStep;
      const double above = evaluation.Run(moved)[0].data<double>()[0];
      element = here - kStep;
      const double below = evaluation.Run(moved)[0].data<double>()[0];
      element = here;
      slope.data<double>()[i] = (above - below) / (2 * kStep);
    }
    slopes.push_back(std::move(slope));
  }
  return slopes;
}

void ExpectAllNear(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected,
                   const std::vector<std::string>& names, double tolerance,
                   const std::string& what) {
  for (size_t i = 0; i < names.size(); ++i) {
    ExpectNear(actual[i], expected[i], tolerance, absl::StrCat(what, " of ", names[i]));
  }
}

void ExpectInferredTypes(const OpCase& c, const Built& built, const std::vector<Tensor>& ys,
                         bool unknown) {
  for (size_t i = 0; i < ys.size(); ++i) {
    const ValueType actual = ValueType::Of(ys[i].dtype(), ys[i].shape());
    const ValueType* inferred = built.graph.TypeOf(built.ys[i]);
    ASSERT_NE(inferred, nullptr);
    if (!unknown && !c.data_dependent) {
      EXPECT_EQ(inferred->ToString(), actual.ToString());
      continue;
    }
    EXPECT_EQ(inferred->dtype, actual.dtype);
    if (!inferred->has_rank) continue;
    ASSERT_EQ(inferred->rank(), actual.rank());
    for (int d = 0; d < actual.rank(); ++d) {
      if (!inferred->dims[d].known()) continue;
      EXPECT_EQ(inferred->dims[d].value, actual.dims[d].value);
    }
  }
}

Gradients Derive(const Graph& graph, const std::string& y, const std::vector<std::string>& xs,
                 const RuleTable& rules = DefaultEnvironment().rules()) {
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

void ExpectStandard(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    EXPECT_EQ(node.domain, "") << node.Describe();
    ForEachBody(node, [](const std::string&, const Graph& body) { ExpectStandard(body); });
  }
}

void CheckInlined(const Gradients& gradients, const std::vector<std::string>& xs,
                  const TensorMap& feeds, const std::vector<Tensor>& expected) {
  Graph plain = gradients.graph;
  Must(ExpandForeignCalls(DefaultEnvironment(), &plain));
  Graph inlined = Must(InlineOwnFunctions(plain, DefaultEnvironment()));
  inlined.opsets = {{"", kCanonicalOpset}};
  ExpectStandard(inlined);
  for (const Finding& finding : CheckGraph(inlined)) ADD_FAILURE() << finding.ToString();
  ExpectAllNear(Evaluation(inlined, gradients.values).Run(feeds), expected, xs, kSameFormula,
                "gradient with functions inlined");
}

// h = sum of (gradient of each x) * (a random direction); its gradient by the xs
// and by the cotangents.
void CheckTwice(const Built& built, Gradients first, TensorMap feeds,
                const std::vector<Tensor>& gradients, Draws& draws,
                double tolerance = kDifferences) {
  GraphBuilder b(&first.graph, &DefaultEnvironment().operators(), "h");
  std::vector<Expr> values;
  for (const std::string& g : first.values) values.push_back(b.Value(g));
  std::vector<std::string> directions;
  const std::string h = WeightedSum(b, values, "v", &directions).name();
  Must(b.status());
  for (size_t i = 0; i < directions.size(); ++i) {
    feeds[directions[i]] = DrawArg(Real(gradients[i].shape()), draws);
  }
  std::vector<std::string> xs = built.xs;
  xs.insert(xs.end(), built.cotangents.begin(), built.cotangents.end());
  const Gradients second = Derive(first.graph, h, xs);
  const std::vector<Tensor> actual = Evaluation(second.graph, second.values).Run(feeds);
  ExpectAllNear(actual, CentralDifferences(first.graph, h, xs, feeds), xs, tolerance,
                "second gradient");
}

void CheckDeclared(const OpCase& c, bool unknown) {
  Draws draws(c.name);
  TensorMap feeds;
  for (size_t i = 0; i < c.args.size(); ++i) {
    if (IsFed(c.args[i])) feeds[ArgName(i)] = DrawArg(c.args[i], draws);
  }
  const Built built = Build(c, DType::kDouble, unknown);
  const std::vector<Tensor> ys = Evaluation(built.forward, built.ys).Run(feeds);
  ExpectInferredTypes(c, built, ys, unknown);
  for (size_t i = 0; i < ys.size(); ++i) {
    feeds[built.cotangents[i]] = DrawArg(Real(ys[i].shape()), draws);
  }

  const Built single = Build(c, DType::kFloat, unknown);
  const TensorMap single_feeds = InType(feeds, DType::kFloat);
  ExpectAllNear(Evaluation(single.graph, single.ys).Run(single_feeds), ys, single.ys,
                kSinglePrecision, "float result");

  const Gradients gradients = Derive(built.graph, built.loss, built.xs);
  const std::vector<Tensor> dxs = Evaluation(gradients.graph, gradients.values).Run(feeds);
  ExpectAllNear(dxs, CentralDifferences(gradients.graph, built.loss, built.xs, feeds), built.xs,
                kDifferences, "gradient");
  CheckInlined(gradients, built.xs, feeds, dxs);

  const Gradients in_float = Derive(single.graph, single.loss, single.xs);
  ExpectAllNear(Evaluation(in_float.graph, in_float.values).Run(single_feeds), dxs, single.xs,
                kSinglePrecision, "float gradient");
  CheckTwice(built, gradients, feeds, dxs, draws);
}

Arg MakeArg(Arg::Kind kind, Shape shape, std::vector<double> values) {
  return {.kind = kind, .shape = std::move(shape), .kinks = {}, .values = std::move(values)};
}

std::vector<double> AsDoubles(const std::vector<int64_t>& values) {
  return {values.begin(), values.end()};
}

}  // namespace

Arg Real(Shape shape, double low, double high, std::vector<double> kinks) {
  return {.kind = Arg::Kind::kReal,
          .shape = std::move(shape),
          .low = low,
          .high = high,
          .kinks = std::move(kinks),
          .values = {}};
}
Arg Positive(Shape shape) { return Real(std::move(shape), 0.5, 2.5); }
Arg Below(Shape shape, int64_t bound, DType dtype) {
  Arg arg = MakeArg(Arg::Kind::kIntegers, std::move(shape), {});
  arg.integers = dtype;
  arg.high = static_cast<double>(bound);
  return arg;
}
Arg Fed(Shape shape, std::vector<int64_t> values, DType dtype) {
  Arg arg = MakeArg(Arg::Kind::kIntegers, std::move(shape), AsDoubles(values));
  arg.integers = dtype;
  return arg;
}
Arg Flags(Shape shape) { return MakeArg(Arg::Kind::kFlags, std::move(shape), {}); }
Arg Ints(std::vector<int64_t> values) {
  const auto n = static_cast<int64_t>(values.size());
  return Ints({n}, std::move(values));
}
Arg Ints(Shape shape, std::vector<int64_t> values) {
  return MakeArg(Arg::Kind::kConstant, std::move(shape), AsDoubles(values));
}
Arg Int(int64_t value) { return Ints(Shape{}, {value}); }
Arg FloatList(std::vector<double> values) {
  const auto n = static_cast<int64_t>(values.size());
  Arg arg = MakeArg(Arg::Kind::kConstant, {n}, std::move(values));
  arg.integers = DType::kFloat;
  return arg;
}
Arg Number(double value) { return MakeArg(Arg::Kind::kConstantReal, {}, {value}); }
Arg True() { return MakeArg(Arg::Kind::kTrue, {}, {}); }
Arg Omitted() { return {}; }

OpCase OpCase::Outputs(int count, std::vector<int> used_ones) {
  outputs = count;
  used = std::move(used_ones);
  return *this;
}
OpCase OpCase::By(std::vector<int> inputs) {
  by = std::move(inputs);
  return *this;
}
OpCase OpCase::Unknown(std::vector<int> inputs) {
  unknown = std::move(inputs);
  return *this;
}
OpCase OpCase::DataDependent() {
  data_dependent = true;
  return *this;
}
OpCase OpCase::Own() {
  domain = std::string(kOnwardDomain);
  return *this;
}

OpCase Case(std::string name, std::vector<Arg> args, Attributes attributes) {
  OpCase c;
  c.op = name.substr(0, name.find('_'));
  c.name = std::move(name);
  c.args = std::move(args);
  c.attributes = std::move(attributes);
  return c;
}

void PrintTo(const OpCase& c, std::ostream* out) { *out << c.name; }

void CheckGraphCase(const GraphCase& c) {
  Draws draws(c.name);
  Built built;
  built.graph = Must(RunnableGraph(TextModel(c.text), DefaultEnvironment()));
  Must(InferTypes(&built.graph, DefaultEnvironment().operators()));
  TensorMap feeds = c.given;
  for (const NamedType& in : built.graph.inputs) {
    if (in.type.dtype != DType::kDouble || !in.type.is_tensor()) continue;
    built.xs.push_back(in.name);
    if (!feeds.contains(in.name)) {
      feeds[in.name] = DrawArg(Real(in.type.StaticShape().value()), draws);
    }
  }
  for (const NamedType& out : built.graph.outputs) built.ys.push_back(out.name);
  const std::vector<Tensor> ys = Evaluation(built.graph, built.ys).Run(feeds);
  GraphBuilder b(&built.graph, &DefaultEnvironment().operators(), "loss");
  std::vector<Expr> values;
  for (const std::string& y : built.ys) values.push_back(b.Value(y));
  built.loss = WeightedSum(b, values, "cotangent", &built.cotangents).name();
  Must(b.status());
  for (size_t i = 0; i < ys.size(); ++i) {
    feeds[built.cotangents[i]] = DrawArg(Real(ys[i].shape()), draws);
  }
  const Gradients gradients = Derive(built.graph, built.loss, built.xs);
  const std::vector<Tensor> dxs = Evaluation(gradients.graph, gradients.values).Run(feeds);
  ExpectAllNear(dxs, CentralDifferences(gradients.graph, built.loss, built.xs, feeds), built.xs,
                c.tolerance, "gradient");
  CheckInlined(gradients, built.xs, feeds, dxs);
  if (c.twice) CheckTwice(built, gradients, feeds, dxs, draws, c.tolerance);
}

void CheckCase(const OpCase& c) {
  CheckDeclared(c, /*unknown=*/false);
  if (c.unknown.empty() || testing::Test::HasFatalFailure()) return;
  SCOPED_TRACE("first dimension unknown");
  CheckDeclared(c, /*unknown=*/true);
}

CaseGraph GradientGraph(const OpCase& c, DType dtype) {
  return GradientGraph(c, dtype, DefaultEnvironment().rules());
}

CaseGraph GradientGraph(const OpCase& c, DType dtype, const RuleTable& rules) {
  Draws draws(c.name);
  CaseGraph found;
  for (size_t i = 0; i < c.args.size(); ++i) {
    if (IsFed(c.args[i])) found.feeds[ArgName(i)] = DrawArg(c.args[i], draws);
  }
  const Built built = Build(c, dtype, /*unknown=*/false);
  const std::vector<Tensor> ys =
      Evaluation(built.forward, built.ys).Run(InType(found.feeds, dtype));
  for (size_t i = 0; i < ys.size(); ++i) {
    found.feeds[built.cotangents[i]] = DrawArg(Real(ys[i].shape()), draws);
  }
  found.feeds = InType(found.feeds, dtype);
  found.graph = Derive(built.graph, built.loss, built.xs, rules).graph;
  return found;
}

struct CaseRun::State {
  DType dtype;
  TensorMap feeds;  // double
  std::vector<std::pair<std::string, int64_t>> reals;
  std::optional<Evaluation> evaluation;

  void BuildResults(const OpCase& c) {
    Graph graph;
    graph.opsets = {{"", kCanonicalOpset}, {std::string(kOnwardDomain), 1}};
    GraphBuilder b(&graph, &DefaultEnvironment().operators());
    std::vector<Expr> inputs;
    for (size_t i = 0; i < c.args.size(); ++i) {
      inputs.push_back(DeclareArg(b, c, i, dtype, /*unknown=*/false));
      const bool read = c.domain.empty() || IsDifferentiated(c, i);
      if (c.args[i].kind != Arg::Kind::kReal || !read) continue;
      reals.emplace_back(ArgName(i), c.args[i].shape.elements());
    }
    std::vector<std::string> names;
    for (const Expr& y : b.Ops(c.op, inputs, c.outputs, c.attributes, c.domain)) {
      names.push_back(y.name());
    }
    Must(b.status());
    evaluation.emplace(graph, names);
  }

  void BuildGradients(const OpCase& c, Draws& draws) {
    const Built built = Build(c, dtype, /*unknown=*/false);
    const std::vector<Tensor> ys = Evaluation(built.forward, built.ys).Run(InType(feeds, dtype));
    for (size_t i = 0; i < ys.size(); ++i) {
      feeds[built.cotangents[i]] = DrawArg(Real(ys[i].shape()), draws);
      reals.emplace_back(built.cotangents[i], ys[i].elements());
    }
    const Gradients gradients = Derive(built.graph, built.loss, built.xs);
    evaluation.emplace(gradients.graph, gradients.values);
  }
};

CaseRun::CaseRun(const OpCase& c, DType dtype, Of of) : state_(std::make_unique<State>()) {
  state_->dtype = dtype;
  Draws draws(c.name);
  for (size_t i = 0; i < c.args.size(); ++i) {
    if (IsFed(c.args[i])) state_->feeds[ArgName(i)] = DrawArg(c.args[i], draws);
  }
  if (of == Of::kResults) {
    state_->BuildResults(c);
  } else {
    state_->BuildGradients(c, draws);
  }
}

CaseRun::~CaseRun() = default;

const std::vector<std::pair<std::string, int64_t>>& CaseRun::reals() const { return state_->reals; }

double CaseRun::At(const std::string& input, int64_t element) const {
  return state_->feeds.at(input).data<double>()[element];
}

void CaseRun::Set(const std::string& input, const std::vector<double>& values) {
  state_->feeds.at(input) = Doubles(state_->feeds.at(input).shape(), values);
}

std::vector<Tensor> CaseRun::Results() {
  return state_->evaluation->Run(InType(state_->feeds, state_->dtype));
}

std::vector<Tensor> CaseRun::With(const std::string& input, int64_t element, double value) {
  double& at = state_->feeds.at(input).data<double>()[element];
  const double usual = std::exchange(at, value);
  std::vector<Tensor> results = Results();
  at = usual;
  return results;
}

}  // namespace onward
