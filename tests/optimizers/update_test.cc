// SPDX-License-Identifier: Apache-2.0
// The numbers of optimizer steps, against the formulas of the standard (and of
// docs/functions.md) in long double. Onward's own steps run both as kernels and
// as their bodies.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "absl/strings/str_cat.h"
#include "core/runtime/session.h"
#include "environment/environment.h"
#include "tests/support/test_environment.h"
#include "training_info/lower.h"

namespace onward::update_test {

using Real = long double;
using Scalars = std::map<std::string, float>;  // attributes

// One element before and after a step.
struct Element {
  Real x, g;
  std::vector<Real> states;
};

struct Optimizer {
  std::string op;
  std::string_view domain;
  int states;
  bool has_step;
  Attributes fixed;  // attributes that are not numbers
  std::vector<Scalars> attributes;
  // Must not look at anything but its arguments: rate, T, attributes.
  std::function<void(Real r, int64_t t, const Scalars& a, Element* e)> update;
};

Real At(const Scalars& a, const char* name, float otherwise) {
  auto it = a.find(name);
  return it == a.end() ? otherwise : it->second;
}

void Sgd(Real r, int64_t, const Scalars& a, Element* e) {
  e->x -= r * (e->g + At(a, "weight_decay", 0) * e->x);
}

void Adagrad(Real r, int64_t t, const Scalars& a, Element* e) {
  const Real rate = r / (1 + t * At(a, "decay_factor", 0));
  const Real g = At(a, "norm_coefficient", 0) * e->x + e->g;
  e->states[0] += g * g;
  e->x -= rate * g / (std::sqrt(e->states[0]) + At(a, "epsilon", 1e-6f));
}

template <bool kNesterov>
void Momentum(Real r, int64_t t, const Scalars& a, Element* e) {
  const Real alpha = At(a, "alpha", 0), beta = t > 0 ? At(a, "beta", 0) : 1;
  const Real g = At(a, "norm_coefficient", 0) * e->x + e->g;
  e->states[0] = alpha * e->states[0] + beta * g;
  e->x -= kNesterov ? r * (g + alpha * e->states[0]) : r * e->states[0];
}

void Adam(Real r, int64_t t, const Scalars& a, Element* e) {
  const Real alpha = At(a, "alpha", 0.9f), beta = At(a, "beta", 0.999f);
  const Real g = At(a, "norm_coefficient", 0) * e->x + e->g;
  e->states[0] = alpha * e->states[0] + (1 - alpha) * g;
  e->states[1] = beta * e->states[1] + (1 - beta) * g * g;
  const Real rate =
      t > 0 ? r * std::sqrt(1 - std::pow(beta, Real(t))) / (1 - std::pow(alpha, Real(t))) : r;
  const Real x = e->x - rate * e->states[0] / (std::sqrt(e->states[1]) + At(a, "epsilon", 1e-6f));
  e->x = (1 - At(a, "norm_coefficient_post", 0)) * x;
}

// As PyTorch has it: eps is added after the correction of the bias, epsilon before.
void AdamW(Real r, int64_t t, const Scalars& a, Element* e) {
  const Real alpha = At(a, "alpha", 0.9f), beta = At(a, "beta", 0.999f);
  const Real x = e->x * (1 - r * At(a, "weight_decay", 0.01f));
  e->states[0] = alpha * e->states[0] + (1 - alpha) * e->g;
  e->states[1] = beta * e->states[1] + (1 - beta) * e->g * e->g;
  const Real first = e->states[0] / (1 - std::pow(alpha, Real(t)));
  const Real scale = 1 - std::pow(beta, Real(t));
  const Real second = std::sqrt(e->states[1] / scale) + At(a, "eps", 1e-8f) +
                      At(a, "epsilon", 0) / std::sqrt(scale);
  e->x = x - r * first / second;
}

std::vector<Optimizer> Standard() {
  const std::vector<Scalars> momentum = {
      {{"alpha", 0.9f}, {"beta", 1}, {"norm_coefficient", 0}},
      {{"alpha", 0.5f}, {"beta", 0.25f}, {"norm_coefficient", 0.1f}}};
  return {
      {"Adagrad",
       kTrainingDomain,
       1,
       true,
       {},
       {{},
        {{"epsilon", 1e-3f}},
        {{"decay_factor", 0.1f}},
        {{"norm_coefficient", 0.2f}, {"decay_factor", 0.01f}}},
       Adagrad},
      {"Momentum", kTrainingDomain, 1, true, {{"mode", "standard"}}, momentum, Momentum<false>},
      {"Momentum", kTrainingDomain, 1, true, {{"mode", "nesterov"}}, momentum, Momentum<true>},
      {"Adam",
       kTrainingDomain,
       2,
       true,
       {},
       {{},
        {{"alpha", 0.8f}, {"beta", 0.99f}},
        {{"epsilon", 1e-2f}},
        {{"norm_coefficient", 0.3f}},
        {{"norm_coefficient_post", 0.05f}}},
       Adam},
  };
}

std::vector<Optimizer> Own() {
  return {{"SgdStep",
           kOnwardDomain,
           0,
           false,
           {},
           {{{"weight_decay", 0}}, {{"weight_decay", 0.1f}}},
           Sgd},
          {"AdamWStep",
           kOnwardDomain,
           2,
           true,
           {},
           {{},
            {{"alpha", 0.8f}, {"beta", 0.99f}},
            {{"eps", 1e-3f}},
            {{"eps", 0}, {"epsilon", 1e-2f}},
            {{"weight_decay", 0}},
            {{"weight_decay", 0.5f}}},
           AdamW}};
}

// Odd sizes, so that every tail of a vector loop is met, and a scalar.
const std::vector<Shape> kShapes = {{3, 7}, {}, {33}, {1, 1, 1}};

std::string Name(const char* kind, size_t tensor, int state = 0) {
  return absl::StrCat(kind, tensor, "_", state);
}

// All tensors in one node where the operator is variadic, else one node each.
Graph StepGraph(const Optimizer& optimizer, const Scalars& attributes, DType dtype) {
  Graph graph;
  graph.opsets = {
      {"", kCanonicalOpset}, {std::string(kTrainingDomain), 1}, {std::string(kOnwardDomain), 1}};
  auto input = [&](const std::string& name, const ValueType& type) {
    graph.inputs.push_back({name, type});
    graph.types[name] = type;
  };
  input("R", ValueType::Of(dtype, {}));
  if (optimizer.has_step) input("T", ValueType::Of(DType::kInt64, {}));
  for (size_t i = 0; i < kShapes.size(); ++i) {
    const ValueType type = ValueType::Of(dtype, kShapes[i]);
    input(Name("X", i), type);
    input(Name("G", i), type);
    for (int s = 0; s < optimizer.states; ++s) input(Name("S", i, s), type);
  }
  const bool variadic = optimizer.domain == kTrainingDomain;
  for (size_t first = 0; first < kShapes.size(); first += variadic ? kShapes.size() : 1) {
    const size_t end = variadic ? kShapes.size() : first + 1;
    Node node;
    node.op_type = optimizer.op;
    node.domain = std::string(optimizer.domain);
    node.attributes = optimizer.fixed;
    for (const auto& [name, value] : attributes) node.attributes[name] = value;
    node.inputs = {"R"};
    if (optimizer.has_step) node.inputs.push_back("T");
    for (size_t i = first; i < end; ++i) node.inputs.push_back(Name("X", i));
    for (size_t i = first; i < end; ++i) node.inputs.push_back(Name("G", i));
    for (size_t i = first; i < end; ++i) node.outputs.push_back(Name("newX", i));
    for (int s = 0; s < optimizer.states; ++s) {
      for (size_t i = first; i < end; ++i) {
        node.inputs.push_back(Name("S", i, s));
        node.outputs.push_back(Name("newS", i, s));
      }
    }
    for (const std::string& out : node.outputs)
      graph.outputs.push_back({out, ValueType::Unranked(dtype)});
    graph.nodes.push_back(std::move(node));
  }
  return graph;
}

template <typename T>
TensorMap Feeds(const Optimizer& optimizer, int64_t t) {
  TensorMap feeds = {{"R", Tensor::Scalar<T>(T(0.0625))}};
  if (optimizer.has_step) feeds["T"] = Tensor::Scalar<int64_t>(t);
  int seed = 1;
  auto fill = [&](const Shape& shape, bool positive) {
    Tensor tensor(DTypeOf<T>::value, shape);
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      const double wave = std::sin(0.7 * static_cast<double>(i) + seed);
      tensor.data<T>()[i] = T(positive ? wave * wave + 0.01 : wave);
    }
    ++seed;
    return tensor;
  };
  for (size_t i = 0; i < kShapes.size(); ++i) {
    feeds[Name("X", i)] = fill(kShapes[i], false);
    feeds[Name("G", i)] = fill(kShapes[i], false);
    // The last state is a sum or mean of squares.
    for (int s = 0; s < optimizer.states; ++s)
      feeds[Name("S", i, s)] = fill(kShapes[i], s + 1 == optimizer.states);
  }
  return feeds;
}

