// SPDX-License-Identifier: Apache-2.0
#include "trainer/report/numbers/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace onward::metrics_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(RunningMean, Weighs) {
  RunningMean mean;
  EXPECT_TRUE(std::isnan(mean.mean()));
  mean.Add(1, 3);
  mean.Add(5);
  EXPECT_DOUBLE_EQ(mean.mean(), 2);
  EXPECT_DOUBLE_EQ(mean.weight(), 4);
}

TEST(SmoothedMean, HasNoPullTowardsZero) {
  SmoothedMean mean(0.9);
  mean.Add(4);
  EXPECT_DOUBLE_EQ(mean.mean(), 4);
  mean.Add(kNan);
  EXPECT_DOUBLE_EQ(mean.mean(), 4);
  mean.Add(2);
  EXPECT_NEAR(mean.mean(), (0.9 * 4 + 2) / 1.9, 1e-12);
}

TEST(Predict, TakesTheFirstLargest) {
  const auto p = Predict(Tensor::FromValues<float>({3, 3}, {1, 3, 2, 5, 5, 1, kNan, 0, 1}));
  ASSERT_TRUE(p.ok()) << p.status();
  EXPECT_THAT(p->classes, ElementsAre(1, 0, 2));
  EXPECT_NEAR(p->confidence[0], std::exp(3) / (std::exp(1) + std::exp(3) + std::exp(2)), 1e-6);
}

TEST(Predict, TellsProbabilitiesFromLogits) {
  const auto p = Predict(Tensor::FromValues<float>({1, 2}, {0.25f, 0.75f}));
  EXPECT_FLOAT_EQ(p->confidence[0], 0.75f);
  // Log probabilities are logits.
  const auto log = Predict(Tensor::FromValues<float>({1, 2}, {std::log(0.25f), std::log(0.75f)}));
  EXPECT_NEAR(log->confidence[0], 0.75f, 1e-6);
  const auto forced =
      Predict(Tensor::FromValues<float>({1, 2}, {0.25f, 0.75f}), {.kind = ScoreKind::kLogits});
  EXPECT_NEAR(forced->confidence[0], 1 / (1 + std::exp(-0.5)), 1e-6);
}

TEST(Predict, ReadsOneScoreAsTwoClasses) {
  const auto logits = Predict(Tensor::FromValues<float>({3, 1}, {-2, 0, 2}));
  EXPECT_THAT(logits->classes, ElementsAre(0, 0, 1));
  const auto shares =
      Predict(Tensor::FromValues<float>({2}, {0.4f, 0.9f}), {.kind = ScoreKind::kProbabilities});
  EXPECT_THAT(shares->classes, ElementsAre(0, 1));
  EXPECT_FLOAT_EQ(shares->confidence[0], 0.6f);
}

TEST(Predict, KeepsTrailingPositions) {
  // [1 example, 2 classes, 3 positions].
  const auto p = Predict(Tensor::FromValues<double>({1, 2, 3}, {0, 5, 0, 1, 1, 1}));
  EXPECT_THAT(p->classes, ElementsAre(1, 0, 1));
}

TEST(Predict, RefusesWhatIsNoScore) {
  EXPECT_FALSE(Predict(ScalarOf(DType::kFloat, 1)).ok());
  EXPECT_FALSE(Predict(Tensor::FromValues<std::string>({1}, {"a"})).ok());
  EXPECT_FALSE(Predict(Tensor::Zeros(DType::kFloat, {2, 0})).ok());
}

TEST(ConfusionMatrix, GivesTheUsualFigures) {
  auto m = *ConfusionMatrix::Create(3);
  EXPECT_TRUE(std::isnan(m.accuracy()));
  const int counts[2][2] = {{6, 2}, {1, 3}};
  for (int a = 0; a < 2; ++a) {
    for (int p = 0; p < 2; ++p) {
      for (int i = 0; i < counts[a][p]; ++i) ASSERT_TRUE(m.Add(a, p).ok());
    }
  }
  EXPECT_EQ(m.total(), 12);
  EXPECT_EQ(m.actual(0), 8);
  EXPECT_EQ(m.predicted(0), 7);
  EXPECT_DOUBLE_EQ(m.accuracy(), 9.0 / 12);
  EXPECT_DOUBLE_EQ(m.precision(0), 6.0 / 7);
  EXPECT_DOUBLE_EQ(m.recall(0), 6.0 / 8);
  EXPECT_DOUBLE_EQ(m.f1(0), 12.0 / 15);
  // The third class never occurs.
  EXPECT_DOUBLE_EQ(m.macro_f1(), (12.0 / 15 + 6.0 / 9) / 2);
  EXPECT_TRUE(std::isnan(m.recall(2)));
  EXPECT_FALSE(m.Add(3, 0).ok());
  EXPECT_FALSE(m.Add(0, -1).ok());
  EXPECT_FALSE(ConfusionMatrix::Create(0).ok());
  EXPECT_FALSE(ConfusionMatrix::Create(1 << 20).ok());
}

TEST(ClassificationMetrics, PassesOverIgnoredLabels) {
  ClassificationMetrics metrics(3, 2);
  const Predictions p = {{0, 1, 1, 2}, {1, 1, 1, 1}};
  ASSERT_TRUE(metrics.Add(p, Tensor::FromValues<int64_t>({4}, {0, 0, -100, 2})).ok());
  EXPECT_EQ(metrics.total(), 2);
  EXPECT_EQ(metrics.correct(), 1);
  EXPECT_DOUBLE_EQ(metrics.accuracy(), 0.5);
  EXPECT_EQ(metrics.confusion()->count(0, 1), 1);
}

TEST(ClassificationMetrics, RefusesLabelsThatDoNotFit) {
  ClassificationMetrics metrics(2);
  const Predictions p = {{0}, {1}};
  EXPECT_THAT(std::string(metrics.Add(p, Tensor::FromValues<int64_t>({1}, {5})).message()),
              HasSubstr("label 5"));
  EXPECT_FALSE(metrics.Add(p, Tensor::FromValues<int64_t>({2}, {0, 0})).ok());
  EXPECT_FALSE(metrics.Add(p, Tensor::FromValues<float>({1}, {0})).ok());
}

TEST(ClassificationMetrics, CountsWithoutAMatrixWhereItIsTooLarge) {
  ClassificationMetrics metrics(100000);
  EXPECT_FALSE(metrics.confusion().has_value());
  ASSERT_TRUE(metrics.Add({{99999}, {1}}, Tensor::FromValues<int64_t>({1}, {99999})).ok());
  EXPECT_DOUBLE_EQ(metrics.accuracy(), 1);
}

TEST(RegressionMetrics, MeasuresErrors) {
  RegressionMetrics m;
  EXPECT_TRUE(std::isnan(m.mae()));
  ASSERT_TRUE(
      m.Add(Tensor::FromValues<float>({2, 1}, {1, 2}), Tensor::FromValues<float>({2}, {2, 4}))
          .ok());
  ASSERT_TRUE(
      m.Add(Tensor::FromValues<double>({1}, {6}), Tensor::FromValues<int64_t>({1}, {6})).ok());
  EXPECT_EQ(m.total(), 3);
  EXPECT_DOUBLE_EQ(m.mae(), 1);
  EXPECT_DOUBLE_EQ(m.rmse(), std::sqrt(5.0 / 3));
  EXPECT_DOUBLE_EQ(m.r2(), 1 - 5.0 / 8);
  EXPECT_FALSE(m.Add(Tensor::Zeros(DType::kFloat, {2}), Tensor::Zeros(DType::kFloat, {3})).ok());
}

}  // namespace onward::metrics_test
