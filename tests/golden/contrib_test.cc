// SPDX-License-Identifier: Apache-2.0
// The operators that onnxruntime adds, against onnxruntime: contrib.txt holds calls and their
// results (make_contrib.py). Each runs with its sizes declared and without, in a file as
// exporters write it; and broken in every way, none of which may do more than give an error.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "contrib/microsoft/microsoft.h"
#include "core/runtime/session.h"
#include "environment/environment.h"
#include "tests/support/case_draws.h"
#include "tests/support/paths.h"
#include "tests/support/tensor_text.h"
#include "training_info/lower.h"

namespace onward::contrib_test {

constexpr double kTolerance = 2e-5;  // of the largest value of a result
constexpr double kHalfTolerance = 2e-3;

struct Operand {
  enum class Kind { kFed, kConstant, kNone };
  Kind kind = Kind::kNone;
  Tensor value;
};

struct ContribCase {
  std::string name, op, domain;
  int opset = 0;
  Attributes attributes;
  std::vector<Operand> inputs, outputs;
};

void PrintTo(const ContribCase& c, std::ostream* out) { *out << c.name; }

Attribute AttributeIn(const Words& words) {
  const std::string& kind = words[2];
  if (kind == "string") return words[3];
  std::vector<int64_t> ints;
  std::vector<float> floats;
  for (size_t i = 3; i < words.size(); ++i) {
    ints.push_back(static_cast<int64_t>(NumberIn(words[i])));
    floats.push_back(static_cast<float>(NumberIn(words[i])));
  }
  if (kind == "int") return ints[0];
  if (kind == "float") return floats[0];
  return kind == "ints" ? Attribute(ints) : Attribute(floats);
}

// TYPE SHAPE VALUES..
Operand OperandIn(const Words& words) {
  if (words.size() < 3) return {};
  return {words[0] == "constant" ? Operand::Kind::kConstant : Operand::Kind::kFed,
          TensorIn(absl::MakeSpan(words).subspan(1))};
}

std::vector<ContribCase> Cases() {
  std::vector<ContribCase> cases;
  std::ifstream file(GoldenFolder() + "/contrib.txt");
  for (std::string line; std::getline(file, line);) {
    const Words words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (words.empty() || words[0] == "#") continue;
    if (words[0] == "case") {
      cases.push_back({words[1],
                       words[2],
                       words[3] == "ai.onnx" ? "" : words[3],
                       static_cast<int>(NumberIn(words[4])),
                       {},
                       {},
                       {}});
    } else if (words[0] == "attribute") {
      cases.back().attributes[words[1]] = AttributeIn(words);
    } else if (words[0] == "output" || words[0] == "unwanted") {
      cases.back().outputs.push_back(OperandIn(words));
    } else {
      cases.back().inputs.push_back(OperandIn(words));
    }
  }
  return cases;
}

// How much of its inputs the file declares.
enum class Declared { kShapes, kRanks, kNothing };

Model FileOf(const ContribCase& c, Declared declared) {
  Graph graph;
  graph.name = c.name;
  graph.opsets = {{"", c.opset}};
  if (!c.domain.empty()) graph.opsets[c.domain] = 1;
  Node node;
  node.op_type = c.op;
  node.domain = c.domain;
  node.attributes = c.attributes;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const Operand& in = c.inputs[i];
    node.inputs.push_back(in.kind == Operand::Kind::kNone ? "" : absl::StrCat("x", i));
    if (in.kind == Operand::Kind::kConstant) graph.initializers[node.inputs.back()] = in.value;
    if (in.kind != Operand::Kind::kFed) continue;
    ValueType type = ValueType::Of(in.value.dtype(), in.value.shape());
    if (declared == Declared::kRanks) type.dims.assign(type.dims.size(), Dim{});
    if (declared == Declared::kNothing) {
      type.has_rank = false;
      type.dims.clear();
    }
    graph.inputs.push_back({node.inputs.back(), type});
  }
  for (size_t i = 0; i < c.outputs.size(); ++i) {
    const bool wanted = c.outputs[i].kind != Operand::Kind::kNone;
    node.outputs.push_back(wanted ? absl::StrCat("y", i) : "");
    if (wanted) graph.outputs.push_back({node.outputs.back(), {}});
  }
  graph.nodes.push_back(std::move(node));
  return ModelFromGraph(graph, 10, "test");
}

absl::StatusOr<TensorMap> RunCase(const ContribCase& c, Declared declared) {
  const Environment& environment = DefaultEnvironment();
  absl::StatusOr<Graph> graph = RunnableGraph(FileOf(c, declared), environment);
  if (!graph.ok()) return graph.status();
  CompileOptions options;
  options.device = &environment.cpu();
  options.operators = &environment.operators();
  TensorMap feeds;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    if (c.inputs[i].kind == Operand::Kind::kFed) feeds[absl::StrCat("x", i)] = c.inputs[i].value;
  }
  Variables none;
  return Session(*std::move(graph), options).Run(feeds, &none);
}

