// SPDX-License-Identifier: Apache-2.0
// A training run loses nobody's work: not that of an earlier run, not its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "core/onnx_io/model.h"
#include "data/arrays/npy.h"
#include "tests/support/classified.h"
#include "tests/support/command.h"
#include "tests/support/paths.h"
#include "tests/support/scratch.h"
#include "tests/support/text_model.h"

namespace onward::work_kept_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

constexpr int kExamples = 64, kBatch = 16;

class WorkKept : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(WriteModel(TextModel(LinearClassifier(2, 2)), Path("m.onnx")).ok());
    data_ = Data("good", kExamples);
    // The second batch holds numbers too large to be squared.
    half_ = Data("half", kBatch);
    bad_ = Data("bad", 0);
  }
  // Two classes; from example `good` on, the gradient by w overflows.
  std::string Data(const std::string& name, int good) {
    Tensor x(DType::kFloat, {kExamples, 2}), y(DType::kInt64, {kExamples});
    for (int i = 0; i < kExamples; ++i) {
      y.data<int64_t>()[i] = i % 2;
      x.data<float>()[2 * i] = (i % 2 == 0 ? 1.f : -1.f) * (i >= good ? -3e38f : 1.f);
      x.data<float>()[2 * i + 1] = 1;
    }
    EXPECT_TRUE(WriteNpy(Path(name + "_x.npy"), x).ok());
    EXPECT_TRUE(WriteNpy(Path(name + "_y.npy"), y).ok());
    return "npy:" + Path(name + "_x.npy") + "," + Path(name + "_y.npy");
  }
  std::string Path(const std::string& name) const { return scratch_.Path(name); }
  std::string TrainLine(const std::string& data, const std::string& more) const {
    return "train " + Path("m.onnx") + " --no-shuffle --batch 16 --data " + data + " " + more;
  }
  CommandResult Train(const std::string& data, const std::string& more) const {
    return RunOnward(BuiltProgram(), TrainLine(data, more));
  }
  // Runs a line of shell; $train is `onward train` on good data with endless steps.
  int Shell(const std::string& line) const {
    const std::string train =
        BuiltProgram() + " " +
        TrainLine(data_, "--steps 100000000 --log " + Path("log") + " -o " + Path("out.onnx"));
    const std::string waits = "wait_for_steps() { for i in $(seq 600); do [ -s " + Path("log") +
                              " ] && return; sleep 0.1; done; }; ";
    const std::string script =
        "train='" + train + "'; " + waits + line + " >" + Path("said") + " 2>&1";
    const int status = std::system(("bash -c \"" + Escaped(script) + "\"").c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  static std::string Escaped(const std::string& text) {
    std::string out;
    for (char c : text) {
      if (c == '"' || c == '$' || c == '\\' || c == '`') out += '\\';
      out += c;
    }
    return out;
  }
  int64_t Steps(const std::string& name) const {
    const auto model = ReadModel(Path(name));
    return model.ok() ? std::atoll(model->Metadata("onward.steps").c_str()) : -1;
  }

  Scratch scratch_;
  std::string data_, half_, bad_;
};

TEST_F(WorkKept, AnEarlierResultIsNotReplacedUnasked) {
  scratch_.Write("out.onnx", "dear");
  fs::create_symlink("out.onnx", Path("link.onnx"));
  for (const char* name : {"out.onnx", "link.onnx", "m.onnx"}) {
    const std::string before = FileBytes(Path(name));
    // Before any work: the data is not even looked at.
    const CommandResult r = Train("csv:/nowhere?label=0", "-o " + Path(name));
    EXPECT_EQ(r.exit_code, 2);
    EXPECT_THAT(r.errors,
                AllOf(HasSubstr(Path(name)), HasSubstr("--resume"), HasSubstr("--overwrite")));
    EXPECT_EQ(FileBytes(Path(name)), before);
  }
  EXPECT_EQ(Train(data_, "--steps 2 --overwrite -o " + Path("out.onnx")).exit_code, 0);
  EXPECT_EQ(Steps("out.onnx"), 2);
  EXPECT_EQ(Train(data_, "--resume --overwrite -o " + Path("out.onnx")).exit_code, 2);
}

TEST_F(WorkKept, ARunThatFailsInItsFirstStepWritesNothing) {
  EXPECT_EQ(Train(bad_, "-o " + Path("none.onnx")).exit_code, 2);
  EXPECT_FALSE(fs::exists(Path("none.onnx")));
  ASSERT_EQ(Train(data_, "--steps 2 -o " + Path("out.onnx")).exit_code, 0);
  const std::string before = FileBytes(Path("out.onnx"));
  EXPECT_EQ(Train(bad_, "--overwrite -o " + Path("out.onnx")).exit_code, 2);
  EXPECT_EQ(FileBytes(Path("out.onnx")), before);
  EXPECT_EQ(RunOnward(BuiltProgram(),
                      "train m --data " + bad_ + " --resume --steps 9 -o " + Path("out.onnx"))
                .exit_code,
            2);
  EXPECT_EQ(FileBytes(Path("out.onnx")), before);
}

TEST_F(WorkKept, ARunThatFailsHalfWay) {
  // Keeps its own last good state,
  EXPECT_EQ(Train(half_, "-o " + Path("new.onnx")).exit_code, 2);
  EXPECT_EQ(Steps("new.onnx"), 1);
  // but not in the place of an earlier result.
  ASSERT_EQ(Train(data_, "--steps 3 -o " + Path("out.onnx")).exit_code, 0);
  const CommandResult r = Train(half_, "--overwrite -o " + Path("out.onnx"));
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_THAT(r.errors, HasSubstr("is left as it was"));
  EXPECT_EQ(Steps("out.onnx"), 3);
}

TEST_F(WorkKept, ATerminalThatClosesSaves) {
  EXPECT_EQ(Shell("$train & p=$!; wait_for_steps; kill -HUP $p; kill -HUP $p; wait $p"), 1);
  EXPECT_GT(Steps("out.onnx"), 0);
  EXPECT_THAT(scratch_.Read("said"), ::testing::Not(HasSubstr("Hangup")));
}

TEST_F(WorkKept, NohupIsRespected) {
  EXPECT_EQ(Shell("trap '' HUP; $train & p=$!; wait_for_steps; kill -HUP $p; sleep 0.5; "
                  "kill -0 $p || exit 77; kill -TERM $p; wait $p"),
            1);
  EXPECT_GT(Steps("out.onnx"), 0);
}

TEST_F(WorkKept, ProgressThatNobodyReadsDoesNotEndARun) {
  const std::string line =
      BuiltProgram() + " " + TrainLine(data_, "--steps 3 -o " + Path("out.onnx")) + " 2>&1 | true";
  EXPECT_EQ(std::system(line.c_str()), 0);
  EXPECT_EQ(Steps("out.onnx"), 3);
}

TEST_F(WorkKept, ResultsGoWhereLinksLead) {
  fs::create_directory(Path("big"));
  fs::create_symlink("big/out.onnx", Path("link.onnx"));
  fs::create_symlink("gone/out.onnx", Path("lost.onnx"));
  EXPECT_EQ(Train(data_, "--steps 2 -o " + Path("link.onnx")).exit_code, 0);
  EXPECT_EQ(Steps("big/out.onnx"), 2);
  EXPECT_TRUE(fs::is_symlink(Path("link.onnx")));
  for (const char* flag : {"-o ", "--report ", "--log "}) {
    const std::string out = flag == std::string("-o ") ? "" : " -o " + Path("x.onnx");
    const CommandResult r = Train("csv:/nowhere?label=0", flag + Path("lost.onnx") + out);
    EXPECT_EQ(r.exit_code, 2);
    EXPECT_THAT(r.errors, AllOf(HasSubstr(Path("lost.onnx")), HasSubstr("does not exist")));
  }
}

}  // namespace onward::work_kept_test