template <typename T>
void ExpectFormula(const Optimizer& optimizer, const Scalars& attributes, int64_t t,
                   const Graph& graph, const std::string& what) {
  CompileOptions options = TestEnvironment().compile_options();
  Session session(graph, options);
  const TensorMap feeds = Feeds<T>(optimizer, t);
  auto out = session.Run(feeds, nullptr);
  ASSERT_TRUE(out.ok()) << what << ": " << out.status();
  const Real tolerance = std::is_same_v<T, float> ? 4e-7L : 1e-14L;
  auto near = [&](const std::string& name, int64_t k, Real expected) {
    const Real got = out->at(name).template data<T>()[k];
    EXPECT_LE(std::abs(got - expected), tolerance * std::max<Real>(1, std::abs(expected)))
        << what << ", " << name << "[" << k << "]";
  };
  for (size_t i = 0; i < kShapes.size(); ++i) {
    for (int64_t k = 0; k < kShapes[i].elements(); ++k) {
      Element e{feeds.at(Name("X", i)).template data<T>()[k],
                feeds.at(Name("G", i)).template data<T>()[k],
                {}};
      for (int s = 0; s < optimizer.states; ++s) {
        e.states.push_back(feeds.at(Name("S", i, s)).template data<T>()[k]);
      }
      optimizer.update(Real(0.0625), t, attributes, &e);
      near(Name("newX", i), k, e.x);
      for (int s = 0; s < optimizer.states; ++s) near(Name("newS", i, s), k, e.states[s]);
    }
  }
}

