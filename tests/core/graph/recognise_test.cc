// SPDX-License-Identifier: Apache-2.0
// Chains of small operators that are LayerNormalization or Gelu, and near misses.
#include "core/graph/patterns/recognise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/graph/infer.h"
#include "core/graph/verify.h"
#include "core/runtime/session.h"
#include "environment/environment.h"
#include "tests/support/recognised.h"
#include "tests/support/text_model.h"

namespace onward::recognise_test {

struct Row {
  std::string name;
  std::string body;               // from x to y
  std::vector<std::string> left;  // operators afterwards, without Constants
  std::string type = "float";
  int opset = 20;
  std::vector<std::string> keep = {};
  std::string outputs = "";  // beside y
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

// Constants of all rows; TYPE is the row's. `w2` and `b2` have a one before.
std::string TextOf(const Row& row) {
  const std::string text =
      absl::StrCat("<ir_version: 10, opset_import: [\"\" : ", row.opset, "]>\n",
                   "g (TYPE[2, 3, 4] x) => (TYPE[2, 3, 4] y", row.outputs, ") <\n",
                   "TYPE[4] w = {1, 0.5, -2, 3}, TYPE[4] b = {0.1, 0.2, 0.3, 0.4}, "
                   "TYPE[1, 4] w2 = {1, 0.5, -2, 3}, TYPE[1, 4] b2 = {0.1, 0.2, 0.3, 0.4}, "
                   "TYPE[3, 1] tall = {1, 2, 3}, "
                   "TYPE[3, 4] wide = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, "
                   "TYPE[1, 1, 1] deep = {0.5}, TYPE[4] eps4 = {1e-5, 1e-5, 1e-5, 1e-5},\n"
                   "int64[1] last = {-1}, int64[1] third = {2}, int64[2] both = {2, 1}, "
                   "int64[1] middle = {1}, int64[2] outer = {0, 2}>\n{\n",
                   row.body, "}\n");
  return absl::StrReplaceAll(text, {{"TYPE", row.type}});
}

std::string Number(const std::string& name, const std::string& value) {
  return absl::StrCat(name, " = Constant <value = TYPE {", value, "}> ()\n");
}

// Without a scale and bias; `inverse` and `normal` differ from row to row.
std::string Centre(const std::string& axes = "last") {
  return absl::StrCat("mean = ReduceMean (x, ", axes, ")\n", "d = Sub (x, mean)\n",
                      Number("two", "2"), Number("eps", "0.00001"));
}
std::string Variance(const std::string& axes = "last") {
  return absl::StrCat("square = Pow (d, two)\n", "var = ReduceMean (square, ", axes, ")\n",
                      "padded = Add (var, eps)\n");
}
std::string Normal(const std::string& axes = "last") {
  return absl::StrCat(Centre(axes), Variance(axes), "root = Sqrt (padded)\n",
                      "normal = Div (d, root)\n");
}
// The same in the form that ReduceMean had before version 18.
std::string NormalWithAttributes() {
  return absl::StrReplaceAll(Normal(),
                             {{"ReduceMean (x, last)", "ReduceMean <axes = [-1]> (x)"},
                              {"ReduceMean (square, last)", "ReduceMean <axes = [-1]> (square)"}});
}
const char kAffine[] = "scaled = Mul (normal, w)\ny = Add (scaled, b)\n";

std::vector<Row> LayerNormRows() {
  const std::vector<std::string> norm = {"LayerNormalization"};
  const std::string variance = Centre() + Variance();
  return {
      {"AsExported", Normal() + kAffine, norm},
      {"Double", Normal() + kAffine, norm, "double"},
      {"PositiveAxis", Normal("third") + kAffine, norm},
      {"Swapped",
       Centre() + "square = Mul (d, d)\nvar = ReduceMean (square, last)\npadded = Add (eps, var)\n"
                  "root = Sqrt (padded)\nnormal = Div (d, root)\nscaled = Mul (w, normal)\n"
                  "y = Add (b, scaled)\n",
       norm},
      {"TwoSubtractions",
       variance + "e = Sub (x, mean)\nroot = Sqrt (padded)\nnormal = Div (e, root)\n" + kAffine,
       norm},
      {"Reciprocal",
       variance + "root = Sqrt (padded)\ninverse = Reciprocal (root)\nnormal = Mul (inverse, d)\n" +
           kAffine,
       norm},
      {"OneDividedBy",
       variance + Number("one", "1") +
           "root = Sqrt (padded)\ninverse = Div (one, root)\nnormal = Mul (d, inverse)\n" + kAffine,
       norm},
      {"InversePower",
       variance + Number("p", "-0.5") + "inverse = Pow (padded, p)\nnormal = Mul (d, inverse)\n" +
           kAffine,
       norm},
      {"RootAsPower",
       variance + Number("p", "0.5") + "root = Pow (padded, p)\nnormal = Div (d, root)\n" + kAffine,
       norm},
      {"ScaleBeforeInput",
       variance + "root = Sqrt (padded)\nr = Reciprocal (root)\ninverse = Mul (r, w)\n"
                  "scaled = Mul (d, inverse)\ny = Add (scaled, b)\n",
       norm},
      {"FoldedBias",
       variance + "root = Sqrt (padded)\nr = Reciprocal (root)\ninverse = Mul (r, w)\n"
                  "xs = Mul (x, inverse)\nms = Mul (mean, inverse)\nshift = Sub (b, ms)\n"
                  "y = Add (xs, shift)\n",
       norm},
      {"PooledMeans",
       "mean = GlobalAveragePool (x)\nd = Sub (x, mean)\nsquare = Mul (d, d)\n"
       "var = GlobalAveragePool (square)\n" +
           Number("eps", "0.00001") +
           "padded = Add (var, eps)\nroot = Sqrt (padded)\nnormal = Div (d, root)\n" + kAffine,
       norm},
      {"NoScale", Normal() + "y = Identity (normal)\n", {"LayerNormalization", "Identity"}},
      {"NoBias", Normal() + "y = Mul (normal, w)\n", norm},
      {"BiasAlone", Normal() + "y = Add (normal, b)\n", norm},
      {"TwoAxes", Normal("both") + "scaled = Mul (normal, wide)\ny = Add (scaled, wide)\n", norm},
      {"ParametersWithOnesBefore",
       Normal() + "scaled = Mul (normal, w2)\ny = Add (scaled, b2)\n",
       {"Reshape", "Reshape", "LayerNormalization"}},
      {"ScaleOfAnotherShape",
       Normal() + "scaled = Mul (normal, tall)\ny = Add (scaled, b)\n",
       {"LayerNormalization", "Mul", "Add"}},
      {"ScaleIsKept", Normal() + kAffine, norm, "float", 20, {"w", "b"}},
      // Near misses.
      {"OldOpset", NormalWithAttributes() + kAffine, {}, "float", 16},
      {"OtherAxis", Normal("middle") + kAffine, {}},
      {"AxesApart", Normal("outer") + kAffine, {}},
      {"AxesDiffer",
       Centre() + Variance("both") + "root = Sqrt (padded)\nnormal = Div (d, root)\n" + kAffine,
       {}},
      {"EpsilonPerElement",
       Centre() +
           "square = Pow (d, two)\nvar = ReduceMean (square, last)\n"
           "padded = Add (var, eps4)\nroot = Sqrt (padded)\nnormal = Div (d, root)\n" +
           kAffine,
       {}},
      {"EpsilonIsKept",
       "mean = ReduceMean (x, last)\nd = Sub (x, mean)\nsquare = Mul (d, d)\n"
       "var = ReduceMean (square, last)\npadded = Add (var, deep)\nroot = Sqrt (padded)\n"
       "normal = Div (d, root)\n" +
           std::string(kAffine),
       {},
       "float",
       20,
       {"deep"}},
      {"Cubed",
       Number("three", "3") + Centre() +
           "square = Pow (d, three)\nvar = ReduceMean (square, last)\npadded = Add (var, eps)\n"
           "root = Sqrt (padded)\nnormal = Div (d, root)\n" +
           kAffine,
       {}},
      {"NormOfAnother",
       Normal() + "other = Add (x, w)\nm2 = ReduceMean (other, last)\ne = Sub (other, m2)\n"
                  "y = Div (e, root)\n",
       {}},
      {"VarianceReadElsewhere",
       Normal() + kAffine + "v = Identity (var)\n",
       {},
       "float",
       20,
       {},
       ", float[2, 3, 1] v"},
      {"VarianceReadByASubgraph",
       Normal() + kAffine +
           "yes = Constant <value = bool {1}> ()\n"
           "v = If (yes) <"
           "then_branch = a () => (float[2, 3, 1] p) { p = Identity (var) }, "
           "else_branch = b () => (float[2, 3, 1] q) { q = Identity (var) }>\n",
       {},
       "float",
       20,
       {},
       ", float[2, 3, 1] v"},
      {"DeviationIsOutput", Normal() + kAffine, {}, "float", 20, {}, ", float[2, 3, 1] root"},
      {"MeanIsKept", Normal() + kAffine, {}, "float", 20, {"mean"}},
      {"NormalIsKept",
       Normal() + kAffine,
       {"LayerNormalization", "Mul", "Add"},
       "float",
       20,
       {"normal"}},
  };
}

const char kHalfAfter[] = "p = Mul (x, sum)\ny = Mul (p, half)\n";

std::string Erf(const std::string& last, const std::string& divisor = "1.4142135381698608") {
  return absl::StrCat(Number("s", divisor), Number("one", "1"), Number("half", "0.5"),
                      "z = Div (x, s)\ne = Erf (z)\nsum = Add (e, one)\n", last);
}

std::string Tanh(const std::string& argument, const std::string& last = kHalfAfter,
                 const std::string& scale = "0.7978845608028654",
                 const std::string& cube = "0.044715") {
  return absl::StrCat(Number("c", scale), Number("k", cube), Number("one", "1"),
                      Number("half", "0.5"), Number("three", "3"), argument,
                      "t = Tanh (u)\nsum = Add (one, t)\n", last);
}
const char kPower[] = "p3 = Pow (x, three)\nk3 = Mul (p3, k)\nin = Add (x, k3)\nu = Mul (in, c)\n";

std::vector<Row> GeluRows() {
  const std::vector<std::string> gelu = {"Gelu"};
  return {
      {"ErfHalfLast", Erf(kHalfAfter), gelu},
      {"ErfHalfWithX", Erf("h = Mul (x, half)\ny = Mul (h, sum)\n"), gelu},
      {"ErfHalfWithSum", Erf("h = Mul (half, sum)\ny = Mul (h, x)\n"), gelu},
      {"ErfDivideByTwo", Erf(Number("two", "2") + "p = Mul (sum, x)\ny = Div (p, two)\n"), gelu},
      {"ErfTimesInverse",
       Number("s", "0.7071067690849304") + Number("one", "1") + Number("half", "0.5") +
           "z = Mul (s, x)\ne = Erf (z)\nsum = Add (one, e)\n" + kHalfAfter,
       gelu},
      {"ErfOfAProduct",
       Number("s", "1.4142135381698608") + Number("one", "1") +
           "q = Mul (x, w)\nz = Div (q, s)\ne = Erf (z)\nsum = Add (one, e)\n"
           "p = Mul (q, sum)\ny = Mul (p, deep)\n",
       {"Mul", "Gelu"}},
      {"ErfXReadElsewhere",
       Erf(kHalfAfter + std::string("r = Identity (x)\n")),
       {"Gelu", "Identity"},
       "float",
       20,
       {},
       ", float[2, 3, 4] r"},
      {"ErfDouble", Erf(kHalfAfter, "1.4142135623730951"), gelu, "double"},
      {"TanhPower", Tanh(kPower), gelu},
      {"TanhDouble", Tanh(kPower), gelu, "double"},
      {"TanhCubeOfProducts",
       Tanh("k1 = Mul (k, x)\nk2 = Mul (x, k1)\nk3 = Mul (x, k2)\nin = Add (x, k3)\n"
            "u = Mul (c, in)\n",
            "h = Mul (half, sum)\ny = Mul (x, h)\n"),
       gelu},
      {"TanhSquare",
       Tanh("x2 = Mul (x, x)\nx3 = Mul (x2, x)\nk3 = Mul (k, x3)\nin = Add (k3, x)\n"
            "u = Mul (c, in)\n",
            "h = Mul (half, x)\ny = Mul (h, sum)\n"),
       gelu},
      {"TanhOnePlus",
       Tanh("cx = Mul (x, c)\nkx = Mul (x, k)\nk2 = Mul (kx, x)\nin = Add (k2, one)\n"
            "u = Mul (cx, in)\n"),
       gelu},
      {"TanhOfASum",
       Tanh("q = Add (x, w)\np3 = Pow (q, three)\nk3 = Mul (p3, k)\nin = Add (q, k3)\n"
            "u = Mul (in, c)\n",
            "p = Mul (q, sum)\ny = Mul (p, half)\n"),
       {"Add", "Gelu"}},
      // Near misses.
      {"OldOpset", Erf(kHalfAfter), {}, "float", 19},
      {"ErfDivisorOff", Erf(kHalfAfter, "1.41420"), {}},
      {"ErfDivisorOfFloatInDouble", Erf(kHalfAfter), {}, "double"},
      {"TanhScaleOff", Tanh(kPower, kHalfAfter, "0.79788"), {}},
      {"TanhCubeOff", Tanh(kPower, kHalfAfter, "0.7978845608028654", "0.0447"), {}},
      {"HalfOff", Erf(Number("h", "0.51") + "p = Mul (x, sum)\ny = Mul (p, h)\n"), {}},
      {"OtherFactor", Erf("p = Mul (w, sum)\ny = Mul (p, half)\n"), {}},
      {"XTwice", Erf("p = Mul (x, sum)\nq = Mul (p, x)\ny = Mul (q, half)\n"), {}},
      {"ErfReadElsewhere",
       Erf(kHalfAfter + std::string("r = Identity (e)\n")),
       {},
       "float",
       20,
       {},
       ", float[2, 3, 4] r"},
      {"SumIsOutput", Erf(kHalfAfter), {}, "float", 20, {}, ", float[2, 3, 4] sum"},
      {"ProductIsKept", Erf(kHalfAfter), {}, "float", 20, {"p"}},
      {"ConstantIsKept", Erf("p = Mul (x, sum)\ny = Mul (p, deep)\n"), {}, "float", 20, {"deep"}},
      {"Silu", "s = Sigmoid (x)\ny = Mul (x, s)\n", {}},
  };
}

std::vector<double> Result(const Graph& graph, bool in_double) {
  CompileOptions options;
  options.device = &DefaultEnvironment().cpu();
  options.operators = &DefaultEnvironment().operators();
  Tensor x(in_double ? DType::kDouble : DType::kFloat, {2, 3, 4});
  for (int i = 0; i < 24; ++i) {
    const double value = 3 * std::sin(i * i + 1.0);
    if (in_double) {
      x.data<double>()[i] = value;
    } else {
      x.data<float>()[i] = static_cast<float>(value);
    }
  }
  auto values = Session(graph, options).Run({{"x", x}}, nullptr);
  EXPECT_TRUE(values.ok()) << values.status();
  return values.ok() ? Values(values->at("y")) : std::vector<double>();
}

class Recognise : public testing::TestWithParam<Row> {};

TEST_P(Recognise, Holds) {
  const Row& row = GetParam();
  const Graph before = TypedGraph(TextOf(row));
  const std::optional<Graph> after = Recognised(before, row.keep, row.left);
  if (!after.has_value()) return;
  const bool in_double = row.type == "double";
  const std::vector<double> expected = Result(before, in_double), got = Result(*after, in_double);
  ASSERT_EQ(got.size(), expected.size());
  // epsilon is a float attribute in either type
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], expected[i], in_double ? 1e-11 : 2e-6) << i;
  }
}

