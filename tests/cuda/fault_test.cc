// SPDX-License-Identifier: Apache-2.0
// Numbers on the device that a kernel cannot use, such as an index outside of its bounds, are
// errors that name the node, and leave everything as it was.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "core/runtime/session.h"
#include "tests/cuda/emulated_environment.h"
#include "tests/support/text_model.h"
#include "training_info/author.h"
#include "training_info/lower.h"
#include "training_info/step.h"

namespace onward::fault_test {

using testing::HasSubstr;

struct Row {
  std::string name, graph;
  std::string input;  // what is wrong at times
  Tensor good, bad;
  std::string message;
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

Tensor Int32s(std::initializer_list<int32_t> values) {
  return Tensor::FromValues<int32_t>(Shape{static_cast<int64_t>(values.size())}, values);
}
Tensor Pairs(std::initializer_list<int64_t> values) {
  return Tensor::FromValues<int64_t>(Shape{static_cast<int64_t>(values.size()) / 2, 2}, values);
}

std::vector<Row> Rows() {
  const std::string x = "float[70,3] x", data = "(" + x + ", int64[2] i)";
  return {
      {"Gather", "g " + data + " => (float[2,3] y) { e = Exp(x) [pick] y = Gather(e, i) }", "i",
       Int64s({69, -70}), Int64s({3, 70}),
       "'pick' (Gather): index 70 at position 1 is outside [-70, 70)"},
      {"GatherNegative", "g " + data + " => (float[2,3] y) { e = Exp(x) [pick] y = Gather(e, i) }",
       "i", Int64s({0, 1}), Int64s({-71, 1}),
       "'pick' (Gather): index -71 at position 0 is outside [-70, 70)"},
      {"GatherElements",
       "g (" + x +
           ", int64[1,2] i) => (float[1,2] y) { e = Exp(x) [pick] y = GatherElements <axis "
           "= 1> (e, i) }",
       "i", Pairs({0, -3}), Pairs({0, 3}),
       "'pick' (GatherElements): index 3 at position 1 is outside [-3, 3)"},
      {"GatherND",
       "g (" + x + ", int64[2,2] i) => (float[2] y) { e = Exp(x) [pick] y = GatherND(e, i) }", "i",
       Pairs({0, 1, 69, 2}), Pairs({0, 1, 69, 3}),
       "'pick' (GatherND): index 3 at position 3 is outside [-3, 3)"},
      {"ScatterElements",
       "g (" + x +
           ", int64[1,2] i, float[1,2] u) => (float[70,3] y) { e = Exp(x) [put] y = "
           "ScatterElements <axis = 0> (e, i, u) }",
       "i", Pairs({0, 69}), Pairs({0, 99}),
       "'put' (ScatterElements): index 99 at position 1 is outside [-70, 70)"},
      {"ScatterND",
       "g (" + x +
           ", int64[1,2] i, float[1] u) => (float[70,3] y) { e = Exp(x) [put] y = "
           "ScatterND(e, i, u) }",
       "i", Pairs({0, 2}), Pairs({-90, 2}),
       "'put' (ScatterND): index -90 at position 0 is outside [-70, 70)"},
      {"ReverseSequence",
       "g (" + x +
           ", int64[3] i) => (float[70,3] y) { e = Exp(x) [turn] y = ReverseSequence(e, i) "
           "}",
       "i", Int64s({70, 1, 0}), Int64s({70, 71, 0}),
       "'turn' (ReverseSequence): sequence length 71 at position 1 is outside [0, 71)"},
      {"CrossEntropy",
       "g (" + x +
           ", int64[70] i) => (float y) { e = Exp(x) [loss] y = SoftmaxCrossEntropyLoss(e, "
           "i) }",
       "i", Tensor::Zeros(DType::kInt64, Shape{70}),
       [] {
         Tensor t = Tensor::Zeros(DType::kInt64, Shape{70});
         t.data<int64_t>()[64] = 3;
         return t;
       }(),
       "'loss' (SoftmaxCrossEntropyLoss): label 3 at position 64 is outside [0, 3)"},
      {"Recurrence",
       "g (float[5,2,3] x, int32[2] i, float[1,4,3] w, float[1,4,4] r) => (float[5,1,2,4] y) { e = "
       "Exp(x) [run] y = RNN <hidden_size = 4> (e, w, r, , i) }",
       "i", Int32s({5, 0}), Int32s({5, 6}),
       "'run' (RNN): sequence length 6 at position 1 is outside [0, 6)"},
  };
}

TensorMap Feeds(const Graph& graph, const Row& row, bool good) {
  TensorMap feeds;
  for (const NamedType& in : graph.FeedInputs()) {
    if (in.name == row.input) {
      feeds[in.name] = good ? row.good : row.bad;
      continue;
    }
    Tensor t(in.type.dtype, *in.type.StaticShape());
    for (int64_t i = 0; i < t.elements(); ++i) {
      t.data<float>()[i] = static_cast<float>(i % 7) / 10;
    }
    feeds[in.name] = t;
  }
  return feeds;
}

class CudaFaults : public testing::TestWithParam<Row> {};

TEST_P(CudaFaults, NameTheNode) {
  const Row& row = GetParam();
  const auto environment = EmulatedEnvironment();
  const Graph graph =
      RunnableGraph(TextModel("<ir_version: 10, opset_import: [\"\" : 20]> " + row.graph),
                    *environment)
          .value();
  Session there(graph, environment->compile_options());
  Session here(graph, DefaultEnvironment().compile_options());
  const auto expected = here.Run(Feeds(graph, row, true), nullptr);
  ASSERT_TRUE(expected.ok()) << expected.status();
  // As the first run, as one that is recorded, and as one that is replayed.
  for (int round = 0; round < 4; ++round) {
    const auto found = there.Run(Feeds(graph, row, true), nullptr);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_THAT(Values(found->at("y")),
                testing::Pointwise(testing::DoubleNear(1e-5), Values(expected->at("y"))));
    const auto refused = there.Run(Feeds(graph, row, false), nullptr);
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(refused.status().message(), HasSubstr(row.message)) << round;
    EXPECT_FALSE(here.Run(Feeds(graph, row, false), nullptr).ok());
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, CudaFaults, testing::ValuesIn(Rows()),
                         [](const auto& info) { return info.param.name; });

TEST(CudaFaultsOfSteps, StopAssignments) {
  const auto environment = EmulatedEnvironment();
  AuthorOptions options;
  options.optimizer = OptimizerSpec{"adam", {}};
  const Model model =
      MakeTrainable(TextModel("g (int64[4] x) => (float[4,3] y) <float[5,3] table = "
                              "{1,2,3,4,5,6,7,8,9,1,2,3,4,5,6}> { y = Gather(table, x) }"),
                    options, DefaultEnvironment())
          .value()
          .model;
  auto expected = Open(model, *environment), found = Open(model, *environment);
  const Tensor rows = Int64s({0, 1, 4, 2}), labels = Int64s({0, 1, 2, 0});
  for (int step = 0; step < 4; ++step) {
    for (const auto& [x, label] : std::vector<std::pair<Tensor, Tensor>>{
             {Int64s({0, 5, 4, 2}), labels}, {rows, Int64s({0, 1, 3, 0})}}) {
      const auto refused = found->Step({{"x", x}, {"label", label}});
      EXPECT_THAT(refused.status().message(), HasSubstr("is outside [")) << step;
    }
    EXPECT_TRUE(
        SameVariables(std::as_const(*expected).variables(), std::as_const(*found).variables()))
        << step;
    ASSERT_TRUE(expected->Step({{"x", rows}, {"label", labels}}).ok());
    ASSERT_TRUE(found->Step({{"x", rows}, {"label", labels}}).ok());
    EXPECT_TRUE(
        SameVariables(std::as_const(*expected).variables(), std::as_const(*found).variables()))
        << step;
  }
}

}  // namespace onward::fault_test
