// SPDX-License-Identifier: Apache-2.0
// How a run takes care of itself: which files it keeps, when it stops, what it goes on with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/onnx_io/model.h"
#include "data/arrays/npy.h"
#include "tests/support/classified.h"
#include "tests/support/command.h"
#include "tests/support/paths.h"
#include "tests/support/scratch.h"
#include "tests/support/text_model.h"

namespace onward::policies_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

namespace fs = std::filesystem;

constexpr int kExamples = 70, kBatch = 16;  // 4 batches and one of 6

class Policies : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(WriteModel(TextModel(LinearClassifier(2, 2)), Path("m.onnx")).ok());
    data_ = Data("d", 1);
  }
  std::string Data(const std::string& name, float scale) {
    Tensor x(DType::kFloat, {kExamples, 2}), y(DType::kInt64, {kExamples});
    for (int i = 0; i < kExamples; ++i) {
      y.data<int64_t>()[i] = i * 7 % 5 % 2;
      x.data<float>()[2 * i] = scale * (y.data<int64_t>()[i] == 0 ? 1.f : -0.2f) + 0.01f * (i % 9);
      x.data<float>()[2 * i + 1] = scale * 0.1f * (i % 4);
    }
    EXPECT_TRUE(WriteNpy(Path(name + "_x.npy"), x).ok());
    EXPECT_TRUE(WriteNpy(Path(name + "_y.npy"), y).ok());
    return "npy:" + Path(name + "_x.npy") + "," + Path(name + "_y.npy");
  }
  std::string Path(const std::string& name) const { return scratch_.Path(name); }
  CommandResult Train(const std::string& flags, const std::string& out) const {
    return RunOnward(BuiltProgram(), "train " + Path("m.onnx") + " --data " + data_ +
                                         " --batch 16 " + flags + " -o " + Path(out));
  }
  CommandResult Resume(const std::string& flags, const std::string& out) const {
    return RunOnward(BuiltProgram(), "train " + Path("m.onnx") + " --data " + data_ +
                                         " --resume --quiet " + flags + " -o " + Path(out));
  }
  std::string Meta(const std::string& name, const std::string& key) const {
    const auto model = ReadModel(Path(name));
    return model.ok() ? model->Metadata(key) : "no file";
  }
  std::vector<std::string> Files(const std::string& part) const {
    std::vector<std::string> names;
    for (const auto& e : fs::directory_iterator(scratch_.folder())) {
      const std::string name = e.path().filename().string();
      if (name.find(part) != std::string::npos) names.push_back(name);
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  Scratch scratch_;
  std::string data_;
};

TEST_F(Policies, TheShortBatchIsUsedUnlessItIsLeftOut) {
  ASSERT_EQ(Train("--epochs 2", "used.onnx").exit_code, 0);
  EXPECT_EQ(Meta("used.onnx", "onward.steps"), "10");
  ASSERT_EQ(Train("--epochs 2 --drop-last", "left.onnx").exit_code, 0);
  EXPECT_EQ(Meta("left.onnx", "onward.steps"), "8");
  // Stopped before, at and after it.
  for (const char* steps : {"4", "5", "6"}) {
    const std::string name = std::string("part") + steps + ".onnx";
    ASSERT_EQ(Train(std::string("--steps ") + steps, name).exit_code, 0);
    ASSERT_EQ(Resume("--epochs 2", name).exit_code, 0);
    EXPECT_EQ(scratch_.Read(name), scratch_.Read("used.onnx")) << steps;
  }
  const CommandResult other = Resume("--drop-last --epochs 3", "used.onnx");
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.errors, HasSubstr("leave --drop-last out"));
  // A file of before says nothing of it, and goes on as it began.
  Model old = ReadModel(Path("left.onnx")).value();
  old.SetMetadata("onward.drop_last", "");
  ASSERT_TRUE(WriteModel(old, Path("old.onnx")).ok());
  ASSERT_EQ(Resume("--epochs 3", "old.onnx").exit_code, 0);
  EXPECT_EQ(Meta("old.onnx", "onward.steps"), "12");
}

