// SPDX-License-Identifier: Apache-2.0
#include "cli/args.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace onward::args_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Command Train() {
  Command command;
  command.name = "train";
  command.summary = "fine-tunes a model";
  command.arguments = {{"MODEL", "an .onnx file"}};
  command.flags = {
      Flag::Value("output", "FILE", "where to write the trained model").Short('o').Required(),
      Flag::Count("epochs", "N", "passes over the data", 1).Default("3"),
      Flag::Count("steps", "N", "training steps", 0).Short('n'),
      Flag::Number("rtol", "X", "relative tolerance", 0, 1).Default("1e-3"),
      Flag::Choice("gradient", {"op", "expanded"}, "how gradients are written").Default("op"),
      Flag::Value("input", "NAME=FILE", "a tensor").Repeated(),
      Flag::Value("optimizer", "O", "the optimizer"),
      Flag::Choice("balance", {"weights", "sample"}, "of classes").Implied("weights"),
      Flag::Switch("quiet", "no progress"),
  };
  command.example = "onward train m.onnx -o out.onnx\nonward train m.onnx -o out.onnx --epochs 9";
  command.run = [](const Args& args) -> absl::StatusOr<int> {
    if (args.Argument("MODEL") == "bad.onnx")
      return absl::InvalidArgumentError("bad.onnx: truncated");
    return args.Argument("MODEL") == "worse.onnx" ? 1 : 0;
  };
  return command;
}

absl::StatusOr<Args> Parse(std::vector<std::string> words) { return ParseArgs(Train(), words); }

std::string ErrorOf(std::vector<std::string> words) {
  const absl::StatusOr<Args> args = Parse(std::move(words));
  EXPECT_FALSE(args.ok());
  return args.ok() ? "" : std::string(args.status().message());
}

TEST(Args, ReadsFlagsInEverySpelling) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"m.onnx", "-o", "out", "-n", "5", "--epochs", "2"},
           {"-oout", "m.onnx", "-n5", "--epochs=2"},
           {"--output=out", "--steps", "5", "--epochs", "2", "m.onnx"},
           {"-o=out", "-n=5", "--epochs=2", "--", "m.onnx"}}) {
    const absl::StatusOr<Args> args = Parse(words);
    ASSERT_TRUE(args.ok()) << args.status();
    EXPECT_EQ(args->Argument("MODEL"), "m.onnx");
    EXPECT_EQ(args->String("output"), "out");
    EXPECT_EQ(args->Int("steps"), 5);
    EXPECT_EQ(args->Int("epochs"), 2);
    EXPECT_FALSE(args->Has("quiet"));
  }
}

TEST(Args, AFlagMayStandAlone) {
  const struct {
    std::vector<std::string> words;
    const char* value;
  } cases[] = {{{"--balance", "m.onnx"}, "weights"},
               {{"m.onnx", "--balance"}, "weights"},
               {{"--balance", "--quiet", "m.onnx"}, "weights"},
               {{"--balance", "sample", "m.onnx"}, "sample"},
               {{"--balance=sample", "m.onnx"}, "sample"},
               {{"m.onnx"}, ""}};
  for (const auto& c : cases) {
    std::vector<std::string> words = c.words;
    words.insert(words.end(), {"-o", "out"});
    const absl::StatusOr<Args> args = Parse(words);
    ASSERT_TRUE(args.ok()) << args.status();
    EXPECT_EQ(args->String("balance"), c.value);
    EXPECT_EQ(args->Argument("MODEL"), "m.onnx");
  }
  EXPECT_THAT(ErrorOf({"m.onnx", "-o", "out", "--balance=evenly"}), HasSubstr("evenly"));
  EXPECT_THAT(HelpText("onward", Train()), HasSubstr("--balance [weights|sample]"));
}

TEST(Args, GivesDefaults) {
  const absl::StatusOr<Args> args = Parse({"m.onnx", "-o", "out"});
  ASSERT_TRUE(args.ok()) << args.status();
  EXPECT_EQ(args->Int("epochs"), 3);
  EXPECT_FALSE(args->Has("epochs"));
  EXPECT_DOUBLE_EQ(args->Double("rtol"), 1e-3);
  EXPECT_EQ(args->String("gradient"), "op");
  EXPECT_EQ(args->String("optimizer"), "");
  EXPECT_THAT(args->All("input"), IsEmpty());
}

TEST(Args, CollectsRepeatedFlags) {
  const absl::StatusOr<Args> args = Parse({"m", "--input", "X=x.npy", "-o", "out", "--input=y=1"});
  ASSERT_TRUE(args.ok()) << args.status();
  EXPECT_THAT(args->All("input"), ElementsAre("X=x.npy", "y=1"));
}

