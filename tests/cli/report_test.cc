// SPDX-License-Identifier: Apache-2.0
// What people look at: the terminal, the page, the log, runs side by side.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/onnx_io/model.h"
#include "data/arrays/npy.h"
#include "tests/support/classified.h"
#include "tests/support/command.h"
#include "tests/support/paths.h"
#include "tests/support/scratch.h"
#include "tests/support/text_model.h"

namespace onward::report_test {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// A page of a run, and the same page from its log: but for files, which logs do not know.
std::string UpToFiles(const std::string& page) {
  return page.substr(0, std::min(page.find("<section><h2>Files"), page.find("<section><h2>What")));
}

class ReportTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(WriteModel(TextModel(LinearClassifier(3, 3)), Path("m.onnx")).ok());
    scratch_.Write("d.csv", ClassifiedCsv({"ape", "bee", "cow"}, 48));
    data_ = "'csv:" + Path("d.csv") + "?label=label'";
  }
  std::string Path(const std::string& name) const { return scratch_.Path(name); }
  CommandResult Onward(const std::string& arguments) {
    return RunOnward(BuiltProgram(), arguments);
  }
  CommandResult Train(const std::string& flags, const std::string& out,
                      const std::string& length = "--epochs 2 ") {
    return Onward("train " + Path("m.onnx") + " --data " + data_ + " --eval " + data_ +
                  " --batch 8 " + length + flags + " -o " + Path(out));
  }

  Scratch scratch_;
  std::string data_;
};

TEST_F(ReportTest, TheTerminalSaysTrainingAndEvaluationApart) {
  const CommandResult r = Train("--report " + Path("r.html"), "out.onnx");
  ASSERT_EQ(r.exit_code, 0) << r.errors;
  EXPECT_THAT(r.errors, AllOf(ContainsRegex("before training: evaluation loss 1.0986, accuracy"),
                              ContainsRegex("epoch 1: training loss [0-9.]+, accuracy [0-9.]+ %; "
                                            "evaluation loss [0-9.]+, accuracy [0-9.]+ %")));
  EXPECT_THAT(r.output, ContainsRegex("12 steps; training loss [0-9.]+, accuracy [0-9.]+ %; "
                                      "evaluation loss [0-9.]+, accuracy [0-9.]+ %"));
}

TEST_F(ReportTest, ThePageHoldsTheWholeRun) {
  const std::string flags = "--quiet --report " + Path("r.html") + " --log " + Path("log.jsonl");
  ASSERT_EQ(Train(flags, "out.onnx").exit_code, 0);
  const std::string page = scratch_.Read("r.html");
  for (const char* text :
       {"before training", "Best epoch", "Training loss", "Evaluation loss", "Learning rate",
        "Precision", "Recall", ">bee</text>", "Right answers by confidence", "Gradient norm",
        "Weight norm", "Time and memory", "Peak memory", "ms a step", "MatMul", "onward train",
        "--batch 8 --epochs 2", "What the numbers mean"}) {
    EXPECT_THAT(page, HasSubstr(text));
  }
  EXPECT_THAT(page, Not(HasSubstr("http-equiv=\"refresh\"")));
  // The same from the log, but for the files.
  const CommandResult again = Onward("report " + Path("log.jsonl") + " -o " + Path("again.html"));
  ASSERT_EQ(again.exit_code, 0) << again.errors;
  const std::string read = scratch_.Read("again.html");
  EXPECT_EQ(UpToFiles(read), UpToFiles(page));
  EXPECT_THAT(read, Not(HasSubstr("<h2>Files</h2>")));
}

