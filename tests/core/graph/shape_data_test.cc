// SPDX-License-Identifier: Apache-2.0
// Sizes that exporters compute in the graph are known to inference, as numbers or by name.
#include "core/graph/shape_data.h"

#include <gtest/gtest.h>

#include <ostream>

#include "core/graph/infer.h"
#include "tests/support/text_model.h"

namespace onward::shape_data_test {

struct ShapeCase {
  std::string name, graph, type;  // of y
};
void PrintTo(const ShapeCase& c, std::ostream* out) { *out << c.name; }

class ShapeDataTest : public testing::TestWithParam<ShapeCase> {};

TEST_P(ShapeDataTest, InferredTypeIs) {
  auto graph = InferenceGraph(TextModel(GetParam().graph));
  ASSERT_TRUE(graph.ok()) << graph.status();
  const absl::Status status = InferTypes(&*graph, DefaultEnvironment().operators());
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(graph->TypeOf("y")->ToString(), GetParam().type);
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, ShapeDataTest,
    testing::Values(
        ShapeCase{"ReshapeByGatheredDims",  // between recurrent layers
                  "m (float[T, B, 2, 4] x) => (y) <int64 zero = {0}, int64 one = {1}, "
                  "int64[1] axis = {0}, int64[1] rest = {-1}> { s = Shape(x) t = Gather(s, zero) "
                  "b = Gather(s, one) t1 = Unsqueeze(t, axis) b1 = Unsqueeze(b, axis) "
                  "n = Concat <axis = 0> (t1, b1, rest) y = Reshape(x, n) }",
                  "float[T, B, 8]"},
        ShapeCase{"ReshapeKeepsZeros",
                  "m (float[T, 2, B, 4] x) => (y) <int64[3] n = {0, -1, 4}> { y = Reshape(x, n) }",
                  "float[T, ?, 4]"},
        ShapeCase{"ReshapeCancelsSymbols",
                  "m (float[T, B, 6] x) => (y) <int64[1] rest = {-1}, int64[1] two = {2}> { "
                  "s = Shape <start = 0, end = 1> (x) n = Concat <axis = 0> (s, rest, two) "
                  "t = Reshape(x, n) p = Shape <start = 0, end = 2> (x) "
                  "n2 = Concat <axis = 0> (p, rest) y = Reshape(t, n2) }",
                  "float[T, B, ?]"},
        ShapeCase{"SliceOfShape",
                  "m (float[N, 3, 4] x, float[M] v) => (y) <int64[1] a = {0}, int64[1] b = {1}, "
                  "int64[1] rest = {-1}> { s = Shape(x) c = Slice(s, a, b) "
                  "n = Concat <axis = 0> (c, rest) y = Reshape(x, n) }",
                  "float[N, 12]"},
        ShapeCase{
            "Arithmetic",
            "m (float[N, 3, 4] x) => (y) <int64 one = {1}, int64 two = {2}, int64[1] a = {0}, "
            "int64[1] rest = {-1}> { s = Shape(x) c = Gather(s, one) d = Gather(s, two) "
            "p = Mul(c, d) q = Div(p, two) r = Unsqueeze(q, a) "
            "n = Concat <axis = 0> (rest, r) y = Reshape(x, n) }",
            "float[?, 6]"},
        ShapeCase{"ExpandWhereMinusOne",
                  "m (float[1, 4] x, float[N, 4] w) => (y) <int64[2] given = {-1, 4}, "
                  "int64[2] minus = {-1, -1}> { s = Shape(w) e = Equal(given, minus) "
                  "n = Where(e, s, given) y = Expand(x, n) }",
                  "float[N, 4]"},
        ShapeCase{"ConstantOfShape",
                  "m (float[N, 4] x) => (y) { s = Shape(x) y = ConstantOfShape <value = float[1] "
                  "{0}> (s) }",
                  "float[N, 4]"},
        ShapeCase{
            "NumbersAreConstants",  // Slice's ends decide a length
            "m (float[8, 4] x) => (y) <int64 zero = {0}, int64 two = {2}, int64[1] a = {0}> { "
            "s = Shape(x) r = Gather(s, zero) h = Div(r, two) e = Unsqueeze(h, a) "
            "y = Slice(x, a, e, a) }",
            "float[4, 4]"},
        ShapeCase{"UnknownStaysUnknown",
                  "m (float[N, 4] x, int64[2] n) => (y) { y = Reshape(x, n) }", "float[?, ?]"},
        ShapeCase{"HugeNumbersAreForgotten",
                  "m (float[4] x) => (y) <int64[1] big = {9223372036854775807}> { "
                  "n = Mul(big, big) y = Reshape(x, n) }",
                  "float[?]"}),
    [](const auto& info) { return info.param.name; });

}  // namespace onward::shape_data_test
