// SPDX-License-Identifier: Apache-2.0
// Graphs of 5 to 40 nodes, drawn at random, and their gradients against differences along
// random directions, in double. A graph is the same on every machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autograd/differentiate.h"
#include "core/graph/builder.h"
#include "core/runtime/session.h"
#include "environment/environment.h"
#include "tests/support/case_draws.h"
#include "tests/support/far_device.h"
#include "tests/support/op_case.h"
#include "tests/support/test_environment.h"

namespace onward {
namespace {

constexpr int kGraphs = 200;
constexpr double kStep = 1e-5, kTolerance = 2e-6;

// A graph on matrices. Every value has rank 2 and numbers of moderate size.
class RandomGraph {
 public:
  explicit RandomGraph(int number)
      : draws_(absl::StrCat("graph", number)), b_(&graph, &DefaultEnvironment().operators()) {
    graph.opsets = {{"", kCanonicalOpset}, {std::string(kOnwardDomain), 1}};
    for (int i = 0; i < 3; ++i) {
      inputs.push_back(absl::StrCat("x", i));
      shapes.push_back({1 + draws_.Below(4), 1 + draws_.Below(4)});
      values_.push_back(b_.Input(inputs.back(), ValueType::Of(DType::kDouble, shapes.back())));
    }
    const size_t nodes = 5 + static_cast<size_t>(draws_.Below(26));
    while (graph.nodes.size() < nodes) values_.push_back(Draw());
    // Whatever nobody reads is part of the loss, so that everything is differentiated.
    Expr total;
    for (const Expr& value : values_) {
      const bool read = std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
        return std::count(node.inputs.begin(), node.inputs.end(), value.name()) > 0;
      });
      if (read) continue;
      Expr part = ReduceSumAll(value * (0.5 + draws_.Unit()));
      total = total.defined() ? total + part : part;
    }
    loss = total.name();
  }

  const absl::Status& status() const { return b_.status(); }

  Graph graph;
  std::vector<std::string> inputs;
  std::vector<Shape> shapes;
  std::string loss;

 private:
  Expr Any() {
    const Expr x = values_[draws_.Below(static_cast<int64_t>(values_.size()))];
    return x.type().StaticShape()->elements() > 48 ? ReduceMean(x, {1}) : x;
  }
  // Any other value in a shape that broadcasts against x.
  Expr Against(const Expr& x) {
    Expr y = Any();
    const Shape a = *x.type().StaticShape(), b = *y.type().StaticShape();
    for (int i = 0; i < 2; ++i) {
      if (a[i] != b[i] && a[i] != 1 && b[i] != 1) y = ReduceMean(y, {i});
    }
    return y;
  }
  int64_t Axis() { return draws_.Below(2); }

  Expr Draw() {
    switch (draws_.Below(5)) {
      case 0: return Smooth(Any());
      case 1: return Bent(Any());
      case 2: return Pair(Any());
      case 3: return Moved(Any());
      default: return Joined(Any());
    }
  }

  Expr Smooth(const Expr& x) {
    static constexpr const char* kOps[] = {"Tanh", "Sigmoid", "Sin",  "Cos",      "Erf",
                                           "Mish", "Atan",    "Gelu", "Softplus", "Softsign"};
    const int64_t which = draws_.Below(13);
    if (which < 10) return b_.Op(kOps[which], {x});
    if (which == 10) return Exp(Tanh(x));
    if (which == 11) return Sqrt(x * x + 1.0);
    return Log(x * x + 1.0);
  }

  Expr Bent(const Expr& x) {
    static constexpr const char* kOps[] = {"Abs",  "Relu", "LeakyRelu", "Elu",
                                           "Selu", "Neg",  "HardSwish"};
    const int64_t which = draws_.Below(10);
    if (which < 7) return b_.Op(kOps[which], {x});
    if (which == 7) return b_.Op("Softmax", {x}, {{"axis", Axis()}});
    if (which == 8) return b_.Op("LogSoftmax", {Tanh(x)}, {{"axis", Axis()}});
    return b_.Op("Clip", {x, b_.Scalar(-0.7, x), b_.Scalar(0.9, x)});
  }