TEST_F(ReportTest, ARunThatFailsInItsFirstStepSaysWhy) {
  scratch_.Write("d.csv", "x0,x1,x2,label\n1e20,2,1,ape\n2,1e20,1,bee\n1,2,3,cow\n");
  const CommandResult r = Train(
      "--quiet --optimizer sgd:lr=1e30 --report " + Path("r.html") + " --log " + Path("log.jsonl"),
      "out.onnx");
  ASSERT_EQ(r.exit_code, 2) << r.errors;
  EXPECT_FALSE(std::filesystem::exists(Path("out.onnx")));
  const std::string page = scratch_.Read("r.html");
  EXPECT_THAT(page, AllOf(HasSubstr("Failed before the first step was done: "),
                          HasSubstr("is not finite"), HasSubstr("<h2>Settings</h2>"),
                          HasSubstr("sgd:lr=1e30"), Not(HasSubstr("<h2>Files</h2>"))));
  const CommandResult again = Onward("report " + Path("log.jsonl") + " -o " + Path("again.html"));
  ASSERT_EQ(again.exit_code, 0) << again.errors;
  EXPECT_THAT(again.output, HasSubstr("\n  Failed before the first step was done: "));
  EXPECT_EQ(UpToFiles(scratch_.Read("again.html")), UpToFiles(page));
}

TEST_F(ReportTest, ThePageSaysWhatTheUserWasTold) {
  Tensor x = Tensor::Zeros(DType::kFloat, {4, 3});
  x.data<float>()[7] = std::nanf("");
  ASSERT_TRUE(WriteNpy(Path("x.npy"), x).ok());
  ASSERT_TRUE(WriteNpy(Path("y.npy"), Int64s({0, 1, 2, 0})).ok());
  const CommandResult r =
      Onward("train " + Path("m.onnx") + " --data npy:" + Path("x.npy") + "," + Path("y.npy") +
             " --batch 1 --on-nan skip --no-shuffle --report " + Path("r.html") + " --log " +
             Path("log.jsonl") + " -o " + Path("out.onnx"));
  ASSERT_EQ(r.exit_code, 0) << r.errors;
  const std::string page = scratch_.Read("r.html");
  const auto section = [&](const std::string& title) {
    const size_t at = page.find("<section><h2>" + title + "</h2>");
    return at == std::string::npos ? "" : page.substr(at, page.find("</section>", at) - at);
  };
  // Before the run, at its start, in its course.
  EXPECT_THAT(section("Notes"), HasSubstr("trains 1 of 1 float constants"));
  EXPECT_THAT(section("Warnings"),
              AllOf(HasSubstr("of example 2 of "), HasSubstr("<li>skipped: ")));
  for (const char* text : {"note: trains 1 of 1", "warning: skipped: "}) {
    EXPECT_THAT(r.errors, HasSubstr(text));
  }
  ASSERT_EQ(Onward("report " + Path("log.jsonl") + " -o " + Path("again.html")).exit_code, 0);
  EXPECT_EQ(UpToFiles(scratch_.Read("again.html")), UpToFiles(page));
}

TEST_F(ReportTest, LookingChangesNothing) {
  ASSERT_EQ(Train("--quiet", "plain.onnx").exit_code, 0);
  ASSERT_EQ(Train("--quiet --watch --report " + Path("r.html") + " --tensorboard " + Path("tb") +
                      " --log " + Path("log"),
                  "looked.onnx")
                .exit_code,
            0);
  EXPECT_EQ(scratch_.Read("plain.onnx"), scratch_.Read("looked.onnx"));
  // In halves, too.
  ASSERT_EQ(Train("--quiet --report " + Path("r.html"), "half.onnx", "--steps 7 ").exit_code, 0);
  ASSERT_EQ(Onward("train m --resume --quiet --epochs 2 --data " + data_ + " --eval " + data_ +
                   " --report " + Path("r.html") + " -o " + Path("half.onnx"))
                .exit_code,
            0);
  EXPECT_EQ(scratch_.Read("plain.onnx"), scratch_.Read("half.onnx"));
}

