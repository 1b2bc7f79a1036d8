// SPDX-License-Identifier: Apache-2.0
// What users read first: help texts, and README's commands on the demo's own files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "tests/cli/journey.h"

namespace onward::help_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

class Help : public Journey {};

// Each form of a SPEC, and each of its options, begins a line.
TEST_F(Help, ListsKeepTheirLines) {
  const std::string help = Onward("eval --help").output;
  for (const char* item :
       {"idx:IMAGES,LABELS ", "mnist:DIR ", "csv:FILE?label=COLUMN ", "images:DIR ", "fashion ",
        "limit=N ", "drop=A,B ", "tokens=chars ", "size=HxW "}) {
    EXPECT_THAT(help, HasSubstr(absl::StrCat("\n      ", item)));
  }
}

TEST_F(Help, FitsATerminal) {
  std::vector<std::string> commands = {""};
  for (const absl::string_view line : absl::StrSplit(Onward("--help").output, '\n')) {
    if (absl::StartsWith(line, "  ") && line.size() > 2 && line[2] != ' ') {
      commands.push_back(std::string(line.substr(2, line.find(' ', 2) - 2)));
    }
  }
  EXPECT_GT(commands.size(), 20u);
  for (const std::string& command : commands) {
    const CommandResult r = Onward(command + " --help");
    EXPECT_EQ(r.exit_code, 0) << command;
    // Examples are lines to be typed.
    const std::string text = r.output.substr(0, r.output.find("\nexample:"));
    for (const absl::string_view line : absl::StrSplit(text, '\n')) {
      EXPECT_LE(line.size(), 100u) << command << ": " << line;
    }
  }
}

TEST_F(Help, ReadmesGradientIsOneOfTheDemosFile) {
  std::ifstream readme(SourceFolder() + "/README.md");
  std::string line;
  const std::string begin = "    onward ";
  while (std::getline(readme, line) && !absl::StartsWith(line, begin + "gradient ")) continue;
  ASSERT_FALSE(line.empty()) << "README has no such example";
  line = line.substr(begin.size());
  ASSERT_EQ(RunOnward(BuiltExamples() + "/make_cnn", Path("cnn.onnx")).exit_code, 0);
  Must("make-trainable " + Path("cnn.onnx") + " --loss cross_entropy -o " + Path("trained.onnx"));
  const CommandResult r =
      Onward(absl::StrReplaceAll(line, {{" trained.onnx", " " + Path("trained.onnx")},
                                        {" gradient.onnx", " " + Path("gradient.onnx")}}));
  EXPECT_EQ(r.exit_code, 0) << r.errors;
  EXPECT_THAT(r.output, HasSubstr("fc1.weight__grad"));
  const CommandResult wrong =
      Onward("gradient " + Path("trained.onnx") + " --of los --wrt fc9 -o " + Path("x.onnx"));
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.errors, AllOf(HasSubstr("has no --of 'los', --wrt 'fc9'"),
                                  HasSubstr("its outputs are logits"), HasSubstr("fc1.weight")));
}

}  // namespace onward::help_test