TEST(Args, TakesNegativeNumbersAndDashAsValues) {
  const absl::StatusOr<Args> args = Parse({"-", "--input", "-5", "-o", "-"});
  ASSERT_TRUE(args.ok()) << args.status();
  EXPECT_EQ(args->Argument("MODEL"), "-");
  EXPECT_EQ(args->String("input"), "-5");
  EXPECT_EQ(args->String("output"), "-");
}

TEST(Args, EverythingAfterTwoDashesIsAnArgument) {
  const absl::StatusOr<Args> args = Parse({"-o", "out", "--", "--odd-name"});
  ASSERT_TRUE(args.ok()) << args.status();
  EXPECT_EQ(args->Argument("MODEL"), "--odd-name");
}

TEST(Args, SuggestsTheNearestFlag) {
  EXPECT_THAT(ErrorOf({"m", "--optimiser", "adam"}), HasSubstr("did you mean --optimizer?"));
  EXPECT_THAT(ErrorOf({"m", "--epoch=2"}),
              HasSubstr("unknown flag --epoch; did you mean --epochs?"));
  EXPECT_THAT(ErrorOf({"m", "-epochs", "2"}), HasSubstr("did you mean --epochs?"));
  EXPECT_EQ(ErrorOf({"m", "--banana"}), "unknown flag --banana");
  EXPECT_EQ(ErrorOf({"m", "-x"}), "unknown flag -x");
}

TEST(Args, ChecksNumbers) {
  EXPECT_EQ(ErrorOf({"m", "--epochs", "0"}), "--epochs has to be an integer >= 1, got '0'");
  EXPECT_EQ(ErrorOf({"m", "--epochs", "1.5"}), "--epochs has to be an integer >= 1, got '1.5'");
  EXPECT_EQ(ErrorOf({"m", "--epochs", "many"}), "--epochs has to be an integer >= 1, got 'many'");
  EXPECT_EQ(ErrorOf({"m", "--rtol", "nan"}), "--rtol has to be a number in [0, 1], got 'nan'");
  EXPECT_EQ(ErrorOf({"m", "--rtol", "-0.1"}), "--rtol has to be a number in [0, 1], got '-0.1'");
  EXPECT_THAT(ErrorOf({"m", "-n", "99999999999999999999"}), HasSubstr("has to be an integer >= 0"));
}

TEST(Args, ChecksChoices) {
  EXPECT_THAT(ErrorOf({"m", "--gradient", "expand"}), HasSubstr("valid: op, expanded"));
}

TEST(Args, RefusesWhatIsMissingOrTooMuch) {
  EXPECT_EQ(ErrorOf({"-o", "out"}), "missing MODEL: an .onnx file");
  EXPECT_EQ(ErrorOf({"m"}), "missing -o FILE: where to write the trained model");
  EXPECT_EQ(ErrorOf({"m", "extra", "-o", "out"}), "unexpected argument 'extra'");
  EXPECT_EQ(ErrorOf({"m", "-o"}), "-o needs a value: -o FILE");
  EXPECT_EQ(ErrorOf({"m", "-o", "--quiet"}), "-o needs a value: -o FILE");
  EXPECT_EQ(ErrorOf({"m", "-o", "a", "-o", "b"}), "-o is given twice");
  EXPECT_EQ(ErrorOf({"m", "--quiet=yes"}), "--quiet takes no value, got 'yes'");
}

TEST(Args, FlagsThatSpareOrExcludeOthers) {
  Command command = Train();
  command.flags[0] = Flag::Value("output", "FILE", "where").Short('o').RequiredUnless({"quiet"});
  command.clashes = {{"steps", "epochs", "both say when it ends"}};
  EXPECT_TRUE(ParseArgs(command, {"m.onnx", "--quiet"}).ok());
  EXPECT_FALSE(ParseArgs(command, {"m.onnx"}).ok());
  EXPECT_THAT(HelpText("onward", command), HasSubstr("where (required without --quiet)"));
  const auto both = ParseArgs(command, {"m.onnx", "--quiet", "--steps=1", "--epochs=2"});
  EXPECT_EQ(both.status().message(), "both say when it ends");
}

// What the line says comes before the file, also where the two could not both be meant.
TEST(Args, AFileMayGiveThem) {
  Command command = Train();
  command.clashes = {{"steps", "epochs", "both say when it ends"}};
  command.flag_file = [](const std::string& path) -> absl::StatusOr<std::vector<FileFlag>> {
    if (path != "run.toml") return absl::NotFoundError(path);
    return std::vector<FileFlag>{{"model", {"m.onnx"}, "line 1"},
                                 {"output", {"out"}, "line 2"},
                                 {"steps", {"5"}, "line 3"},
                                 {"input", {"a", "b"}, "line 4"},
                                 {"quiet", {"true"}, "line 5"}};
  };
  const auto args = ParseArgs(command, {"run.toml", "--epochs=2", "-oother"});
  ASSERT_TRUE(args.ok()) << args.status();
  EXPECT_EQ(args->Argument("MODEL"), "m.onnx");
  EXPECT_EQ(args->String("output"), "other");
  EXPECT_FALSE(args->Has("steps"));
  EXPECT_THAT(args->All("input"), ElementsAre("a", "b"));
  EXPECT_TRUE(args->Has("quiet"));
  EXPECT_FALSE(ParseArgs(command, {"gone.toml"}).ok());
}