TEST_F(Policies, FewerExamplesThanABatch) {
  ASSERT_EQ(Train("--batch 512", "x.onnx").exit_code, 2);  // --batch is given twice
  const CommandResult r =
      RunOnward(BuiltProgram(), "train " + Path("m.onnx") + " --data " + data_ +
                                    " --batch 512 --epochs 3 -o " + Path("few.onnx"));
  EXPECT_EQ(r.exit_code, 0) << r.errors;
  EXPECT_EQ(Meta("few.onnx", "onward.steps"), "3");
}

TEST_F(Policies, KeepsTheLastCheckpoints) {
  ASSERT_EQ(Train("--steps 9 --save-every 2 --keep 3", "k.onnx").exit_code, 0);
  EXPECT_THAT(Files("k.step-"), ElementsAre("k.step-6.onnx", "k.step-8.onnx", "k.step-9.onnx"));
  EXPECT_EQ(scratch_.Read("k.step-9.onnx"), scratch_.Read("k.onnx"));
  EXPECT_EQ(Meta("k.step-6.onnx", "onward.steps"), "6");
  ASSERT_EQ(Resume("--steps 12 --save-every 2 --keep 3", "k.onnx").exit_code, 0);
  EXPECT_THAT(Files("k.step-"), ElementsAre("k.step-10.onnx", "k.step-12.onnx", "k.step-9.onnx"));
  // One of them is a run to go on from, like any other.
  fs::rename(Path("k.step-9.onnx"), Path("again.onnx"));
  ASSERT_EQ(Resume("--steps 12", "again.onnx").exit_code, 0);
  EXPECT_EQ(scratch_.Read("again.onnx"), scratch_.Read("k.onnx"));
}

TEST_F(Policies, KeptCheckpointsWithWeightsBesideThem) {
  // Large enough to be moved out.
  ASSERT_TRUE(WriteModel(TextModel(absl::StrCat(
                             "g (float[N, 2] x) => (float[N, 2] y) <float[2, 2000] w = {",
                             absl::StrJoin(std::vector<double>(4000, 0.01), ", "),
                             "}, float[2000, 2] v = {",
                             absl::StrJoin(std::vector<double>(4000, 0.01), ", "),
                             "}> { h = MatMul(x, w) y = MatMul(h, v) }")),
                         Path("m.onnx"))
                  .ok());
  ASSERT_EQ(Train("--steps 6 --save-every 2 --keep 2 --external-data", "e.onnx").exit_code, 0);
  // Those of the two, and none of what went away.
  EXPECT_EQ(Files("e.onnx.data-").size(), 2);
  for (const char* name : {"e.step-4.onnx", "e.step-6.onnx"}) {
    EXPECT_EQ(RunOnward(BuiltProgram(), "check " + Path(name)).exit_code, 0) << name;
  }
}

TEST_F(Policies, ARunThatGetsWorseSaysSo) {
  // What it learns is wrong there.
  const std::string flags = "--epochs 3 --lr 0.1 --eval " + Data("other", -1);
  EXPECT_THAT(Train(flags, "worse.onnx").errors,
              AllOf(HasSubstr("note: the loss in evaluation was best after step 5, "),
                    HasSubstr(" at the end; --best FILE keeps the best of a run, --patience N")));
  EXPECT_THAT(Train(flags + " --best " + Path("first.onnx"), "kept.onnx").errors,
              HasSubstr("first.onnx' holds the best"));
  EXPECT_THAT(Train("--epochs 3 --lr 0.1 --eval " + data_, "better.onnx").errors,
              Not(HasSubstr("in evaluation was best")));
}