const auto kName = [](const auto& info) { return info.param.name; };
INSTANTIATE_TEST_SUITE_P(LayerNormalization, Recognise, testing::ValuesIn(LayerNormRows()), kName);
INSTANTIATE_TEST_SUITE_P(Gelu, Recognise, testing::ValuesIn(GeluRows()), kName);

TEST(Recognise, GivesTheAttributesAndTheName) {
  Graph graph = TypedGraph(TextOf({"", Normal("both") + "y = Mul (normal, wide)\n", {}}));
  graph.nodes.back().name = "norm";
  ASSERT_EQ(RecogniseOperators(&graph, {}), 1);
  const Node& node = graph.nodes.back();
  EXPECT_EQ(node.name, "norm");
  EXPECT_EQ(node.inputs, (std::vector<std::string>{"x", "wide"}));
  EXPECT_EQ(node.outputs, (std::vector<std::string>{"y"}));
  EXPECT_EQ(node.Int("axis", 0), -2);
  EXPECT_EQ(node.Float("epsilon", 0), 1e-5f);
}

TEST(Recognise, TakesAllThatFollowOneAnother) {
  const std::string norm = Normal() + "scaled = Mul (normal, w)\nx1 = Add (scaled, b)\n";
  const std::string gelu = Number("s", "1.4142135381698608") + Number("one", "1") +
                           "z = Div (x1, s)\ne = Erf (z)\nsum = Add (e, one)\n"
                           "p = Mul (x1, sum)\nx2 = Mul (p, deep)\n";
  const std::string last =
      "m2 = ReduceMean (x2, last)\nd2 = Sub (x2, m2)\nq2 = Mul (d2, d2)\n"
      "v2 = ReduceMean (q2, last)\na2 = Add (v2, eps)\nr2 = Sqrt (a2)\ny = Div (d2, r2)\n";
  Graph graph = TypedGraph(TextOf({"", norm + gelu + last, {}}));
  EXPECT_EQ(RecogniseOperators(&graph, {}), 3);
  EXPECT_EQ(OperatorsOf(graph),
            (std::vector<std::string>{"LayerNormalization", "Gelu", "LayerNormalization"}));
}

// What follows the normalisation looks like a scale, but is a part of it.
TEST(Recognise, DoesNotReadWhatItRemoves) {
  auto graph = InferenceGraph(TextModel(
      "<ir_version: 10, opset_import: [\"\" : 20]>\n"
      "g (float[4] x) => (float[4] y) <int64[1] last = {-1}, float eps = {0.1}> {\n"
      "m = ReduceMean (x, last)\nd = Sub (x, m)\nq = Mul (d, d)\nv = ReduceMean (q, last)\n"
      "a = Add (v, eps)\nr = Sqrt (a)\nn = Div (d, r)\ny = Mul (n, d)\n}"));
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_TRUE(InferTypes(&*graph, DefaultEnvironment().operators()).ok());
  EXPECT_EQ(RecogniseOperators(&*graph, {}), 0);
  EXPECT_TRUE(FindingsToStatus(CheckGraph(*graph)).ok()) << ToText(*graph);
}

}  // namespace onward::recognise_test
