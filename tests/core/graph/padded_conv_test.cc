// SPDX-License-Identifier: Apache-2.0
// Zeros around the pictures of a convolution that it can put there itself, and near misses.
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/runtime/session.h"
#include "environment/environment.h"
#include "tests/support/recognised.h"

namespace onward::padded_conv_test {

struct Row {
  std::string name;
  std::string body;           // from x and w to y
  std::vector<int64_t> pads;  // of the one Conv that is left; empty: nothing changes
  std::vector<std::string> keep = {};
  int opset = 20;
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

std::string TextOf(const Row& row) {
  return absl::StrCat(
      "<ir_version: 10, opset_import: [\"\" : ", row.opset, "]>\n",
      "g (float[2, 3, 5, 6] x, float[4, 3, 3, 3] w) => (float[N, M, H, W] y) <\n",
      "int64[8] uneven = {0, 0, 0, 1, 0, 0, 2, 1}, int64[8] channels = {0, 1, 0, 0, 0, 0, 0, 0}, "
      "int64[8] less = {0, 0, -1, 0, 0, 0, 0, 0}, int64[4] both = {1, 2, 3, 0}, "
      "int64[2] last = {-1, 2}, "
      "float zero = {0}, float one = {1}>\n{\n",
      row.body, "}\n");
}

const char kConv[] = "y = Conv (p, w)\n";

std::vector<Row> Rows() {
  return {
      {"Uneven", absl::StrCat("p = Pad (x, uneven)\n", kConv), {0, 1, 2, 1}},
      {"OfAGivenZero", absl::StrCat("p = Pad (x, uneven, zero)\n", kConv), {0, 1, 2, 1}},
      {"AlongSomeAxes", absl::StrCat("p = Pad (x, both, zero, last)\n", kConv), {2, 1, 0, 3}},
      {"BesideItsOwn",
       "p = Pad (x, uneven)\ny = Conv <pads = [1, 0, 0, 3]> (p, w)\n",
       {1, 1, 2, 4}},
      {"Valid", "p = Pad (x, uneven)\ny = Conv <auto_pad = \"VALID\"> (p, w)\n", {0, 1, 2, 1}},
      {"Strided", "p = Pad (x, uneven)\ny = Conv <strides = [2, 2]> (p, w)\n", {0, 1, 2, 1}},
      // Near misses.
      {"Same", "p = Pad (x, uneven)\ny = Conv <auto_pad = \"SAME_UPPER\"> (p, w)\n", {}},
      {"OfOnes", absl::StrCat("p = Pad (x, uneven, one)\n", kConv), {}},
      {"OfMirrored", absl::StrCat("p = Pad <mode = \"reflect\"> (x, uneven)\n", kConv), {}},
      {"Cut", absl::StrCat("p = Pad (x, less)\n", kConv), {}},
      {"OfChannels",
       "p = Pad (x, channels)\ns = Identity (w)\nv = Pad (s, channels)\ny = Conv (p, v)\n",
       {}},
      {"ReadTwice",
       absl::StrCat("p = Pad (x, uneven)\ns = ReduceSum (p)\n",
                    "c = Conv (p, w)\ny = Add (c, s)\n"),
       {}},
      {"Kept", absl::StrCat("p = Pad (x, uneven)\n", kConv), {}, {"p"}},
      {"AVariable", absl::StrCat("p = Pad (x, uneven)\n", kConv), {}, {"uneven"}},
  };
}

Tensor Result(const Graph& graph) {
  Session session(graph, DefaultEnvironment().compile_options());
  TensorMap feeds;
  for (const auto& [name, shape] :
       {std::pair("x", Shape{2, 3, 5, 6}), std::pair("w", Shape{4, 3, 3, 3})}) {
    Tensor t(DType::kFloat, shape);
    for (int64_t i = 0; i < t.elements(); ++i) {
      t.data<float>()[i] = static_cast<float>(i * 7 % 11) - 5;
    }
    feeds[name] = t;
  }
  auto results = session.Run(feeds, nullptr);
  EXPECT_TRUE(results.ok()) << results.status();
  return results.ok() ? results->at("y") : Tensor();
}

class PaddedConv : public testing::TestWithParam<Row> {};

TEST_P(PaddedConv, Holds) {
  const Row& row = GetParam();
  const Graph before = TypedGraph(TextOf(row));
  const std::optional<Graph> after =
      Recognised(before, row.keep,
                 row.pads.empty() ? std::vector<std::string>() : std::vector<std::string>{"Conv"});
  if (!after.has_value()) return;
  EXPECT_EQ(after->nodes.back().Ints("pads"), row.pads);
  const Tensor expected = Result(before), got = Result(*after);
  ASSERT_EQ(got.shape(), expected.shape());
  for (int64_t i = 0; i < got.elements(); ++i) {
    EXPECT_EQ(got.data<float>()[i], expected.data<float>()[i]) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Pads, PaddedConv, testing::ValuesIn(Rows()),
                         [](const auto& info) { return info.param.name; });

}  // namespace onward::padded_conv_test