TEST_F(Policies, TheBestIsKept) {
  // The rate is so large that it gets worse after the first evaluations.
  const std::string flags =
      "--epochs 6 --optimizer sgd:lr=30 --no-shuffle --eval " + data_ + " --log " + Path("log");
  ASSERT_EQ(Train(flags + " --best " + Path("best.onnx"), "last.onnx").exit_code, 0);
  // The file is what the smallest loss in the log belongs to.
  double best = HUGE_VAL;
  int64_t step = 0;
  const std::string log = scratch_.Read("log");
  for (size_t at = 0; (at = log.find("\"eval_loss\":", at)) != std::string::npos; ++at) {
    const double loss = std::atof(log.c_str() + at + 12);
    if (loss >= best) continue;
    best = loss;
    step = std::atoll(log.c_str() + log.rfind("\"step\":", at) + 7);
  }
  EXPECT_EQ(Meta("best.onnx", "onward.steps"), std::to_string(step));
  EXPECT_THAT(Meta("best.onnx", "onward.best"), HasSubstr("loss "));
  EXPECT_EQ(Meta("last.onnx", "onward.best"), "");
  const CommandResult eval =
      RunOnward(BuiltProgram(), "eval " + Path("best.onnx") + " --data " + data_ + " --json");
  EXPECT_NEAR(std::atof(eval.output.c_str() + eval.output.find("\"loss\":") + 7), best, 1e-9);
  // A resumed run knows it, and another run asks before it replaces it.
  const std::string before = scratch_.Read("best.onnx");
  ASSERT_EQ(Resume("--epochs 7 --eval " + data_ + " --metric accuracy --best " + Path("other.onnx"),
                   "last.onnx")
                .exit_code,
            0);
  EXPECT_THAT(Meta("other.onnx", "onward.best"), HasSubstr("accuracy "));
  EXPECT_EQ(scratch_.Read("best.onnx"), before);
  EXPECT_EQ(Train(flags + " --best " + Path("best.onnx"), "new.onnx").exit_code, 2);
}

TEST_F(Policies, ABestOfAnotherRunIsNoMeasure) {
  const std::string eval = " --eval " + data_ + " --best " + Path("best.onnx");
  ASSERT_EQ(Train("--epochs 20 --no-shuffle" + eval, "good.onnx").exit_code, 0);
  ASSERT_EQ(Train("--steps 1 --optimizer sgd:lr=1e-9 --no-shuffle", "poor.onnx").exit_code, 0);
  // It is not replaced without asking, ...
  const std::string good = scratch_.Read("best.onnx");
  const CommandResult asked = Resume("--epochs 2" + eval, "poor.onnx");
  EXPECT_EQ(asked.exit_code, 2);
  EXPECT_THAT(asked.errors, AllOf(HasSubstr("best.onnx' exists already and is not of the run that"),
                                  HasSubstr("another --best keeps it")));
  EXPECT_EQ(scratch_.Read("best.onnx"), good);
  EXPECT_EQ(Resume("--epochs 2 --dry-run" + eval, "poor.onnx").exit_code, 0);
  // ... but by a run that was begun to replace it, as this one that was killed before its first
  // evaluation.
  Model killed = ReadModel(Path("poor.onnx")).value();
  killed.SetMetadata("onward.has_best", "0");
  ASSERT_TRUE(WriteModel(killed, Path("poor.onnx")).ok());
  ASSERT_EQ(Resume("--epochs 2" + eval, "poor.onnx").exit_code, 0);
  EXPECT_THAT(Meta("best.onnx", "onward.optimizer"), HasSubstr("sgd"));
  // From here on it is its own: what is as good does not replace it.
  EXPECT_EQ(Meta("poor.onnx", "onward.has_best"), "1");
  const std::string best = scratch_.Read("best.onnx");
  ASSERT_EQ(Resume("--epochs 3 --lr 1e-30" + eval, "poor.onnx").exit_code, 0);
  EXPECT_EQ(scratch_.Read("best.onnx"), best);
  // That it has one does not make every file its own.
  const std::string other = " --eval " + data_ + " --best " + Path("good.onnx");
  EXPECT_EQ(Resume("--epochs 4" + other, "poor.onnx").exit_code, 2);
}