  Expr Pair(const Expr& x) {
    const Expr y = Against(x);
    switch (draws_.Below(8)) {
      case 0: return x + y;
      case 1: return x - y;
      case 2: return Tanh(x * y);
      case 3: return x / (y * y + 1.0);
      case 4: return Max(x, y);
      case 5: return Min(x, y);
      case 6: return Where(Greater(x, y), Sin(x), y);
      default: return Tanh(Pow(x * x + 0.5, Tanh(y)));
    }
  }

  Expr Moved(const Expr& x) {
    const int64_t axis = Axis(), size = x.dim(static_cast<int>(axis));
    switch (draws_.Below(9)) {
      case 0: return Transpose(x, {1, 0});
      case 1: return Reshape(x, {1, -1});
      case 2: return Gather(x, b_.Ints({size - 1, 0, draws_.Below(size)}), axis);
      case 3: return Slice(x, b_.Ints({0}), b_.Ints({1 + draws_.Below(size)}), b_.Ints({axis}));
      case 4: return b_.Op("Pad", {x, b_.Ints({1, 0, 0, 1})});
      case 5: return b_.Op("Tile", {x, b_.Ints({1, 2})});
      case 6: return b_.Op("CumSum", {x, b_.Int(axis)}, {{"reverse", draws_.Below(2)}});
      case 7: return b_.Op("Trilu", {x});
      default: return b_.Ops("TopK", {x, b_.Ints({1})}, 2, {{"axis", axis}})[0];
    }
  }

  Expr Joined(const Expr& x) {
    static constexpr const char* kReductions[] = {"ReduceMean",      "ReduceSum", "ReduceMax",
                                                  "ReduceLogSumExp", "ReduceL2",  "ReduceMin"};
    const int64_t which = draws_.Below(11);
    const Expr axis = b_.Ints({Axis()});
    if (which < 6) return Tanh(b_.Op(kReductions[which], {x, axis}));
    if (which == 6) return Tanh(MatMul(x, Transpose(x, {1, 0})));
    if (which == 7) return Tanh(b_.Op("Gemm", {x, Sin(x)}, {{"transA", 1}}));
    if (which == 8) return b_.Op("Einsum", {Tanh(x), x}, {{"equation", "ij,kj->ki"}});
    if (which == 9) return Concat({x, Cos(x)}, Axis());
    Expr scale = Reshape(ReduceMean(x, {0}), {-1});
    return b_.Op("LayerNormalization", {x, scale}, {{"epsilon", 0.1f}});
  }

  Draws draws_;
  GraphBuilder b_;
  std::vector<Expr> values_;
};

class RandomGraphTest : public testing::TestWithParam<int> {};

