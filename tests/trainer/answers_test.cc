// SPDX-License-Identifier: Apache-2.0
// What is kept of single answers: how sure and how right they are, samples of numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "trainer/report/numbers/calibration.h"
#include "trainer/report/numbers/metrics.h"
#include "trainer/report/numbers/value_pairs.h"

namespace onward::answers_test {

TEST(Calibration, MeasuresHowFarConfidenceIsOff) {
  Calibration c;
  EXPECT_TRUE(std::isnan(c.error()));
  // Of 4 answers at 0.95 three are right, of 4 at 0.55 three.
  for (int i = 0; i < 4; ++i) c.Add(0.95, i > 0);
  for (int i = 0; i < 4; ++i) c.Add(0.55, i > 0);
  EXPECT_NEAR(c.error(), (std::fabs(0.95 - 0.75) + std::fabs(0.55 - 0.75)) / 2, 1e-12);
  EXPECT_EQ(c.total(), 8);
  EXPECT_EQ(c.bins()[14].count, 4);
  EXPECT_EQ(c.bins()[14].right, 3);
  EXPECT_EQ(c.bins()[8].count, 4);
}

TEST(Calibration, BinsHoldTheirUpperEnd) {
  Calibration c;
  for (const double v : {0.0, 1.0 / 15, 1.0, 1.5, std::nan("")}) c.Add(v, true);
  EXPECT_EQ(c.bins()[0].count, 2);
  EXPECT_EQ(c.bins()[14].count, 2);
  EXPECT_EQ(c.total(), 4);
}

TEST(PairSample, KeepsEveryNth) {
  PairSample sample(4);
  for (int i = 0; i < 10; ++i) sample.Add(i, -i);
  std::vector<double> actual;
  for (const NumberPair& p : sample.pairs()) {
    actual.push_back(p.actual);
    EXPECT_EQ(p.predicted, -p.actual);
  }
  EXPECT_THAT(actual, testing::ElementsAre(0, 4, 8));
}

TEST(PairSample, IsAllWhereThereAreFew) {
  RegressionMetrics metrics;
  ASSERT_TRUE(metrics
                  .Add(Tensor::FromValues<float>({2}, {1.0f, 2.0f}),
                       Tensor::FromValues<float>({2}, {3.0f, 5.0f}))
                  .ok());
  ASSERT_EQ(metrics.pairs().size(), 2u);
  EXPECT_EQ(metrics.pairs()[1].actual, 5);
  EXPECT_EQ(metrics.pairs()[1].predicted, 2);
}

}  // namespace onward::answers_test
