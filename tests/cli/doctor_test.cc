// SPDX-License-Identifier: Apache-2.0
// onward doctor as a user meets it; what it finds is tested in tests/trainer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_split.h"
#include "tests/support/classified.h"
#include "tests/support/command.h"
#include "tests/support/paths.h"
#include "tests/support/scratch.h"
#include "tests/support/text_model.h"

namespace onward::doctor_test {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class DoctorCommandTest : public testing::Test {
 protected:
  DoctorCommandTest() {
    model_ = scratch_.Write("m.onnx", Bytes(TextModel(LinearClassifier(3, 3))));
    scratch_.Write("d.csv", ClassifiedCsv({"a", "b", "c"}, 60));
  }
  CommandResult Doctor(const std::string& flags) const { return Of(model_, flags); }
  CommandResult Of(const std::string& model, const std::string& flags) const {
    return RunOnward(BuiltProgram(), "doctor " + model + " --data 'csv:" + scratch_.Path("d.csv") +
                                         "?label=label' " + flags);
  }
  Scratch scratch_;
  std::string model_;
};

constexpr char kWell[] = "--optimizer adamw:lr=0.05 ";

TEST_F(DoctorCommandTest, FindsNothingWhereAllIsWell) {
  const std::string before = FileBytes(model_);
  const CommandResult r = Doctor(kWell);
  EXPECT_EQ(r.exit_code, 0) << r.output << r.errors;
  EXPECT_THAT(r.output, StartsWith("one batch, rate 0.05: loss 1.099 "));
  EXPECT_THAT(r.output, HasSubstr("(50 steps)\n"));
  EXPECT_THAT(r.output, HasSubstr("m.onnx: nothing found\n"));
  EXPECT_EQ(FileBytes(model_), before);
}

TEST_F(DoctorCommandTest, FindingsAreExitCodeOneWithTheFlagThatHelps) {
  const CommandResult r = Doctor("--optimizer sgd:lr=1e-6");
  EXPECT_EQ(r.exit_code, 1) << r.errors;
  EXPECT_THAT(r.output, HasSubstr("[rate-too-low] learning rate: with the rate 1e-06 on one batch "
                                  "the loss goes from 1.099 to 1.099 in 50 steps"));
  EXPECT_THAT(r.output, HasSubstr("\n  try: --lr 0.1\n"));
  EXPECT_THAT(r.output, HasSubstr("m.onnx: 1 finding\n"));
}

TEST_F(DoctorCommandTest, FrozenWeightsAreAFinding) {
  const CommandResult r = Doctor("--freeze '*'");
  EXPECT_EQ(r.exit_code, 1) << r.errors;
  EXPECT_THAT(r.output, HasSubstr("[nothing-trains] model: "));
  EXPECT_THAT(r.output, HasSubstr("take back --freeze"));
  // A pattern that means nothing is wrong usage.
  EXPECT_EQ(Doctor("--freeze nonsense").exit_code, 2);
}

TEST_F(DoctorCommandTest, JsonIsOneObjectForEachLine) {
  const CommandResult r = Doctor("--json --quiet --steps 5 --optimizer sgd:lr=0");
  EXPECT_EQ(r.exit_code, 1) << r.errors;
  const std::vector<std::string> lines = absl::StrSplit(r.output, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 2u) << r.output;
  EXPECT_THAT(lines[0], StartsWith(R"({"finding":"rate-too-low","place":"learning rate",)"
                                   R"("number":0,"what":"the rate is 0)"));
  EXPECT_THAT(lines[0], HasSubstr(R"("help":"--lr 0.001"})"));
  EXPECT_THAT(lines[1], StartsWith(R"({"one_batch_rate":0,"losses":[1.098)"));
  EXPECT_EQ(std::count(lines[1].begin(), lines[1].end(), ','), 6) << lines[1];
  EXPECT_EQ(r.errors, "");
}

TEST_F(DoctorCommandTest, BatchAndSeedDecideWhatIsLookedAt) {
  const auto first = [&](const std::string& flags) {
    return Doctor("--json --quiet --steps 5 " + (kWell + flags)).output;
  };
  EXPECT_EQ(first("--batch 8 --seed 1"), first("--batch 8 --seed 1"));
  EXPECT_NE(first("--batch 8 --seed 1"), first("--batch 8 --seed 2"));
  EXPECT_NE(first("--batch 8 --seed 1"), first("--batch 16 --seed 1"));
}

TEST_F(DoctorCommandTest, InitializeBeginsWithOtherWeights) {
  const std::string flags = std::string("--steps 5 ") + kWell;
  EXPECT_THAT(Doctor(flags).output, HasSubstr("loss 1.099 "));
  EXPECT_THAT(Doctor(flags + "--initialize").output, Not(HasSubstr("loss 1.099 ")));
}

TEST_F(DoctorCommandTest, TakesFilesThatCarryTheirTraining) {
  const std::string trainable = scratch_.Path("t.onnx");
  ASSERT_EQ(RunOnward(BuiltProgram(), "make-trainable " + model_ + " --loss cross_entropy " +
                                          "--schedule cosine:warmup=1000,total=2000 " + kWell +
                                          "-o " + trainable)
                .exit_code,
            0);
  // The warm-up would look like a rate that is too low.
  const CommandResult r = Of(trainable, "");
  EXPECT_EQ(r.exit_code, 0) << r.output << r.errors;
  EXPECT_THAT(r.output, HasSubstr("rate 0.05"));
}

TEST_F(DoctorCommandTest, BadInputIsTwo) {
  EXPECT_EQ(Of(scratch_.Path("none.onnx"), "").exit_code, 2);
  EXPECT_EQ(RunOnward(BuiltProgram(), "doctor " + model_).exit_code, 2);
  EXPECT_EQ(Doctor("--loss nonsense").exit_code, 2);
}

}  // namespace onward::doctor_test
