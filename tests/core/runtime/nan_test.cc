// SPDX-License-Identifier: Apache-2.0
// NaN in a convolution, product or normalisation that takes its followers along shows
// in every result that depends on it, whichever kernel serves the call: the plain
// kernels for double are what it is compared with.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <ostream>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/parallel.h"
#include "core/onnx_io/model.h"
#include "core/runtime/session.h"
#include "environment/environment.h"
#include "tests/support/text_model.h"
#include "training_info/lower.h"

namespace onward::nan_test {

struct Row {
  std::string name, text;
  std::string step;       // that the plan must have, if it matters
  bool winograd = false;  // mixes neighbouring pixels, so that NaN reaches further
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

struct Followers {
  std::string name, inputs, nodes;  // from c to y; %s stands for the shape of the result
};

std::vector<Followers> AllFollowers(const std::string& shape, const std::string& channels) {
  const std::string z = absl::StrCat(", float[", shape, "] z");
  const std::string norm =
      absl::StrCat(", float[", channels, "] scale, float[", channels, "] shift, float[", channels,
                   "] mean, float[", channels, "] var");
  const std::string bounds =
      "low = Constant <value_float = -0.5> () high = Constant <value_float = 1.5> () ";
  return {
      {"Relu", "", "y = Relu(c)"},
      {"Clip", "", bounds + "y = Clip(c, low, high)"},
      {"ClipAboveZero", "",
       "low = Constant <value_float = 0.25> () high = Constant <value_float = 1.5> () "
       "y = Clip(c, low, high)"},
      {"AddRelu", z, "s = Add(c, z) y = Relu(s)"},
      {"NormAddClip", z + norm,
       "n = BatchNormalization(c, scale, shift, mean, var) s = Add(n, z) " + bounds +
           "y = Clip(s, low, high)"},
  };
}

struct ConvForm {
  std::string name, x, w, y, channels, attributes;
  bool winograd = false;
};

std::vector<Row> ConvRows() {
  const std::vector<ConvForm> forms = {
      {"Winograd", "2,16,12,12", "24,16,3,3", "2,24,12,12", "24", "pads = [1, 1, 1, 1]", true},
      {"Strided", "2,16,12,12", "24,16,3,3", "2,24,6,6", "24",
       "pads = [1, 1, 1, 1], strides = [2, 2]"},
      {"FiveByFive", "2,16,12,12", "24,16,5,5", "2,24,12,12", "24", "pads = [2, 2, 2, 2]"},
      {"Groups", "2,16,12,12", "24,8,3,3", "2,24,12,12", "24", "pads = [1, 1, 1, 1], group = 2"},
      {"Depthwise", "2,16,12,12", "16,1,3,3", "2,16,12,12", "16",
       "pads = [1, 1, 1, 1], group = 16"},
      {"DepthwiseStrided", "2,12,12,12", "12,1,3,3", "2,12,6,6", "12",
       "pads = [1, 1, 1, 1], strides = [2, 2], group = 12"},
      {"Pointwise", "2,16,12,12", "24,16,1,1", "2,24,12,12", "24", "group = 1"},
      {"PointwiseStrided", "2,16,12,12", "24,16,1,1", "2,24,6,6", "24", "strides = [2, 2]"},
      {"FirstLayer", "2,3,16,16", "16,3,3,3", "2,16,8,8", "16",
       "pads = [1, 1, 1, 1], strides = [2, 2]"},
      {"OneChannel", "2,1,14,14", "32,1,3,3", "2,32,14,14", "32", "pads = [1, 1, 1, 1]"},
      {"OddChannels", "2,10,9,9", "13,10,3,3", "2,13,5,5", "13",
       "pads = [1, 1, 1, 1], strides = [2, 2]"},
      {"Dilated", "2,16,12,12", "24,16,3,3", "2,24,12,12", "24",
       "pads = [2, 2, 2, 2], dilations = [2, 2]"},
      {"OneAxis", "2,16,30", "24,16,3", "2,24,30", "24", "pads = [1, 1]"},
  };
  std::vector<Row> rows;
  for (const ConvForm& f : forms) {
    for (const Followers& after : AllFollowers(f.y, f.channels)) {
      // It depends on the CPU whether blocks of channels have a padding, which would not
      // stay zero, and what oneDNN joins to grouped convolutions.
      const bool joined = after.name != "ClipAboveZero" && f.name != "Groups";
      rows.push_back({f.name + after.name,
                      absl::StrCat("g (float[", f.x, "] x, float[", f.w, "] w, float[", f.channels,
                                   "] b", after.inputs, ") => (float[", f.y, "] y) { c = Conv <",
                                   f.attributes, "> (x, w, b) ", after.nodes, " }"),
                      joined ? "FusedConv" : "", f.winograd});
    }
  }
  return rows;
}

std::vector<Row> ProductRows() {
  std::vector<Row> rows;
  // Short sums go to oneDNN, long and small ones to the own product.
  for (const std::string k : {"6", "48", "200"}) {
    for (const Followers& after : AllFollowers("64,40", "40")) {
      if (after.name == "NormAddClip") continue;
      rows.push_back({"Gemm" + k + after.name,
                      absl::StrCat("g (float[64,", k, "] x, float[40,", k, "] q, float[40] b",
                                   after.inputs, ") => (float[64,40] y) { c = Gemm <transB = 1> ",
                                   "(x, q, b) ", after.nodes, " }"),
                      "FusedGemm"});
      rows.push_back({"MatMul" + k + after.name,
                      absl::StrCat("g (float[64,", k, "] x, float[", k, ",40] q, float[40] b",
                                   after.inputs, ") => (float[64,40] y) { p = MatMul(x, q) ",
                                   "c = Add(p, b) ", after.nodes, " }"),
                      "FusedMatMul"});
    }
    for (const Followers& after : AllFollowers("3,20,40", "20")) {
      if (after.name == "NormAddClip") continue;
      rows.push_back(
          {"Stack" + k + after.name,
           absl::StrCat("g (float[3,20,", k, "] x, float[3,", k, ",40] q", after.inputs,
                        ") => (float[3,20,40] y) { c = MatMul(x, q) ", after.nodes, " }"),
           "FusedMatMul"});
    }
  }
  return rows;
}

std::vector<Row> NormRows() {
  const std::string header = "<ir_version: 8, opset_import: [\"\" : 18, \"ai.onward\" : 1]> ";
  return {
      {"NormOfTheBatch",
       "g (float[4,12,5,5] x, float[12] scale, float[12] shift, float[12] mean, float[12] var, "
       "float[4,12,5,5] z) => (float[4,12,5,5] y, float[12] m, float[12] v) "
       "{ n, m, v = BatchNormalization <training_mode = 1> (x, scale, shift, mean, var) "
       "s = Add(n, z) y = Relu(s) }",
       "FusedBatchNormalization"},
      {"NormGradient",
       header + "g (float[4,12,5,5] x, float[4,12,5,5] z, float[12] scale, float[3,12] table) => "
                "(float[4,12,5,5] y, float[12] m, float[12] v) { y, m, v = "
                "ai.onward.FusedBatchNormalizationGrad <activation = \"Relu\"> "
                "(z, x, scale, table) }",
       "FusedBatchNormalizationGrad"},
  };
}

std::vector<Row> Rows() {
  std::vector<Row> rows = ConvRows();
  for (auto* more : {ProductRows, NormRows}) {
    for (Row& row : more()) rows.push_back(std::move(row));
  }
  return rows;
}

Tensor Random(const Shape& shape, uint64_t seed, bool positive) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  Tensor t(DType::kFloat, shape);
  for (int64_t i = 0; i < t.elements(); ++i) {
    const float v = normal(random);
    t.data<float>()[i] = positive ? std::abs(v) + 0.5f : v;
  }
  return t;
}

Tensor Widened(const Tensor& t) {
  if (t.dtype() != DType::kFloat) return t;
  Tensor wide(DType::kDouble, t.shape());
  std::copy(t.values<float>().begin(), t.values<float>().end(), wide.data<double>());
  return wide;
}

// Weights (w, b, and numbers per channel) are initializers, so that they are packed and
// folded; the rest is fed.
struct Problem {
  Graph graph;
  TensorMap values;  // of all inputs