// Also where it was killed before it could.
TEST_F(Policies, ARunThatBeginsAnewMayReplaceTheBest) {
  const std::string flags = "--eval " + data_ + " --eval-every 1000000000 --steps 1000000000 ";
  ASSERT_EQ(Train("--steps 2 --eval " + data_ + " --best " + Path("best.onnx"), "a.onnx").exit_code,
            0);
  RunOnwardUntil(BuiltProgram(),
                 "train " + Path("m.onnx") + " --data " + data_ + " --overwrite --save-every 1 " +
                     flags + "--best " + Path("best.onnx") + " -o " + Path("b.onnx"),
                 Path("b.onnx"));
  EXPECT_EQ(Meta("b.onnx", "onward.has_best"), "0");
  EXPECT_EQ(Meta("best.onnx", "onward.run"), Meta("a.onnx", "onward.run"));
  ASSERT_EQ(Resume(flags + "--time-limit 0.001s --best " + Path("best.onnx"), "b.onnx").exit_code,
            0);
  EXPECT_EQ(Meta("best.onnx", "onward.run"), Meta("b.onnx", "onward.run"));
}

TEST_F(Policies, PatienceEndsTheRun) {
  const std::string flags = "--optimizer sgd:lr=0 --eval " + data_ + " --patience 2 --quiet";
  const CommandResult r = Train(flags + " --epochs 9 --threads 1 --json", "p.onnx");
  EXPECT_EQ(r.exit_code, 0) << r.errors;
  EXPECT_THAT(r.output, AllOf(HasSubstr("\"steps\":15"),
                              HasSubstr("has not become better for 2 evaluations")));
  // The line that it says does go on: it has what the run needs, and no patience.
  EXPECT_THAT(r.errors, AllOf(HasSubstr("stopped at step 15"), HasSubstr("--threads 1 "),
                              Not(HasSubstr("--patience"))));
  // At its last step a run ends anyway.
  EXPECT_THAT(Train(flags + " --epochs 3 --json", "end.onnx").output,
              AllOf(HasSubstr("\"steps\":15"), Not(HasSubstr("become better"))));
  ASSERT_EQ(Train(flags + " --epochs 1", "parts.onnx").exit_code, 0);
  ASSERT_EQ(Resume("--eval " + data_ + " --patience 2 --epochs 9", "parts.onnx").exit_code, 0);
  EXPECT_EQ(scratch_.Read("parts.onnx"), scratch_.Read("p.onnx"));
}

// What split= leaves is what evaluations are of.
TEST_F(Policies, APartOfTheDataIsEnoughToEvaluate) {
  const CommandResult r = RunOnward(
      BuiltProgram(), "train " + Path("m.onnx") + " --data '" + data_ +
                          "?split=0.5' --batch 16 --optimizer sgd:lr=0 --patience 1 --epochs 9 "
                          "--quiet --json --best " +
                          Path("b.onnx") + " -o " + Path("s.onnx"));
  EXPECT_EQ(r.exit_code, 0) << r.errors;
  EXPECT_THAT(r.output, HasSubstr("not become better for 1 evaluations"));
  EXPECT_TRUE(fs::exists(Path("b.onnx")));
}

TEST_F(Policies, TheTimeLimitEndsTheRun) {
  const CommandResult r = Train("--steps 100000000 --time-limit 1s", "t.onnx");
  EXPECT_EQ(r.exit_code, 0) << r.errors;
  EXPECT_THAT(r.errors, AllOf(HasSubstr("the time limit of 0:01 is reached"),
                              HasSubstr("--time-limit 1s --resume")));
  // Ready for a shell.
  EXPECT_THAT(Train("--steps 100000000 --time-limit 0.01s", "my\\ model.onnx").errors,
              HasSubstr("--resume -o '" + Path("my model.onnx") + "'\n"));
  EXPECT_GT(std::atoll(Meta("t.onnx", "onward.steps").c_str()), 0);
  for (const char* wrong : {"soon", "0", "1d", "m", "-1s"}) {
    EXPECT_EQ(Train(std::string("--time-limit=") + wrong, "w.onnx").exit_code, 2) << wrong;
  }
}

