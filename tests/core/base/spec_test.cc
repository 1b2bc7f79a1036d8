// SPDX-License-Identifier: Apache-2.0
#include "core/base/spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace onward::spec_test {

using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

TEST(SpecText, SplitsNameAndOptions) {
  const absl::StatusOr<SpecText> plain = ParseSpecText("adam");
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(plain->name, "adam");
  EXPECT_TRUE(plain->options.empty());

  const absl::StatusOr<SpecText> full = ParseSpecText(" adamw : lr=1e-3, weight_decay = 0.01");
  ASSERT_TRUE(full.ok()) << full.status();
  EXPECT_EQ(full->name, "adamw");
  EXPECT_THAT(full->options,
              UnorderedElementsAre(Pair("lr", "1e-3"), Pair("weight_decay", "0.01")));
}

TEST(SpecText, RefusesWhatItCannotSplit) {
  for (const char* text :
       {"", ":lr=1", "adam:", "adam:lr", "adam:=1", "adam:lr=1,", "adam:lr=1,lr=2"}) {
    EXPECT_FALSE(ParseSpecText(text).ok()) << text;
  }
}

TEST(NumberOption, KeepsItsRange) {
  const NumberOption beta = NumberOption::Fraction("beta1", 0.9);
  EXPECT_TRUE(CheckNumber(beta, 0).ok());
  EXPECT_TRUE(CheckNumber(beta, 0.999).ok());
  EXPECT_EQ(Message(CheckNumber(beta, 1)), "'beta1' has to be a number in [0, 1), got 1");
  EXPECT_FALSE(CheckNumber(beta, -0.1).ok());
  EXPECT_FALSE(CheckNumber(beta, std::nan("")).ok());
  EXPECT_FALSE(CheckNumber(NumberOption::AtLeast("lr", 0, 0), INFINITY).ok());
}

TEST(NumberOption, RefusesWhatFloatCannotHold) {
  EXPECT_FALSE(CheckNumber(NumberOption::Fraction("beta1", 0.9), 1 - 1e-12).ok());
  EXPECT_FALSE(CheckNumber(NumberOption::Positive("eps", 1e-8), 1e-60).ok());
  EXPECT_FALSE(CheckNumber(NumberOption::AtLeast("lr", 0, 0), 1e60).ok());
}

TEST(NumberOption, ReadsIntegersAndSwitches) {
  const NumberOption count = NumberOption::Count("warmup", 0, 0);
  EXPECT_EQ(*ParseNumber(count, "16777217"), 16777217);
  EXPECT_FALSE(ParseNumber(count, "1.5").ok());
  EXPECT_FALSE(ParseNumber(count, "1e300").ok());
  EXPECT_FALSE(ParseNumber(count, "true").ok());
  EXPECT_EQ(*ParseNumber(NumberOption::Switch("nesterov"), "true"), 1);
  EXPECT_EQ(*ParseNumber(NumberOption::Switch("nesterov"), "0"), 0);
  EXPECT_FALSE(ParseNumber(NumberOption::Switch("nesterov"), "2").ok());
}

TEST(Nearest, FindsTyposOnly) {
  const std::vector<std::string> words = {"adagrad", "adam", "adamw", "sgd"};
  EXPECT_EQ(Nearest("adma", words), "adam");
  EXPECT_EQ(Nearest("adagrd", words), "adagrad");
  EXPECT_EQ(Nearest("sdg", words), "sgd");
  EXPECT_EQ(Nearest("lion", words), "");
  EXPECT_EQ(Nearest("", words), "");
}

TEST(UnknownWord, ListsWhatIsValid) {
  EXPECT_EQ(Message(UnknownWord("loss", "mes", {"l1", "mse"})),
            "unknown loss 'mes': did you mean 'mse'? valid: l1, mse");
  EXPECT_EQ(Message(UnknownWord("loss", "focal", {"l1", "mse"})),
            "unknown loss 'focal'; valid: l1, mse");
  EXPECT_THAT(Message(UnknownWord("option of loss 'l1'", "delta", {})),
              HasSubstr("there are none"));
}

}  // namespace onward::spec_test