  explicit Problem(const std::string& text) {
    auto made = RunnableGraph(TextModel(text), DefaultEnvironment());
    EXPECT_TRUE(made.ok()) << made.status();
    graph = *std::move(made);
    uint64_t seed = 7;
    for (const NamedType& in : graph.inputs) {
      values[in.name] = Random(*in.type.StaticShape(), seed++, in.name == "var");
    }
  }

  std::vector<std::vector<double>> Run(
      const std::string& step, bool wide,
      const Environment& environment = DefaultEnvironment()) const {
    Graph g = graph;
    g.types.clear();
    TensorMap feeds;
    g.inputs.clear();
    for (const NamedType& in : graph.inputs) {
      const Tensor value = wide ? Widened(values.at(in.name)) : values.at(in.name);
      if (in.name == "x" || in.name == "q" || in.name == "z") {
        g.inputs.push_back({in.name, ValueType::Of(value.dtype(), value.shape())});
        feeds[in.name] = value;
      } else {
        g.initializers[in.name] = value;
      }
    }
    for (auto& [name, tensor] : g.initializers) tensor = wide ? Widened(tensor) : tensor;
    for (NamedType& out : g.outputs) out.type = {};
    if (wide) WidenConstants(&g);
    CompileOptions options;
    options.device = &environment.cpu();
    options.operators = &environment.operators();
    std::vector<std::string> names;
    for (const NamedType& out : graph.outputs) names.push_back(out.name);
    Session session(std::move(g), options);
    Variables none;
    auto results = session.Run(feeds, &none);
    EXPECT_TRUE(results.ok()) << results.status();
    if (!step.empty()) ExpectStep(session, feeds, step);
    std::vector<std::vector<double>> all;
    for (const std::string& name : names) all.push_back(*ToDoubles(results->at(name)));
    return all;
  }

