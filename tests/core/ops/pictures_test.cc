// SPDX-License-Identifier: Apache-2.0
// Numbers that arrive when a model runs and make no sense for operators on pictures: an error
// that says so, and neither a crash nor a search for memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/runtime/session.h"
#include "environment/environment.h"
#include "tests/support/text_model.h"
#include "training_info/lower.h"

namespace onward::pictures_test {

using ::testing::HasSubstr;

absl::StatusOr<Tensor> Result(const std::string& text, const TensorMap& feeds) {
  auto graph = RunnableGraph(TextModel(text), DefaultEnvironment());
  if (!graph.ok()) return graph.status();
  CompileOptions options;
  options.device = &DefaultEnvironment().cpu();
  options.operators = &DefaultEnvironment().operators();
  Session session(*std::move(graph), options);
  auto out = session.Run(feeds, nullptr);
  if (!out.ok()) return out.status();
  return out->at("y");
}

struct Refused {
  const char* graph;
  TensorMap feeds;
  const char* says;
};

void PrintTo(const Refused& row, std::ostream* out) { *out << row.graph; }

class Pictures : public testing::TestWithParam<Refused> {};

TEST_P(Pictures, RefuseWhatMakesNoSense) {
  const auto result = Result(GetParam().graph, GetParam().feeds);
  ASSERT_FALSE(result.ok()) << result->shape().ToString();
  EXPECT_THAT(std::string(result.status().message()), HasSubstr(GetParam().says));
}

std::vector<Refused> Rows() {
  const Tensor line = Floats({1, 2, 3, 4}), picture = Floats({1, 1, 2, 2}, {1, 2, 3, 4});
  const char* scaled = R"(g (float[4] x, float[N] s) => (float[M] y) { y = Resize (x, "", s) })";
  const char* sized =
      R"(g (float[4] x, int64[N] s) => (float[M] y) { y = Resize <mode = "cubic"> (x, "", "", s) })";
  const char* unpooled = R"(g (float[1,1,2,2] x, int64[1,1,2,2] i) => (float[A,B,C,D] y) {
      y = MaxUnpool <kernel_shape = [2, 2], strides = [2, 2]> (x, i) })";
  const char* aligned = R"(g (float[1,1,2,2] x, float[1,4] r, int64[1] i) => (float[A,B,C,D] y) {
      y = RoiAlign (x, r, i) })";
  const char* pooled = R"(g (float[1,1,2,2] x, float[1,5] r) => (float[A,B,C,D] y) {
      y = MaxRoiPool <pooled_shape = [2, 2]> (x, r) })";
  const char* folded = R"(g (float[1,4,4] x, int64[2] i, int64[2] b) => (float[A,B,C,D] y) {
      y = Col2Im (x, i, b) })";
  const Tensor columns = Floats({1, 4, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16});
  const auto indices = [](std::vector<int64_t> values) {
    return Tensor::FromValues<int64_t>({1, 1, 2, 2}, absl::MakeConstSpan(values));
  };
  const Tensor roi = Floats({1, 4}, {0, 0, 1, 1});
  return {
      {scaled, {{"x", line}, {"s", Floats({NAN})}}, "scales holds"},
      {scaled, {{"x", line}, {"s", Floats({-1})}}, "scales holds"},
      {scaled, {{"x", line}, {"s", Floats({1e9f})}}, "cannot be resized"},
      {scaled, {{"x", line}, {"s", Floats({2, 2})}}, "2 values"},
      {sized, {{"x", line}, {"s", Int64s({-1})}}, "sizes holds"},
      {sized, {{"x", line}, {"s", Int64s({int64_t{1} << 40})}}, "does not fit"},
      {unpooled, {{"x", picture}, {"i", indices({0, 1, 2, 16})}}, "lies outside"},
      {unpooled, {{"x", picture}, {"i", indices({0, 1, 2, -1})}}, "lies outside"},
      {aligned, {{"x", picture}, {"r", roi}, {"i", Int64s({1})}}, "batch_indices"},
      {aligned, {{"x", picture}, {"r", roi}, {"i", Int64s({-1})}}, "batch_indices"},
      {pooled, {{"x", picture}, {"r", Floats({1, 5}, {1, 0, 0, 1, 1})}}, "picture 1"},
      {pooled, {{"x", picture}, {"r", Floats({1, 5}, {-1, 0, 0, 1, 1})}}, "picture -1"},
      {pooled, {{"x", picture}, {"r", Floats({1, 5}, {NAN, 0, 0, 1, 1})}}, "picture nan"},
      {folded, {{"x", columns}, {"i", Int64s({3, 3})}, {"b", Int64s({3, 3})}}, "blocks"},
      {folded, {{"x", columns}, {"i", Int64s({4, 4})}, {"b", Int64s({2, 2})}}, "has room for"},
      {folded, {{"x", columns}, {"i", Int64s({3, 3})}, {"b", Int64s({0, 2})}}, "holds 0"},
  };
}

INSTANTIATE_TEST_SUITE_P(Refused, Pictures, testing::ValuesIn(Rows()));

// Regions as large as numbers go have samples without end, almost all of them outside.
TEST(HugeRegions, End) {
  for (const char* mode : {"avg", "max"}) {
    const auto y = Result(
        std::string("g (float[1,1,2,2] x, float[1,4] r, int64[1] i) => (float[A,B,C,D] y) {") +
            "y = RoiAlign <mode = \"" + mode + "\"> (x, r, i) }",
        {{"x", Floats({1, 1, 2, 2}, {1, 2, 3, 4})},
         {"r", Floats({1, 4}, {-1e12f, -1e12f, 1e12f, 1e12f})},
         {"i", Int64s({0})}});
    EXPECT_TRUE(y.ok()) << y.status();
  }
  const auto y = Result(R"(g (float[1,1,2,2] x, float[3,5] r) => (float[A,B,C,D] y) {
        y = MaxRoiPool <pooled_shape = [2, 2]> (x, r) })",
                        {{"x", Floats({1, 1, 2, 2}, {1, 2, 3, 4})},
                         {"r", Floats({3, 5}, {0, -1e38f, -1e38f, 1e38f, 1e38f,  //
                                               0, INFINITY, 0, INFINITY, 1,      //
                                               0, NAN, 0, 1, 1})}});
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_THAT(std::vector<float>(y->data<float>(), y->data<float>() + 8),
              testing::ElementsAre(1, 2, 3, 4, 0, 0, 0, 0));
  EXPECT_TRUE(std::isnan(y->data<float>()[8]));
}

}  // namespace onward::pictures_test
