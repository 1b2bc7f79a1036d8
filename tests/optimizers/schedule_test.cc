// SPDX-License-Identifier: Apache-2.0
#include "optimizers/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace onward::schedule_test {

using ::testing::HasSubstr;

std::string ErrorOf(const char* text) {
  const absl::StatusOr<ScheduleSpec> spec = ParseSchedule(text);
  EXPECT_FALSE(spec.ok()) << text;
  return std::string(spec.status().message());
}

absl::Status Build(const char* text, double lr, Graph* graph) {
  const absl::StatusOr<ScheduleSpec> spec = ParseSchedule(text);
  if (!spec.ok()) return spec.status();
  GraphBuilder b(graph, nullptr);
  const Expr step = b.Input("T", ValueType::Of(DType::kInt64, {}));
  b.Output(BuildSchedule(b, *spec, lr, step, DType::kFloat));
  return b.status();
}

TEST(ParseSchedule, ReadsOptions) {
  const absl::StatusOr<ScheduleSpec> spec = ParseSchedule("cosine:warmup=100,total=1000,min=0.0");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->name, "cosine");
  EXPECT_EQ(spec->options.at("total"), 1000);
  EXPECT_FALSE(NeedsTotal(*spec));
  EXPECT_TRUE(NeedsTotal(*ParseSchedule("linear:warmup=10")));
  EXPECT_FALSE(NeedsTotal(*ParseSchedule("constant")));
}

TEST(ParseSchedule, RefusesWhatCannotWork) {
  EXPECT_THAT(ErrorOf("cosin"), HasSubstr("did you mean 'cosine'?"));
  EXPECT_THAT(ErrorOf("wave"), HasSubstr("valid: constant, cosine, cosine_restarts, exponential"));
  EXPECT_THAT(ErrorOf("cosine:totals=5"), HasSubstr("did you mean 'total'?"));
  EXPECT_THAT(ErrorOf("cosine:total=0"), HasSubstr("an integer >= 1"));
  EXPECT_THAT(ErrorOf("cosine:total=10,warmup=10"), HasSubstr("greater than warmup"));
  EXPECT_THAT(ErrorOf("linear:warmup=-1,total=10"), HasSubstr("an integer >= 0"));
  EXPECT_THAT(ErrorOf("step"), HasSubstr("needs every=N"));
  EXPECT_THAT(ErrorOf("step:every=5,factor=0"), HasSubstr("a number in (0, 1]"));
}

TEST(ParseSchedule, TakesListsAndPyTorchsNames) {
  const absl::StatusOr<ScheduleSpec> spec = ParseSchedule("multistep:milestones=4/9,gamma=0.5");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_THAT(spec->lists.at("at"), testing::ElementsAre(4, 9));
  EXPECT_EQ(spec->options.at("factor"), 0.5);
  EXPECT_THAT(ErrorOf("multistep"), HasSubstr("needs at=N/N/..."));
  EXPECT_THAT(ErrorOf("multistep:at=4/x"), HasSubstr("an integer >= 0"));
  EXPECT_THAT(ErrorOf("step:every=5,step_size=6"), HasSubstr("'step_size' is 'every'"));
  EXPECT_THAT(ErrorOf("exponential"), HasSubstr("needs gamma=N"));
  EXPECT_THAT(ErrorOf("cosine_restarts"), HasSubstr("needs period=N"));
  EXPECT_THAT(ErrorOf("onecycle:total=5,anneal_strategy=poly"), HasSubstr("one of cos, linear"));
}

TEST(BuildSchedule, ConstantIsAConstant) {
  Graph graph;
  ASSERT_TRUE(Build("constant", 0.1, &graph).ok());
  ASSERT_EQ(graph.nodes.size(), 1u);
  EXPECT_EQ(graph.nodes[0].TensorAttribute("value")->values<float>()[0], 0.1f);
}

TEST(BuildSchedule, RefusesWhatDoesNotFitTheRate) {
  Graph graph;
  EXPECT_THAT(std::string(Build("cosine", 0.1, &graph).message()), HasSubstr("needs total=N"));
  EXPECT_THAT(std::string(Build("linear:total=9,min=1", 0.1, &graph).message()),
              HasSubstr("min=1 is above the learning rate 0.1"));
  EXPECT_FALSE(Build("constant", -1, &graph).ok());
}

}  // namespace onward::schedule_test