 private:
  static void WidenConstants(Graph* g) {
    for (Node& node : g->nodes) {
      if (!node.Is("Constant")) continue;
      const float value = node.Float("value_float", 0);
      g->initializers[node.outputs[0]] = Tensor::Scalar<double>(value);
    }
    std::erase_if(g->nodes, [](const Node& node) { return node.Is("Constant"); });
  }

  static void ExpectStep(Session& session, const TensorMap& feeds, const std::string& step) {
    std::map<std::string, FeedType> types;
    for (const auto& [name, tensor] : feeds) types[name] = {tensor.dtype(), tensor.shape()};
    bool found = false;
    for (const PlanStep& s : (*session.Prepare(types))->plan().compute) {
      found |= s.node.op_type == step;
    }
    EXPECT_TRUE(found) << "nothing of the kind was joined";
  }
};

using Results = std::vector<std::vector<double>>;

// Which results change with one element.
std::vector<std::vector<bool>> Dependents(const Problem& problem, float& element,
                                          const Results& usual) {
  std::vector<std::vector<bool>> depends;
  for (const std::vector<double>& values : usual) depends.emplace_back(values.size(), false);
  for (const float other : {1e6f, -1e6f}) {
    const float kept = std::exchange(element, other);
    const Results changed = problem.Run("", /*wide=*/true);
    element = kept;
    for (size_t k = 0; k < usual.size(); ++k) {
      for (size_t i = 0; i < usual[k].size(); ++i) {
        depends[k][i] = depends[k][i] || changed[k][i] != usual[k][i];
      }
    }
  }
  return depends;
}

// The same NaN, but for what only zeros of a padding bring in; returns how many there are.
int ExpectNans(const Results& actual, const Results& expected,
               const std::vector<std::vector<bool>>& depends, bool may_spread) {
  int nans = 0;
  for (size_t k = 0; k < expected.size(); ++k) {
    double scale = 1;
    for (const double v : expected[k]) scale = std::isnan(v) ? scale : std::max(scale, std::abs(v));
    for (size_t i = 0; i < expected[k].size(); ++i) {
      const double a = actual[k][i], e = expected[k][i];
      const bool wrong = std::isnan(e)
                             ? depends[k][i] && !std::isnan(a)
                             : !(std::abs(a - e) <= 1e-4 * scale) && !(may_spread && std::isnan(a));
      if (wrong) {
        ADD_FAILURE() << "element " << i << " of output " << k << " is " << a << ", expected " << e;
        return nans;
      }
      nans += std::isnan(a);
    }
  }
  return nans;
}

class NanInFusedSteps : public testing::TestWithParam<Row> {
 protected:
  void TearDown() override { SetThreads(threads_); }
  const int threads_ = Threads();
};

TEST_P(NanInFusedSteps, Show) {
  const Row& row = GetParam();
  Problem problem(row.text);
  const Results usual = problem.Run("", /*wide=*/true);
  const std::unique_ptr<const Environment> exactly =
      *Environment::Make({.exact_convolutions = true});
  int nans = 0;
  for (auto& [name, tensor] : problem.values) {
    for (const int64_t at : std::set<int64_t>{0, tensor.elements() / 2, tensor.elements() - 1}) {
      SCOPED_TRACE(absl::StrCat("NaN in element ", at, " of ", name));
      SetThreads(threads_);  // sums of other parts round otherwise than the usual ones
      float& element = tensor.data<float>()[at];
      const std::vector<std::vector<bool>> depends = Dependents(problem, element, usual);
      const float kept = std::exchange(element, std::numeric_limits<float>::quiet_NaN());
      const Results expected = problem.Run("", /*wide=*/true);
      for (const int threads : {1, 2}) {
        SetThreads(threads);
        for (const bool exact : {false, true}) {
          SCOPED_TRACE(absl::StrCat(threads, " threads", exact ? ", exact" : ""));
          const Environment& environment = exact ? *exactly : DefaultEnvironment();
          nans += ExpectNans(problem.Run(row.step, /*wide=*/false, environment), expected, depends,
                             row.winograd && !exact);
          if (HasFailure()) return;
        }
      }
      element = kept;
    }
  }
  EXPECT_GT(nans, 0);
}

INSTANTIATE_TEST_SUITE_P(Steps, NanInFusedSteps, testing::ValuesIn(Rows()),
                         [](const auto& info) { return info.param.name; });

}  // namespace onward::nan_test