void ExpectNear(const Tensor& actual, const Tensor& expected) {
  ASSERT_EQ(actual.dtype(), expected.dtype());
  ASSERT_EQ(actual.shape(), expected.shape());
  const std::vector<double> a = ToDoubles(actual).value(), e = ToDoubles(expected).value();
  double largest = 1;
  for (const double v : e) largest = std::max(largest, std::abs(v));
  // Of eight bits, one step: roundings of halves differ.
  const bool eight = expected.dtype() == DType::kUint8 || expected.dtype() == DType::kInt8;
  const double tolerance = eight                                 ? 1
                           : expected.dtype() == DType::kFloat16 ? kHalfTolerance * largest
                                                                 : kTolerance * largest;
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_LE(std::abs(a[i] - e[i]), tolerance) << "element " << i;
  }
}

class Contrib : public testing::TestWithParam<ContribCase> {};

TEST_P(Contrib, GivesWhatOnnxruntimeGives) {
  const ContribCase& c = GetParam();
  for (const Declared declared : {Declared::kShapes, Declared::kRanks, Declared::kNothing}) {
    SCOPED_TRACE(declared == Declared::kShapes  ? "shapes declared"
                 : declared == Declared::kRanks ? "ranks declared"
                                                : "nothing declared");
    const absl::StatusOr<TensorMap> results = RunCase(c, declared);
    ASSERT_TRUE(results.ok()) << results.status();
    for (size_t i = 0; i < c.outputs.size(); ++i) {
      if (c.outputs[i].kind == Operand::Kind::kNone) continue;
      SCOPED_TRACE(absl::StrCat("output ", i));
      ExpectNear(results->at(absl::StrCat("y", i)), c.outputs[i].value);
    }
  }
}

// An error, which says where; or a result, where what was changed is optional.
void ExpectSurvives(const ContribCase& broken, const std::string& how) {
  for (const Declared declared : {Declared::kShapes, Declared::kNothing}) {
    const absl::StatusOr<TensorMap> results = RunCase(broken, declared);
    if (results.ok()) continue;
    EXPECT_NE(results.status().code(), absl::StatusCode::kInternal) << how << results.status();
    EXPECT_NE(results.status().message(), "") << how;
  }
}

TEST_P(Contrib, SurvivesBrokenCalls) {
  const ContribCase& c = GetParam();
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    ContribCase broken = c;
    broken.inputs[i] = {};
    ExpectSurvives(broken, absl::StrCat("without input ", i, ": "));
    if (c.inputs[i].kind == Operand::Kind::kNone) continue;
    for (const Shape& shape : {Shape{}, Shape{0}, Shape{1, 1, 1, 1, 1, 1}, Shape{7}, Shape{2, 0}}) {
      broken.inputs[i] = {c.inputs[i].kind, Tensor::Zeros(c.inputs[i].value.dtype(), shape)};
      ExpectSurvives(broken, absl::StrCat("input ", i, " of ", shape.ToString(), ": "));
    }
    for (const DType dtype : {DType::kFloat, DType::kInt64, DType::kBool}) {
      broken.inputs[i] = {c.inputs[i].kind, Tensor::Zeros(dtype, c.inputs[i].value.shape())};
      ExpectSurvives(broken, absl::StrCat("input ", i, " of ", DTypeName(dtype), ": "));
    }
  }
  for (const auto& [name, value] : c.attributes) {
    ContribCase broken = c;
    broken.attributes.erase(name);
    ExpectSurvives(broken, absl::StrCat("without ", name, ": "));
    const std::vector<Attribute> values = {Attribute(0),
                                           Attribute(-1),
                                           Attribute(int64_t{1} << 62),
                                           Attribute(1e30f),
                                           Attribute("no"),
                                           Attribute(std::vector<int64_t>{-1, 1 << 30}),
                                           Attribute(std::vector<float>{}),
                                           Attribute(Tensor::Scalar<float>(1))};
    for (const Attribute& other : values) {
      broken.attributes[name] = other;
      ExpectSurvives(broken, absl::StrCat("another ", name, ": "));
    }
  }
  ContribCase shorter = c;
  shorter.inputs.clear();
  ExpectSurvives(shorter, "without inputs: ");
}

INSTANTIATE_TEST_SUITE_P(Calls, Contrib, testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

TEST(ContribCases, HoldEveryOperator) {
  FunctionLibrary library;
  RegisterMicrosoftFunctions(library);
  std::set<std::string> held;
  for (const ContribCase& c : Cases()) held.insert(c.op);
  for (const auto& [key, def] : library.all()) {
    if (key.domain != "com.microsoft") continue;
    EXPECT_TRUE(held.contains(key.name)) << key.name;
  }
}

}  // namespace onward::contrib_test
