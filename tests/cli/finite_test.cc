// SPDX-License-Identifier: Apache-2.0
// One bad number in the data, or a wild learning rate, ends a run with a message; the
// file holds the last good state.
#include "core/tensor/finite.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>

#include "core/onnx_io/model.h"
#include "data/arrays/npy.h"
#include "tests/support/command.h"
#include "tests/support/paths.h"
#include "tests/support/scratch.h"
#include "tests/support/text_model.h"

namespace onward::finite_test {

class BadNumbers : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = TemporaryFolder();
    const std::string make = BuiltExamples() + "/make_cnn ";
    ASSERT_EQ(std::system((make + Path("cnn.onnx") + " >/dev/null").c_str()), 0);
  }

  // 64 pictures, one number of which is `value`.
  std::string Data(float value) {
    Tensor x(DType::kFloat, {64, 1, 28, 28}), y(DType::kInt64, {64});
    for (int64_t i = 0; i < x.elements(); ++i) {
      x.data<float>()[i] = static_cast<float>(i * 37 % 101) * 1e-2f;
    }
    for (int64_t i = 0; i < 64; ++i) y.data<int64_t>()[i] = i % 10;
    x.data<float>()[40 * 784 + 14 * 28 + 14] = value;
    EXPECT_TRUE(WriteNpy(Path("x.npy"), x).ok());
    EXPECT_TRUE(WriteNpy(Path("y.npy"), y).ok());
    return "npy:" + Path("x.npy") + "," + Path("y.npy");
  }

  CommandResult Train(const std::string& arguments, const std::string& name) {
    return RunOnward(BuiltProgram(), "train " + Path("cnn.onnx") +
                                         " --batch 8 --no-shuffle --quiet " + arguments + " -o " +
                                         Path(name));
  }
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }

  // What is in the file is finite, and can be gone on from.
  void ExpectGoodFile(const std::string& name) {
    auto model = ReadModel(Path(name));
    ASSERT_TRUE(model.ok()) << model.status();
    const std::unique_ptr<TrainingModel> training = Open(*model);
    for (const auto& [variable, tensor] : training->variables()) {
      EXPECT_TRUE(AllFinite(tensor)) << variable;
    }
    EXPECT_EQ(RunOnward(BuiltProgram(), "check " + Path(name)).exit_code, 0);
  }

  std::string folder_;
};

// NaN and infinities are found beforehand, with the place where they are.
TEST_F(BadNumbers, InTheDataAreSeenBeforeTheFirstStep) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const CommandResult r = Train("--data '" + Data(bad) + "' --steps 16", "none.onnx");
    EXPECT_EQ(r.exit_code, 2);
    EXPECT_NE(r.errors.find("'x' of example 40 of " + Path("x.npy")), std::string::npos)
        << r.errors;
    EXPECT_FALSE(std::filesystem::exists(Path("none.onnx")));
  }
}

// One that is finite and too large is met in the step.
TEST_F(BadNumbers, InAStepEndTheRun) {
  const std::string data = "--data '" + Data(std::numeric_limits<float>::max()) + "' ";
  const CommandResult r =
      Train(data + "--steps 16 --report " + Path("report.html"), "stopped.onnx");
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_NE(r.errors.find("step 6"), std::string::npos) << r.errors;
  EXPECT_NE(r.errors.find("not finite"), std::string::npos) << r.errors;
  EXPECT_NE(FileBytes(Path("report.html")).find("<svg"), std::string::npos);
  ExpectGoodFile("stopped.onnx");
  ASSERT_EQ(Train(data + "--steps 5", "before.onnx").exit_code, 0);
  EXPECT_EQ(FileBytes(Path("stopped.onnx")), FileBytes(Path("before.onnx")));
}

TEST_F(BadNumbers, MayBeSkipped) {
  const std::string data = "--data '" + Data(std::numeric_limits<float>::max()) + "' ";
  const CommandResult r = Train(data + "--steps 16 --on-nan skip --json", "skipped.onnx");
  EXPECT_EQ(r.exit_code, 0) << r.errors;
  // Once in each of two epochs.
  EXPECT_NE(r.output.find("\"skipped\":2"), std::string::npos) << r.output;
  EXPECT_NE(r.output.find("\"steps\":16"), std::string::npos) << r.output;
  ExpectGoodFile("skipped.onnx");
  ASSERT_EQ(Train(data + "--steps 7 --on-nan skip", "parts.onnx").exit_code, 0);
  ASSERT_EQ(Train(data + "--resume --steps 16 --on-nan skip", "parts.onnx").exit_code, 0);
  EXPECT_EQ(FileBytes(Path("skipped.onnx")), FileBytes(Path("parts.onnx")));
  // Where every batch is bad there is nothing to go on with.
  const CommandResult wild = Train(
      "--data '" + Data(1) + "' --steps 32 --on-nan skip --optimizer sgd:lr=1e30", "wild.onnx");
  EXPECT_EQ(wild.exit_code, 2);
  EXPECT_NE(wild.errors.find("of a whole epoch"), std::string::npos) << wild.errors;
}

TEST_F(BadNumbers, MayBeGoneBackFrom) {
  // Twice the rate that the first steps bear: half of it does.
  const std::string flags =
      "--data '" + Data(1) + "' --steps 8 --optimizer sgd:lr=1e30 --on-nan back";
  const CommandResult wild = Train(flags, "wild.onnx");
  EXPECT_EQ(wild.exit_code, 2);
  EXPECT_NE(wild.errors.find("went back 10 times"), std::string::npos) << wild.errors;
}

TEST_F(BadNumbers, OfAWildLearningRateEndTheRun) {
  for (const std::string optimizer : {"sgd", "adamw", "momentum", "adam", "adagrad"}) {
    const CommandResult r = Train(
        "--data '" + Data(1) + "' --steps 16 --save-every 1 --optimizer " + optimizer + ":lr=1e30",
        optimizer + ".onnx");
    EXPECT_EQ(r.exit_code, 2) << optimizer;
    EXPECT_NE(r.errors.find("not finite"), std::string::npos) << r.errors;
    EXPECT_NE(r.errors.find("smaller learning rate"), std::string::npos) << r.errors;
    ExpectGoodFile(optimizer + ".onnx");
  }
}

}  // namespace onward::finite_test