TEST_F(ReportTest, RunsStandBesideEachOther) {
  ASSERT_EQ(Train("--quiet --log " + Path("a.jsonl"), "a.onnx").exit_code, 0);
  ASSERT_EQ(Train("--quiet --seed 3 --log " + Path("b.jsonl"), "b.onnx").exit_code, 0);
  const CommandResult r =
      Onward("report " + Path("a.jsonl") + " " + Path("b.jsonl") + " -o " + Path("both.html"));
  ASSERT_EQ(r.exit_code, 0) << r.errors;
  EXPECT_THAT(r.output, AllOf(HasSubstr("a.jsonl: 12 steps"), HasSubstr("b.jsonl: 12 steps"),
                              HasSubstr("Best epoch")));
  EXPECT_THAT(scratch_.Read("both.html"),
              AllOf(HasSubstr("2 runs"), HasSubstr("line run1"), HasSubstr("--seed 3")));
  const CommandResult json = Onward("report --json " + Path("a.jsonl") + " " + Path("b.jsonl"));
  EXPECT_THAT(json.output, AllOf(HasSubstr("\"running\":false"), HasSubstr("\"Accuracy\":\"")));
}

// A run that is killed has a page only where it was to be watched.
TEST_F(ReportTest, TheWatchedPageIsThereWhileTheRunGoesOn) {
  for (const bool watch : {false, true}) {
    const std::string out = Path(watch ? "watched.onnx" : "o.onnx");
    RunOnwardUntil(BuiltProgram(),
                   "train " + Path("m.onnx") + " --quiet --data " + data_ + " --eval " + data_ +
                       " --epochs 100000000 --report " + Path("r.html") +
                       (watch ? " --watch" : "") + " -o " + out,
                   out);
    ASSERT_EQ(std::filesystem::exists(Path("r.html")), watch);
  }
  EXPECT_THAT(scratch_.Read("r.html"),
              AllOf(HasSubstr("http-equiv=\"refresh\""), HasSubstr(", running</p>")));
}

// A page that is watched ends as one that is not loaded again.
TEST_F(ReportTest, WatchingEndsWithTheRun) {
  ASSERT_EQ(Train("--quiet --log " + Path("a.jsonl"), "a.onnx").exit_code, 0);
  const std::string watch = "report " + Path("a.jsonl") + " --watch -o " + Path("w.html");
  EXPECT_EQ(RunOnward("timeout -s KILL 60 " + BuiltProgram(), watch).exit_code, 0);
  EXPECT_THAT(scratch_.Read("w.html"), Not(HasSubstr("http-equiv=\"refresh\"")));
  // Of a run that has not ended the page is there to be loaded again.
  std::string log = scratch_.Read("a.jsonl");
  scratch_.Write("going.jsonl", log.substr(0, log.find("\"end\"")));
  RunOnwardUntil(BuiltProgram(), "report " + Path("going.jsonl") + " --watch -o " + Path("g.html"),
                 Path("g.html"));
  EXPECT_THAT(scratch_.Read("g.html"), HasSubstr("http-equiv=\"refresh\""));
}

TEST_F(ReportTest, SaysWhatIsMissing) {
  scratch_.Write("no.jsonl", "nothing\n");
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"report " + Path("none.jsonl"), "none.jsonl"},
      {"report " + Path("no.jsonl"),
       "line 1: is no JSON; expected a log that `onward train --log` writes"},
      {"report " + Path("no.jsonl") + " --watch", "it needs -o FILE"},
      {"report " + Path("no.jsonl") + " -o " + Path("no.jsonl"), "would replace"},
      {"train " + Path("m.onnx") + " --data " + data_ + " --watch -o " + Path("x.onnx"),
       "it needs --report FILE.html"},
      {"train " + Path("m.onnx") + " --data " + data_ + " --tensorboard " + Path("no.jsonl/x") +
           " -o " + Path("x.onnx"),
       "no.jsonl/x"}};
  for (const auto& [line, message] : cases) {
    const CommandResult r = Onward(line);
    EXPECT_EQ(r.exit_code, 2) << line;
    EXPECT_THAT(r.errors, HasSubstr(message)) << line;
  }
  EXPECT_FALSE(std::filesystem::exists(Path("x.onnx")));
}

}  // namespace onward::report_test