TEST_P(RandomGraphTest, AgreesWithDifferences) {
  const RandomGraph drawn(GetParam());
  ASSERT_TRUE(drawn.status().ok()) << drawn.status();
  DifferentiateOptions options;
  options.operators = &DefaultEnvironment().operators();
  options.rules = &DefaultEnvironment().rules();
  const auto gradients = Differentiate(drawn.graph, drawn.loss, drawn.inputs, options);
  ASSERT_TRUE(gradients.ok()) << gradients.status();
  // The differences are the CPU's, whatever runs the gradients.
  CompileOptions compile = TestEnvironment().compile_options();
  CompileOptions compile_loss = DefaultEnvironment().compile_options();
  compile.outputs = gradients->values;
  compile_loss.outputs = {drawn.loss};
  Session session(gradients->graph, std::move(compile));
  Session losses(drawn.graph, std::move(compile_loss));
  const auto run = [](Session& on, const TensorMap& feeds) {
    Variables none;
    const absl::StatusOr<TensorMap> found = on.Run(feeds, &none);
    EXPECT_TRUE(found.ok()) << found.status();
    return found.value_or(TensorMap());
  };
  Draws draws(absl::StrCat("numbers", GetParam()));
  TensorMap feeds;
  for (size_t i = 0; i < drawn.inputs.size(); ++i) {
    feeds[drawn.inputs[i]] = DrawArg(Real(drawn.shapes[i]), draws);
  }
  const TensorMap here = run(session, feeds);
  for (size_t i = 0; i < drawn.inputs.size(); ++i) {
    const Tensor x = feeds[drawn.inputs[i]];
    const Tensor direction = DrawArg(Real(drawn.shapes[i], -1, 1), draws);
    const auto loss_at = [&](double step) {
      Tensor moved = x.Clone();
      for (int64_t k = 0; k < x.elements(); ++k) {
        moved.data<double>()[k] += step * direction.data<double>()[k];
      }
      TensorMap other = feeds;
      other[drawn.inputs[i]] = moved;
      return run(losses, other).at(drawn.loss).data<double>()[0];
    };
    const double expected = (loss_at(kStep) - loss_at(-kStep)) / (2 * kStep);
    double slope = 0, scale = 1;
    for (int64_t k = 0; k < x.elements(); ++k) {
      const double term =
          here.at(gradients->values[i]).data<double>()[k] * direction.data<double>()[k];
      slope += term;
      scale = std::max(scale, std::abs(term));
    }
    EXPECT_NEAR(slope, expected, kTolerance * scale) << drawn.inputs[i];
  }
}

// The gradients on a device that lacks every operator of the graph at random.
TEST_P(RandomGraphTest, IsTheSameOnADeviceThatLacksKernels) {
  const RandomGraph drawn(GetParam());
  ASSERT_TRUE(drawn.status().ok()) << drawn.status();
  DifferentiateOptions options;
  options.operators = &DefaultEnvironment().operators();
  options.rules = &DefaultEnvironment().rules();
  const auto gradients = Differentiate(drawn.graph, drawn.loss, drawn.inputs, options);
  ASSERT_TRUE(gradients.ok()) << gradients.status();
  Draws draws(absl::StrCat("devices", GetParam()));
  FarOptions lacks;
  for (const Node& node : gradients->graph.nodes) {
    if (draws.Below(3) == 0) lacks.without.insert(node.op_type);
  }
  TensorMap feeds;
  for (size_t i = 0; i < drawn.inputs.size(); ++i) {
    feeds[drawn.inputs[i]] = DrawArg(Real(drawn.shapes[i]), draws);
  }
  const auto counters = std::make_shared<FarCounters>();
  const Environment& environment = DefaultEnvironment();
  const auto far = MakeFarDevice(environment.cpu(), lacks, counters);
  CompileOptions here = environment.compile_options(), there = here;
  int copies = 0;
  there.accelerators = {far.get()};
  there.planned = [&](const Plan& plan) { copies += CopiesOf(plan); };
  here.outputs = there.outputs = gradients->values;
  const auto expected = Session(gradients->graph, here).Run(feeds, nullptr);
  const auto found = Session(gradients->graph, there).Run(feeds, nullptr);
  ASSERT_TRUE(expected.ok()) << expected.status();
  ASSERT_TRUE(found.ok()) << found.status();
  for (const auto& [name, tensor] : *expected) {
    for (int64_t k = 0; k < tensor.elements(); ++k) {
      const double value = tensor.data<double>()[k];
      // The standard's body of LayerNormalization rounds to float on the way (stash_type).
      ASSERT_NEAR(found->at(name).data<double>()[k], value, 1e-6 * (1 + std::abs(value))) << name;
    }
  }
  EXPECT_EQ(counters->copies_in + counters->copies_out, copies);
  EXPECT_EQ(counters->live_bytes, 0);
}

INSTANTIATE_TEST_SUITE_P(Graphs, RandomGraphTest, testing::Range(0, kGraphs));

}  // namespace
}  // namespace onward