std::string Describe(const Optimizer& optimizer, const Scalars& attributes, int64_t t) {
  std::string text = absl::StrCat(optimizer.op, " T=", t);
  for (const auto& [name, value] : attributes) absl::StrAppend(&text, " ", name, "=", value);
  return text;
}

// The same step in standard operators alone.
Graph Inlined(const Graph& graph) {
  auto body = InlineOwnFunctions(graph, DefaultEnvironment(), /*optimizers=*/true);
  EXPECT_TRUE(body.ok()) << body.status();
  if (!body.ok()) return graph;
  for (const Node& node : body->nodes) EXPECT_EQ(node.domain, "") << node.Describe();
  return *std::move(body);
}

template <typename T>
void CheckStandard(bool inlined) {
  for (const Optimizer& optimizer : Standard()) {
    for (const Scalars& attributes : optimizer.attributes) {
      Graph graph = StepGraph(optimizer, attributes, DTypeOf<T>::value);
      if (inlined) graph = Inlined(graph);
      for (int64_t t : {0, 1, 2, 1000}) {
        ExpectFormula<T>(optimizer, attributes, t, graph, Describe(optimizer, attributes, t));
      }
    }
  }
}

TEST(OptimizerNumbers, StandardInFloat) { CheckStandard<float>(false); }
TEST(OptimizerNumbers, StandardInDouble) { CheckStandard<double>(false); }
TEST(OptimizerNumbers, StandardBodiesInFloat) { CheckStandard<float>(true); }
TEST(OptimizerNumbers, StandardBodiesInDouble) { CheckStandard<double>(true); }

template <typename T>
void CheckOwn(bool inlined) {
  for (const Optimizer& optimizer : Own()) {
    for (const Scalars& attributes : optimizer.attributes) {
      Graph graph = StepGraph(optimizer, attributes, DTypeOf<T>::value);
      if (inlined) graph = Inlined(graph);
      // T counts from 1: a bias correction of zero steps would divide by zero.
      for (int64_t t : {1, 2, 1000}) {
        ExpectFormula<T>(optimizer, attributes, t, graph, Describe(optimizer, attributes, t));
      }
    }
  }
}

TEST(OptimizerNumbers, KernelsInFloat) { CheckOwn<float>(false); }
TEST(OptimizerNumbers, KernelsInDouble) { CheckOwn<double>(false); }
TEST(OptimizerNumbers, BodiesInFloat) { CheckOwn<float>(true); }
TEST(OptimizerNumbers, BodiesInDouble) { CheckOwn<double>(true); }

}  // namespace onward::update_test
