// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/watch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>
#include <vector>

#include "tests/support/paths.h"
#include "tests/support/scratch.h"

namespace onward::watch_test {

// tests/golden/make_plateau.py wrote what PyTorch does.
TEST(Plateau, FollowsPyTorch) {
  std::istringstream lines(FileBytes(GoldenFolder() + "/plateau.txt"));
  int cases = 0, reductions = 0;
  for (std::string line; std::getline(lines, line); ++cases) {
    std::istringstream words(line);
    std::string text, pair;
    double base = 0;
    words >> text >> base;
    const auto schedule = ParseSchedule(text);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    Plateau plateau(*schedule, base);
    double factor = 1;
    for (int step = 0; words >> pair; ++step) {
      const size_t colon = pair.find(':');
      // As a resumed run has it.
      Plateau again(*schedule, base);
      ASSERT_TRUE(again.Resume(plateau.State()).ok()) << plateau.State();
      plateau = again;
      reductions += plateau.Observe(std::stod(pair.substr(0, colon)), &factor);
      ASSERT_NEAR(base * factor, std::stod(pair.substr(colon + 1)), 1e-15)
          << text << ", figure " << step;
    }
  }
  EXPECT_EQ(cases, 10);
  EXPECT_GT(reductions, 20);
}

TEST(Plateau, RefusesAStateThatIsNone) {
  Plateau plateau(ParseSchedule("reduce_on_plateau").value(), 0.1);
  for (const char* state : {"", "1", "1 2", "a 1 2", "1 2 3 4"}) {
    EXPECT_FALSE(plateau.Resume(state).ok()) << state;
  }
}

struct SeenCase {
  Metric metric;
  std::vector<double> values;  // after steps 10, 20, ...
  const char *hint, *file = "";
};

TEST(BestSeen, SpeaksWhereTheEndIsWorse) {
  const SeenCase cases[] = {
      {Metric::kLoss, {}, ""},
      {Metric::kLoss, {0.5, 0.4, 0.3}, ""},
      {Metric::kLoss, {0.5, 0.4, 0.405}, ""},
      {Metric::kLoss,
       {0.5, 0.4, 0.41},
       "the loss in evaluation was best after step 20, 0.4, and is 0.41 at the end; --best FILE "
       "keeps "
       "the best of a run, --patience N ends it in time"},
      {Metric::kAccuracy, {0.9, 0.896}, ""},
      {Metric::kAccuracy,
       {0.9, 0.95, 0.88},
       "the accuracy in evaluation was best after step 20, 95.00 %, and is 88.00 % at the end; "
       "'b.onnx' holds the best",
       "b.onnx"},
      {Metric::kRmse, {std::nan(""), 2, std::nan("")}, ""},
  };
  for (const SeenCase& c : cases) {
    BestSeen seen(c.metric);
    for (size_t i = 0; i < c.values.size(); ++i) {
      seen.Observe(static_cast<int64_t>(10 * (i + 1)), c.values[i]);
    }
    EXPECT_EQ(seen.Hint(c.file), c.hint);
  }
}

}  // namespace onward::watch_test
