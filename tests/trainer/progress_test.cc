// SPDX-License-Identifier: Apache-2.0
#include "trainer/report/terminal/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/support/scratch.h"

namespace onward::progress_test {

using ::testing::HasSubstr;
using ::testing::Not;

const ProgressFigures kFigures = {.label = "train",
                                  .step = 420,
                                  .total = 1000,
                                  .loss = 0.12345,
                                  .accuracy = 0.971,
                                  .samples_per_second = 12345,
                                  .seconds_left = 41.2};

TEST(FormatBar, FitsTheWidth) {
  EXPECT_EQ(FormatBar(kFigures, 80),
            "train  42% [=========>             ]  420/1000  loss 0.1235  acc 97.1%  ETA 0:42");
  for (int width = 0; width < 150; ++width) {
    EXPECT_LE(FormatBar(kFigures, width).size(), static_cast<size_t>(width));
  }
  EXPECT_THAT(FormatBar(kFigures, 140), HasSubstr("12345 samples/s"));
}

TEST(FormatBar, LeavesOutWhatIsNotKnown) {
  ProgressFigures f;
  f.label = "eval";
  f.step = 3;
  EXPECT_EQ(FormatBar(f, 80), "eval  step 3");
  EXPECT_EQ(FormatLine(f), "eval  step 3");
}

TEST(FormatSeconds, ReadsLikeAClock) {
  EXPECT_EQ(FormatSeconds(0), "0:00");
  EXPECT_EQ(FormatSeconds(61.2), "1:02");
  EXPECT_EQ(FormatSeconds(3723), "1:02:03");
  EXPECT_EQ(FormatSeconds(std::numeric_limits<double>::quiet_NaN()), "?");
  EXPECT_EQ(FormatSeconds(1e300), "?");
}

// Runs 1000 steps of 0.01 s and returns what was written.
std::string Transcript(ProgressStyle style) {
  Scratch scratch;
  std::FILE* out = std::fopen(scratch.Path("out").c_str(), "wb");
  double now = 0;
  {
    Progress progress(
        {.total_steps = 1000, .style = style, .out = out, .clock = [&] { return now; }});
    for (int step = 1; step <= 1000; ++step) {
      now += 0.01;
      progress.Update(step, 32, 0.5, kFigures.accuracy);
      if (step == 500) progress.Say("half way");
    }
    EXPECT_NEAR(progress.samples_per_second(), 3200, 1e-6);
  }
  std::fclose(out);
  return scratch.Read("out");
}

TEST(Progress, WritesPlainLinesWhereThereIsNoTerminal) {
  const std::string text = Transcript(ProgressStyle::kAuto);
  EXPECT_THAT(text, Not(HasSubstr("\r")));
  EXPECT_THAT(text, HasSubstr("half way\n"));
  EXPECT_THAT(text, HasSubstr("train  1000/1000  loss 0.5  acc 97.1%  3200 samples/s\n"));
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 4);
}

TEST(Progress, RedrawsTheBarTenTimesASecondAtMost) {
  const std::string text = Transcript(ProgressStyle::kBar);
  EXPECT_LE(std::count(text.begin(), text.end(), '\r'), 105);
  EXPECT_GE(std::count(text.begin(), text.end(), '\r'), 50);
  EXPECT_THAT(text, HasSubstr("\r\x1b[Khalf way\n"));
  EXPECT_EQ(text.back(), '\n');
}

TEST(Progress, SaysNothingWhenQuiet) { EXPECT_EQ(Transcript(ProgressStyle::kQuiet), ""); }

}  // namespace onward::progress_test