TEST_F(Policies, AResumedRunKnowsItsModelAndItsData) {
  ASSERT_EQ(Train("--steps 2", "t.onnx").exit_code, 0);
  const std::string data = data_;
  const std::string line = "train " + Path("m.onnx") + " --resume -o " + Path("t.onnx");
  const auto errors = [&](const std::string& spec, const std::string& more) {
    return RunOnward(BuiltProgram(), line + " --data " + spec + more).errors;
  };
  EXPECT_THAT(errors(data, " --steps 3"), Not(HasSubstr("warning")));
  EXPECT_THAT(errors(Data("other", 2), " --steps 4"),
              HasSubstr("is not the data that '" + Path("t.onnx") + "' was trained on so far"));
  ASSERT_TRUE(WriteModel(TextModel(LinearClassifier(3, 3)), Path("m.onnx")).ok());
  EXPECT_THAT(errors(Data("other", 2), " --steps 5"),
              HasSubstr("'" + Path("m.onnx") + "' is not the model that"));
}

TEST_F(Policies, RateAndScheduleMayBeChangedOnResume) {
  ASSERT_EQ(
      Train("--steps 5 --lr 0.5 --optimizer sgd --schedule cosine:total=50", "t.onnx").exit_code,
      0);
  EXPECT_EQ(Meta("t.onnx", "onward.optimizer"), "sgd:lr=0.5");
  const std::string before = scratch_.Read("t.onnx");
  // What is as it was changes nothing.
  ASSERT_EQ(Resume("--steps 5 --lr 0.5 --schedule cosine:total=50", "t.onnx").exit_code, 0);
  EXPECT_EQ(scratch_.Read("t.onnx"), before);
  const CommandResult r =
      Resume("--steps 8 --lr 0.25 --schedule linear --log " + Path("log"), "t.onnx");
  ASSERT_EQ(r.exit_code, 0) << r.errors;
  EXPECT_EQ(Meta("t.onnx", "onward.schedule"), "linear:total=8");
  // Steps 5, 6 and 7 of 8, counted from 0.
  EXPECT_THAT(scratch_.Read("log"),
              AllOf(HasSubstr("\"learning_rate\":0.09375"), HasSubstr("\"learning_rate\":0.0625"),
                    HasSubstr("\"learning_rate\":0.03125")));
  EXPECT_EQ(RunOnward(BuiltProgram(), "check " + Path("t.onnx")).exit_code, 0);
}

// Twice the rate that two steps bear.
TEST_F(Policies, GoesBackWithHalfTheRate) {
  ASSERT_TRUE(WriteModel(TextModel("g (float[N, 1] x) => (float[N, 1] y) <float[1, 1] w = {0}> "
                                   "{ y = MatMul(x, w) }"),
                         Path("line.onnx"))
                  .ok());
  Tensor x(DType::kFloat, {8, 1}), y(DType::kFloat, {8, 1});
  for (int i = 0; i < 8; ++i) {
    x.data<float>()[i] = 1e10f;
    y.data<float>()[i] = 1;
  }
  ASSERT_TRUE(WriteNpy(Path("x.npy"), x).ok());
  ASSERT_TRUE(WriteNpy(Path("y.npy"), y).ok());
  const std::string line = "train " + Path("line.onnx") + " --data npy:" + Path("x.npy") + "," +
                           Path("y.npy") + " --optimizer sgd:lr=0.1 --steps 2 --batch 4 -o ";
  EXPECT_EQ(RunOnward(BuiltProgram(), line + Path("stop.onnx")).exit_code, 2);
  for (const char* save : {"", " --save-every 1"}) {
    const CommandResult r =
        RunOnward(BuiltProgram(), line + Path("back.onnx") + " --overwrite --on-nan back" + save);
    // With a checkpoint of step 1 its weight is what is too large: no rate helps.
    EXPECT_EQ(r.exit_code, *save == '\0' ? 0 : 2) << r.errors;
    EXPECT_THAT(r.errors, HasSubstr(*save == '\0' ? "back to step 0, learning rate times 0.5"
                                                  : "back to step 1, learning rate times 0.5"));
    if (*save != '\0') continue;
    const auto model = Open(ReadModel(Path("back.onnx")).value());
    EXPECT_THAT(ValueOf(*model, "onward_rate_factor"), ElementsAre(0.5));
  }
}

}  // namespace onward::policies_test