TEST(Args, RepeatedArgumentsTakeTheRest) {
  Command score;
  score.name = "score";
  score.arguments = {{"FIRST", "one"}, {"DIR", "more", /*optional=*/true, /*repeated=*/true}};
  const std::vector<std::string> words = {"a", "b", "c"};
  const absl::StatusOr<Args> args = ParseArgs(score, words);
  ASSERT_TRUE(args.ok()) << args.status();
  EXPECT_THAT(args->Arguments("DIR"), ElementsAre("b", "c"));
  const absl::StatusOr<Args> one = ParseArgs(score, absl::MakeSpan(words).subspan(0, 1));
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_THAT(one->Arguments("DIR"), IsEmpty());
  EXPECT_EQ(one->Argument("DIR"), "");
}

TEST(Args, HelpComesFromTheDeclaration) {
  const std::string help = HelpText("onward", Train());
  EXPECT_THAT(help, HasSubstr("usage: onward train MODEL -o FILE [flags]"));
  EXPECT_THAT(help, HasSubstr("-o, --output FILE"));
  EXPECT_THAT(help, HasSubstr("passes over the data (default 3)"));
  EXPECT_THAT(help, HasSubstr("--gradient op|expanded"));
  EXPECT_THAT(help, HasSubstr("a tensor (may be repeated)"));
  EXPECT_THAT(help, HasSubstr("\nexample:\n  onward train m.onnx -o out.onnx\n"));
}

TEST(Args, HelpIsNotStoppedByMissingArguments) {
  const absl::StatusOr<Args> args = Parse({"--help"});
  ASSERT_TRUE(args.ok()) << args.status();
  EXPECT_TRUE(args->help());
}

class RunProgramTest : public ::testing::Test {
 protected:
  int Run(std::vector<std::string> words) {
    out_.str("");
    err_.str("");
    const CommandLine program = {"onward", "trains ONNX files", "0.1", {Train()}};
    return RunProgram(program, words, out_, err_);
  }
  std::ostringstream out_, err_;
};

TEST_F(RunProgramTest, ReturnsTheCommandsCode) {
  EXPECT_EQ(Run({"train", "m.onnx", "-o", "out"}), 0);
  EXPECT_EQ(Run({"train", "worse.onnx", "-o", "out"}), 1);
  EXPECT_EQ(err_.str(), "");
}

TEST_F(RunProgramTest, BadInputIsTwoWithItsMessage) {
  EXPECT_EQ(Run({"train", "bad.onnx", "-o", "out"}), 2);
  EXPECT_EQ(err_.str(), "onward train: bad.onnx: truncated\n");
}

TEST_F(RunProgramTest, WrongUsageIsTwoAndPointsToHelp) {
  EXPECT_EQ(Run({"train", "m.onnx", "-o", "out", "--quite"}), 2);
  EXPECT_THAT(err_.str(), HasSubstr("onward train: unknown flag --quite; did you mean --quiet?"));
  EXPECT_THAT(err_.str(), HasSubstr("'onward train --help'"));
  EXPECT_EQ(out_.str(), "");
}

TEST_F(RunProgramTest, UnknownCommandIsTwo) {
  EXPECT_EQ(Run({"trian", "m.onnx"}), 2);
  EXPECT_THAT(err_.str(), HasSubstr("unknown command 'trian': did you mean 'train'?"));
}

TEST_F(RunProgramTest, HelpGoesToStandardOutput) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"train", "--help"}, {"help", "train"}, {"train", "-h"}}) {
    EXPECT_EQ(Run(words), 0);
    EXPECT_THAT(out_.str(), HasSubstr("usage: onward train MODEL"));
  }
  EXPECT_EQ(Run({"--help"}), 0);
  EXPECT_THAT(out_.str(), HasSubstr("train  fine-tunes a model"));
  EXPECT_EQ(Run({"--version"}), 0);
  EXPECT_EQ(out_.str(), "onward 0.1\n");
}

TEST_F(RunProgramTest, NothingAskedIsTwo) {
  EXPECT_EQ(Run({}), 2);
  EXPECT_THAT(err_.str(), HasSubstr("commands:"));
  EXPECT_THAT(err_.str(), Not(IsEmpty()));
}

}  // namespace onward::args_test
