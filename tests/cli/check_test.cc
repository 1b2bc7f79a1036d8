// SPDX-License-Identifier: Apache-2.0
// onward check on files of the training kit, and the other commands on files whose training is
// broken.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/command.h"
#include "tests/support/paths.h"
#include "tests/support/scratch.h"
#include "tests/support/training_kit.h"

namespace onward::check_test {

using ::testing::HasSubstr;
using ::testing::Not;

CommandResult Onward(const std::string& arguments) { return RunOnward(BuiltProgram(), arguments); }

std::string KitModel(const std::string& name) { return KitFolder() + "/" + name + "/model.onnx"; }

TEST(Check, SaysRuleSeverityPlaceAndFix) {
  const CommandResult remark = Onward("check --json " + KitModel("joining/unsorted_algorithm"));
  EXPECT_EQ(remark.exit_code, 1);
  EXPECT_THAT(remark.output, HasSubstr("\"rule\":\"not-sorted\",\"severity\":\"remark\""));
  EXPECT_THAT(remark.output, HasSubstr("\"place\":\"training_info[0].algorithm"));
  const CommandResult error = Onward("check --json " + KitModel("bindings/key_unknown"));
  EXPECT_EQ(error.exit_code, 1);
  EXPECT_THAT(error.output, HasSubstr("\"rule\":\"unknown-key\",\"severity\":\"error\""));
  EXPECT_THAT(error.output, HasSubstr("\"fix\":\""));
  EXPECT_EQ(Onward("check " + KitModel("bindings/swap")).exit_code, 0);
}

TEST(Check, FixWritesTheMendedFile) {
  const Scratch scratch;
  const std::string out = scratch.Path("out.onnx");
  const CommandResult fixed =
      Onward("check " + KitModel("joining/unsorted_algorithm") + " --fix -o " + out);
  EXPECT_EQ(fixed.exit_code, 0) << fixed.output << fixed.errors;
  EXPECT_THAT(fixed.output, HasSubstr("fixed: sorted the nodes of training_info[0].algorithm"));
  EXPECT_EQ(Onward("check " + out).exit_code, 0);
  // What is left is told.
  const CommandResult rest =
      Onward("check " + KitModel("bindings/several_faults") + " --fix -o " + out);
  EXPECT_EQ(rest.exit_code, 1);
  EXPECT_THAT(rest.output, HasSubstr("fixed: dropped the second binding"));
  EXPECT_THAT(rest.output, HasSubstr("[unknown-key]"));
  EXPECT_THAT(rest.output, Not(HasSubstr("[duplicate-key]")));
}

TEST(Check, FixAndOutputBelongTogether) {
  const std::string model = KitModel("bindings/swap");
  EXPECT_EQ(Onward("check --fix " + model).exit_code, 2);
  EXPECT_EQ(Onward("check -o out.onnx " + model).exit_code, 2);
}

// training_info that breaks rules, that names absent data, that is no message at all.
class BrokenTraining : public testing::TestWithParam<const char*> {};

TEST_P(BrokenTraining, DoesNotKeepInferenceBack) {
  const std::string model = KitModel(GetParam());
  const CommandResult run = Onward("run " + model + " --input x=[3,4]");
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.output, HasSubstr("y: float[2]"));
  const CommandResult inspected = Onward("inspect " + model);
  EXPECT_EQ(inspected.exit_code, 0) << inspected.errors;
  EXPECT_THAT(inspected.errors, HasSubstr("warning: the training of"));
  const Scratch scratch;
  const std::string out = scratch.Path("plain.onnx");
  const CommandResult exported = Onward("export " + model + " -o " + out);
  EXPECT_EQ(exported.exit_code, 0) << exported.errors;
  EXPECT_EQ(Onward("check " + out).exit_code, 0);
  // Training needs it.
  EXPECT_EQ(Onward("step " + model + " --input x=[3,4]").exit_code, 2);
  EXPECT_EQ(Onward("check " + model).exit_code, 1);
}

INSTANTIATE_TEST_SUITE_P(Kit, BrokenTraining,
                         testing::Values("contents/broken_training_infers",
                                         "contents/damaged_training_infers",
                                         "contents/external_data_absent"));

TEST(Step, TakesInputsThatNothingReads) {
  const CommandResult r = Onward("step " + KitModel("bindings/swap") + " --input x=1");
  EXPECT_EQ(r.exit_code, 0) << r.errors;
}

}  // namespace onward::check_test
