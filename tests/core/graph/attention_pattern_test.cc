// SPDX-License-Identifier: Apache-2.0
// Chains of small operators that are scaled dot-product attention, and near misses.
#include <gtest/gtest.h>

#include <cmath>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/graph/infer.h"
#include "core/graph/patterns/recognise.h"
#include "core/graph/verify.h"
#include "core/runtime/session.h"
#include "environment/environment.h"
#include "tests/support/recognised.h"
#include "tests/support/text_model.h"

namespace onward::attention_pattern_test {

const char kAttention[] = "ScaledDotProductAttention";

struct Row {
  std::string name;
  std::string body;               // from q, k, kt, rows, v and mask to y
  std::vector<std::string> left;  // operators afterwards, without Constants; empty: as before
  double scale = 1;
  std::vector<std::string> keep = {};
  std::string outputs = "";  // beside y
  std::string type = "float";
  int opset = 18;
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

// `kt` is a k^T that nothing transposed, `rows` a k as [batch, sequence, heads, depth].
std::string TextOf(const Row& row) {
  return absl::StrReplaceAll(
      absl::StrCat(
          "<ir_version: 10, opset_import: [\"\" : ", row.opset, "]>\n",
          "g (TYPE[2, 3, 5, 4] q, TYPE[2, 3, 6, 4] k, TYPE[2, 3, 4, 6] kt, "
          "TYPE[2, 6, 3, 4] rows, TYPE[2, 3, 6, 5] v, TYPE[2, 1, 1, 6] mask, TYPE s) => ",
          "(TYPE[2, 3, 5, 5] y", row.outputs, ") <\n",
          "TYPE two = {2}, TYPE[1, 1, 1, 1] half = {0.5}, TYPE[6] many = {1, 2, 3, 4, 5, 6}, "
          "TYPE[1, 1, 1, 1, 1] deep = {2}, TYPE one = {1},\n"
          "int64[1] last = {-1}, int64[1] end = {9223372036854775807}, int64 third = {3}>\n{\n",
          row.body, "}\n"),
      {{"TYPE", row.type}});
}

const char kTurn[] = "t = Transpose <perm = [0, 1, 3, 2]> (k)\n";
const char kProduct[] = "l = MatMul (q, t)\n";
const char kRest[] = "p = Softmax <axis = -1> (l)\ny = MatMul (p, v)\n";

std::string Scaled(const std::string& scaling) {
  return absl::StrCat(kTurn, "m = MatMul (q, t)\n", scaling, kRest);
}

std::vector<Row> Rows() {
  const std::vector<std::string> alone = {kAttention}, turned = {"Transpose", kAttention};
  return {
      {"Plain", absl::StrCat(kTurn, kProduct, kRest), alone},
      {"PositiveAxis",
       absl::StrCat(kTurn, kProduct, "p = Softmax <axis = 3> (l)\ny = MatMul (p, v)\n"), alone},
      {"Flattened",
       absl::StrCat(kTurn, kProduct,
                    "shape = Shape (l)\nf = Flatten <axis = 3> (l)\n"
                    "g = Softmax <axis = -1> (f)\np = Reshape (g, shape)\ny = MatMul (p, v)\n"),
       alone},
      {"Divided", Scaled("l = Div (m, two)\n"), alone, 0.5},
      {"Multiplied", Scaled("l = Mul (half, m)\n"), alone, 0.5},
      {"ByAPower",
       Scaled("h = Constant <value = float {0.5}> ()\nw = Pow (two, h)\nl = Div (m, w)\n"),
       {"Pow", kAttention},
       1 / std::sqrt(2.0)},
      {"ByTheDepth",
       Scaled("shape = Shape (q)\nd = Gather (shape, third)\nf = Cast <to = 1> (d)\n"
              "w = Sqrt (f)\nl = Div (m, w)\n"),
       {"Shape", "Gather", "Cast", "Sqrt", kAttention},
       0.5},
      {"QueriesScaled", absl::StrCat(kTurn, "n = Mul (q, half)\nl = MatMul (n, t)\n", kRest), alone,
       0.5},
      {"BothScaled",
       absl::StrCat("shape = Shape (q)\nd = Slice (shape, last, end)\nf = Cast <to = 1> (d)\n"
                    "w = Sqrt (f)\ni = Div (one, w)\nr = Sqrt (i)\nn = Mul (q, r)\n",
                    kTurn, "u = Mul (t, r)\nl = MatMul (n, u)\n", kRest),
       {"Shape", "Slice", "Cast", "Sqrt", "Div", "Sqrt", kAttention},
       0.5},
      {"KeysScaledBefore",
       absl::StrCat("n = Div (k, two)\nt = Transpose <perm = [0, 1, 3, 2]> (n)\n", kProduct, kRest),
       alone, 0.5},
      {"Masked", Scaled("n = Div (m, two)\nl = Add (n, mask)\n"), alone, 0.5},
      {"MaskFirst", Scaled("l = Add (mask, m)\n"), alone},
      {"KeysInRows", absl::StrCat("t = Transpose <perm = [0, 2, 3, 1]> (rows)\n", kProduct, kRest),
       turned},
      {"KeysTurnedTwice",
       absl::StrCat("n = Transpose <perm = [0, 2, 1, 3]> (rows)\n"
                    "t = Transpose <perm = [0, 1, 3, 2]> (n)\n",
                    kProduct, kRest),
       turned},
      {"KeysNotTransposed", absl::StrCat("l = MatMul (q, kt)\n", kRest), turned},
      {"KeysReadElsewhere",
       absl::StrCat(kTurn, kProduct, kRest, "r = Identity (t)\n"),
       {"Transpose", "Transpose", kAttention, "Identity"},
       1,
       {},
       ", float[2, 3, 4, 6] r"},
      {"ScaledQueriesReadElsewhere",
       absl::StrCat(kTurn, "n = Mul (q, half)\nl = MatMul (n, t)\n", kRest, "r = Identity (n)\n"),
       {"Mul", kAttention, "Identity"},
       1,
       {},
       ", float[2, 3, 5, 4] r"},
      // Near misses.
      {"OtherAxis",
       absl::StrCat(kTurn, kProduct, "p = Softmax <axis = 2> (l)\ny = MatMul (p, v)\n"),
       {}},
      {"FlattenedFurther",
       absl::StrCat(kTurn, kProduct,
                    "shape = Shape (l)\nf = Flatten <axis = 2> (l)\n"
                    "g = Softmax <axis = -1> (f)\np = Reshape (g, shape)\ny = MatMul (p, v)\n"),
       {}},
      {"ProbabilitiesReadElsewhere",
       absl::StrCat(kTurn, kProduct, kRest, "r = Identity (p)\n"),
       {},
       1,
       {},
       ", float[2, 3, 5, 6] r"},
      {"ScoresReadElsewhere",
       absl::StrCat(kTurn, kProduct, kRest, "r = Identity (l)\n"),
       {},
       1,
       {},
       ", float[2, 3, 5, 6] r"},
      {"ProbabilitiesAreOutput",
       absl::StrCat(kTurn, kProduct, kRest),
       {},
       1,
       {},
       ", float[2, 3, 5, 6] p"},
      {"ScoresAreKept", absl::StrCat(kTurn, kProduct, kRest), {}, 1, {"l"}},
      {"ProductIsKept", Scaled("l = Div (m, two)\n"), {}, 1, {"m"}},
      {"ScaleNotConstant", Scaled("l = Mul (m, s)\n"), {}},
      {"ScaleIsKept", Scaled("l = Mul (m, half)\n"), {}, 1, {"half"}},
      {"ScalePerKey", Scaled("l = Mul (m, many)\n"), {}},
      {"InverseScale", Scaled("l = Div (two, m)\n"), {}},
      {"SumOfProducts", Scaled("n = MatMul (q, kt)\nl = Sub (n, m)\n"), {}},
      {"Double", absl::StrCat(kTurn, kProduct, kRest), {}, 1, {}, "", "double"},
      {"OldOpset", absl::StrCat(kTurn, kProduct, kRest), {}, 1, {}, "", "float", 17},
  };
}

std::vector<double> Result(const Graph& graph) {
  CompileOptions options;
  options.device = &DefaultEnvironment().cpu();
  options.operators = &DefaultEnvironment().operators();
  TensorMap feeds;
  for (const NamedType& in : graph.FeedInputs()) {
    Tensor t(DType::kFloat, *in.type.StaticShape());
    for (int64_t i = 0; i < t.elements(); ++i) {
      t.data<float>()[i] = static_cast<float>(2 * std::sin(static_cast<double>(i * i) + 1.0));
    }
    feeds[in.name] = t;
  }
  auto values = Session(graph, options).Run(feeds, nullptr);
  EXPECT_TRUE(values.ok()) << values.status();
  return values.ok() ? Values(values->at("y")) : std::vector<double>();
}

class RecogniseAttention : public testing::TestWithParam<Row> {};

TEST_P(RecogniseAttention, Holds) {
  const Row& row = GetParam();
  const Graph before = TypedGraph(TextOf(row));
  const std::optional<Graph> after = Recognised(before, row.keep, row.left);
  if (!after.has_value()) return;
  for (const Node& node : after->nodes) {
    if (node.op_type == kAttention) {
      EXPECT_FLOAT_EQ(node.Float("scale", 0), static_cast<float>(row.scale));
    }
  }
  const std::vector<double> expected = Result(before), got = Result(*after);
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 2e-6) << i;
}

INSTANTIATE_TEST_SUITE_P(Rows, RecogniseAttention, testing::ValuesIn(Rows()),
                         [](const auto& info) { return info.param.name; });

}  // namespace onward::attention_pattern_test
