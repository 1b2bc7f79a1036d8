// SPDX-License-Identifier: Apache-2.0
// A log read back gives the report of the run that wrote it.
#include "trainer/report/log/run_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/support/scratch.h"
#include "trainer/report/listeners.h"
#include "trainer/report/page/run_record.h"

namespace onward::run_log_test {

using ::testing::HasSubstr;

RunFacts Facts(int64_t first_step = 0) {
  RunFacts facts;
  facts.model = "m.onnx";
  facts.output = "out.onnx";
  facts.command = "onward train m.onnx --data 'a b'";
  facts.resumed = first_step > 0;
  facts.first_step = first_step;
  facts.total_steps = 6;
  facts.batch = 4;
  facts.metric = Metric::kAccuracy;
  facts.class_names = {"cat", "d\"og"};
  facts.settings = {{"Batch", "4"}};
  return facts;
}

StepEvent Step(int64_t step) {
  StepEvent s;
  s.step = step;
  s.loss = 1.0 / static_cast<double>(step);
  s.accuracy = 0.5;
  s.learning_rate = 0.1;
  s.seconds = static_cast<double>(step);
  return s;
}

Evaluation Judged(double loss, double accuracy) {
  Evaluation e;
  e.examples = 10;
  e.loss = loss;
  e.accuracy = accuracy;
  e.wrong_total = 3;
  e.confusion = *ConfusionMatrix::Create(2);
  EXPECT_TRUE(e.confusion->Add(0, 1, 3).ok());
  EXPECT_TRUE(e.confusion->Add(1, 1, 7).ok());
  e.calibration.emplace();
  e.calibration->Add(0.7, true);
  e.pairs = {{1, 2}};
  e.wrong = {{{}, "cat", "d\"og", 0.75, 12}};
  return e;
}

void TellStart(const RunFacts& facts, RunListener* to) { ASSERT_TRUE(to->OnStart(facts).ok()); }

void TellEnd(RunListener* to) {
  TrainResult result;
  result.steps = 6;
  result.saved = true;
  result.seconds = 6;
  result.samples_per_second = 4;
  result.peak_bytes = 5 << 20;
  result.operators = {{"Gemm", 1.5, 2}};
  result.stopped = "the time limit is reached";
  result.skipped = 3;
  result.skipped_steps = 1;
  ASSERT_TRUE(to->OnEnd({result, absl::OkStatus()}).ok());
}

// A run of two epochs, the second of which is worse.
void TellRun(RunListener* to) {
  TellStart(Facts(), to);
  ASSERT_TRUE(to->OnEvaluation({0, 0, Judged(2, 0.1), std::nullopt, true}).ok());
  for (int64_t step = 1; step <= 6; ++step) {
    ASSERT_TRUE(to->OnStep(Step(step)).ok());
    if (step % 3 != 0) continue;
    to->OnNorms({step, {{"w", 4, 1.25, 0.5}}});
    const std::optional<Evaluation> averages = Judged(1.5, 0.8125);
    ASSERT_TRUE(
        to->OnEvaluation({step, step / 3, Judged(1, step == 3 ? 0.9 : 0.7), averages}).ok());
  }
  TellEnd(to);
}

TEST(RunLog, GivesTheReportOfTheRun) {
  const Scratch scratch;
  RunRecord live, read;
  TellRun(&live);
  TellRun(LogListener(scratch.Path("log")).get());
  const absl::Status replayed = ReplayLog(scratch.Path("log"), &read);
  ASSERT_TRUE(replayed.ok()) << replayed;
  EXPECT_TRUE(read.ended());
  EXPECT_EQ(RenderReport(read.Data()), RenderReport(live.Data()));
  const std::string page = RenderReport(read.Data());
  for (const char* text : {"before training 10.00 %", "70.00 %", "accuracy 90.00 %, step 3",
                           "onward train m.onnx --data &#39;a b&#39;", "d&quot;og", "Gemm",
                           "Peak memory", "5.0 MB", "Expected calibration error",
                           "Stopped at step 6: the time limit is reached", "Accuracy of averages",
                           "81.25 %", "of the averages", "Skipped steps", "Overflowed steps"}) {
    EXPECT_THAT(page, HasSubstr(text));
  }
  // The evaluation before training has no averages; that is no number that went wrong.
  EXPECT_THAT(page, ::testing::Not(HasSubstr("not finite and left out")));
}

TEST(RunLog, OfARunThatGoesOnIsUnderstood) {
  const Scratch scratch;
  {
    const auto log = LogListener(scratch.Path("log"));
    TellStart(Facts(), log.get());
    for (int64_t step = 1; step <= 2; ++step) ASSERT_TRUE(log->OnStep(Step(step)).ok());
  }
  const std::string whole = scratch.Read("log");
  for (const std::string half : {"", "{\"step\":3,\"lo"}) {
    scratch.Write("log", whole + half);
    RunRecord record;
    const absl::Status replayed = ReplayLog(scratch.Path("log"), &record);
    ASSERT_TRUE(replayed.ok()) << replayed;
    EXPECT_TRUE(record.Data().running);
    EXPECT_EQ(record.Data().steps.size(), 2u);
  }
}

// A run that was killed has made steps that the one that resumes it makes again.
TEST(RunLog, StepsThatAreMadeAgainCountOnce) {
  const Scratch scratch;
  {
    const auto log = LogListener(scratch.Path("log"));
    TellStart(Facts(), log.get());
    for (int64_t step = 1; step <= 5; ++step) ASSERT_TRUE(log->OnStep(Step(step)).ok());
  }
  const auto log = LogListener(scratch.Path("log"));
  TellStart(Facts(3), log.get());
  for (int64_t step = 4; step <= 6; ++step) ASSERT_TRUE(log->OnStep(Step(step)).ok());
  TellEnd(log.get());
  RunRecord record;
  ASSERT_TRUE(ReplayLog(scratch.Path("log"), &record).ok());
  std::vector<int64_t> steps;
  for (const ReportStep& s : record.Data().steps) steps.push_back(s.step);
  EXPECT_THAT(steps, ::testing::ElementsAre(1, 2, 3, 4, 5, 6));
}

// Numbers that are not finite may send a run back to its last checkpoint.
TEST(RunLog, StepsBeforeARunWentBackAreForgotten) {
  RunRecord record;
  TellStart(Facts(), &record);
  for (const int64_t step : {1, 2, 3, 4}) ASSERT_TRUE(record.OnStep(Step(step)).ok());
  ASSERT_TRUE(record.OnEvaluation({4, 0, Judged(1, 0.5), std::nullopt}).ok());
  for (const int64_t step : {3, 4, 5}) ASSERT_TRUE(record.OnStep(Step(step)).ok());
  std::vector<int64_t> steps;
  for (const ReportStep& s : record.Data().steps) steps.push_back(s.step);
  EXPECT_THAT(steps, ::testing::ElementsAre(1, 2, 3, 4, 5));
  EXPECT_TRUE(record.Data().evals.empty());
}

TEST(RunLog, TellsWhatEndedARunThatFailed) {
  const Scratch scratch;
  RunRecord live, read;
  const auto log = LogListener(scratch.Path("log"));
  for (RunListener* to : {static_cast<RunListener*>(&live), log.get()}) {
    TellStart(Facts(), to);
    ASSERT_TRUE(to->OnStep(Step(1)).ok());
    TrainResult result;
    result.steps = 1;
    ASSERT_TRUE(to->OnEnd({result, absl::OutOfRangeError("w is <inf>")}).ok());
  }
  ASSERT_TRUE(ReplayLog(scratch.Path("log"), &read).ok());
  EXPECT_EQ(RenderReport(read.Data()), RenderReport(live.Data()));
  EXPECT_THAT(RenderReport(read.Data()), HasSubstr("Failed at step 1: w is &lt;inf&gt;"));
}

// As versions before this wrote it.
TEST(RunLog, NeedsNoMoreThanStepsAndEvaluations) {
  const Scratch scratch;
  const std::string path = scratch.Write(
      "log",
      "{\"step\":1,\"epoch\":0,\"loss\":2.5,\"seconds\":0.1}\n"
      "{\"step\":2,\"epoch\":0,\"loss\":null,\"seconds\":0.2}\n"
      "{\"step\":2,\"eval_loss\":2,\"eval_rmse\":1.5,\"eval_mae\":1,\"examples\":7}\n");
  RunRecord record;
  const absl::Status replayed = ReplayLog(path, &record);
  ASSERT_TRUE(replayed.ok()) << replayed;
  EXPECT_EQ(record.Data().steps.size(), 2u);
  EXPECT_EQ(record.Data().metric_name, "RMSE");
}

TEST(RunLog, SaysWhichLineIsNone) {
  const Scratch scratch;
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{\"step\":1,\"loss\":1}\nwhat?\n", "line 2: is no JSON"},
      {"{\"loss\":1}\n", "line 1: has no \"step\""},
      {"", "no line of a run"},
      {"{\"step\":1,\"eval_loss\":1}\n{\"step\":1,\"end\":{\"confusion\":{\"classes\":99999}}}\n",
       "line 2: a confusion matrix of 99999"}};
  for (const auto& [text, message] : cases) {
    RunRecord record;
    const absl::Status status = ReplayLog(scratch.Write("log", text), &record);
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
  RunRecord record;
  EXPECT_EQ(ReplayLog(scratch.Path("none"), &record).code(), absl::StatusCode::kNotFound);
}

}  // namespace onward::run_log_test
