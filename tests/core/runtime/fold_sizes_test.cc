// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/compile/fold_sizes.h"

#include <gtest/gtest.h>

#include "environment/environment.h"
#include "tests/support/recognised.h"
#include "tests/support/text_model.h"
#include "training_info/lower.h"

namespace onward::fold_sizes_test {

// What TorchScript writes for torch.nn.functional.pad(x, (1, 2, 0, 1)).
constexpr char kPad[] = R"(<ir_version: 8, opset_import: ["" : 17]>
  g (float[1, 2, 4, 4] x) => (float[1, 1, H, W] y) <float[1, 2, 2, 2] w = {1, 2, 3, 4, 5, 6, 7, 8}> {
    given = Constant <value = int64[4] {1, 2, 0, 1}> ()
    more = Constant <value = int64[1] {4}> ()
    zeros = ConstantOfShape <value = int64[1] {0}> (more)
    all = Concat <axis = 0> (given, zeros)
    pairs = Constant <value = int64[2] {-1, 2}> ()
    grouped = Reshape(all, pairs)
    axis = Constant <value = int64[1] {0}> ()
    last = Constant <value = int64[1] {-1}> ()
    least = Constant <value = int64[1] {-9223372036854775807}> ()
    reversed = Slice(grouped, last, least, axis, last)
    turned = Transpose <perm = [1, 0]> (reversed)
    flat = Reshape(turned, last)
    pads = Cast <to = 7> (flat)
    p = Pad <mode = "constant"> (x, pads)
    y = Conv(p, w)
  })";

TEST(FoldSizes, ShowsPadsToTheConvolution) {
  const auto graph = RunnableGraph(TextModel(kPad), DefaultEnvironment());
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(OperatorsOf(*graph), std::vector<std::string>{"Conv"});
  EXPECT_EQ(graph->nodes.back().Ints("pads"), (std::vector<int64_t>{0, 1, 1, 2}));
}

struct Row {
  std::string name, body;
  std::vector<std::string> left;
  std::string type = "int64[2]";
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

class FoldSizesTest : public testing::TestWithParam<Row> {};

TEST_P(FoldSizesTest, FoldsWhatIsKnown) {
  Graph graph = TypedGraph(
      "<ir_version: 10, opset_import: [\"\" : 20]>\n"
      "g (float[2, 3] x, int64[2] fed) => (" +
      GetParam().type +
      " y) <int64[2] fed = {1, 2}, int64[2] state = {3, 4}, "
      "int64[2] two = {5, 6}, float[2] f = {0.5, 1.5}, int64[1] most = {2000}, int64 zero = "
      "{0}>\n{" +
      GetParam().body + "}");
  FoldSizes({"state"}, DefaultEnvironment().cpu(), DefaultEnvironment().operators(), &graph);
  EXPECT_EQ(OperatorsOf(graph), GetParam().left) << ToText(graph);
}

INSTANTIATE_TEST_SUITE_P(
    Rows, FoldSizesTest,
    testing::ValuesIn(std::vector<Row>{
        {"OfConstants", "a = Add(two, two) b = Gather(a, zero) y = Neg(b)", {}, "int64"},
        {"ThroughFloats", "a = Cast <to = 7> (f) y = Mul(a, two)", {}},
        {"OfWhatIsFed", "y = Add(two, fed)", {"Add"}},
        {"OfVariables", "y = Add(two, state)", {"Add"}},
        {"OfInputs", "s = Shape(x) y = Add(two, s)", {"Shape", "Add"}},
        {"Floats", "y = Add(f, f)", {"Add"}, "float[2]"},
        {"Many",
         "y = ConstantOfShape <value = int64[1] {7}> (most)",
         {"ConstantOfShape"},
         "int64[2000]"},
        {"Draws",
         "a = RandomUniformLike <dtype = 1> (f) y = Cast <to = 7> (a)",
         {"RandomUniformLike", "Cast"}},
        {"WhatFails", "y = Gather(two, two)", {"Gather"}},
    }),
    [](const auto& info) { return info.param.name; });

}  // namespace onward::fold_sizes_test
