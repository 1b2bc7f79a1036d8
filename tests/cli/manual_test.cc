// SPDX-License-Identifier: Apache-2.0
// Manual pages and completion say what --help says.
#include "cli/manual.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "cli/commands.h"
#include "tests/support/command.h"
#include "tests/support/paths.h"
#include "tests/support/scratch.h"

namespace onward::manual_test {

using testing::HasSubstr;
using testing::Not;

CommandLine SomeProgram() {
  return {.name = "onward",
          .summary = "trains",
          .version = "1",
          .commands = {TrainCommand(), DoctorCommand(), ScoreCommand(), BenchCommand()}};
}

std::string Escaped(const std::string& text) { return absl::StrReplaceAll(text, {{"-", "\\-"}}); }

TEST(Manual, EveryFlagIsInEveryText) {
  const CommandLine program = SomeProgram();
  const std::string bash = BashCompletion(program), zsh = ZshCompletion(program),
                    fish = FishCompletion(program);
  for (const Command& command : program.commands) {
    const std::string page = ManualPage(program, command);
    EXPECT_THAT(ManualPage(program), HasSubstr(".B " + Escaped(command.name) + "\n"));
    for (const Flag& flag : command.flags) {
      SCOPED_TRACE(command.name + " " + flag.name);
      EXPECT_THAT(page, HasSubstr(Escaped("--" + flag.name)));
      EXPECT_THAT(bash, HasSubstr(" --" + flag.name));
      EXPECT_THAT(zsh, HasSubstr("--" + flag.name + "["));
      EXPECT_THAT(fish,
                  HasSubstr("'__fish_seen_subcommand_from " + command.name + "' -l " + flag.name));
      for (const std::string& choice : flag.choices) EXPECT_THAT(fish, HasSubstr(choice));
    }
  }
}

TEST(Manual, LinesOfTextAreNoRequests) {
  Command command;
  command.name = "c";
  command.summary = ".s\n'quoted' \\ - x";
  command.flags = {Flag::Value("f", "F", ".TH nothing\n.B neither")};
  const CommandLine program{.name = "p", .summary = "s", .version = "1", .commands = {command}};
  const std::string page = ManualPage(program, command);
  for (absl::string_view line : absl::StrSplit(page, '\n')) {
    EXPECT_NE(line, ".TH nothing");
    EXPECT_NE(line, ".B neither");
  }
  EXPECT_THAT(page, HasSubstr("\\&.TH nothing"));
  EXPECT_THAT(page, HasSubstr("\\e"));
}

// What bash offers behind `words`, the last of which is being typed.
std::string Offered(const Scratch& scratch, const std::string& words) {
  const std::string script =
      absl::StrCat("source <(", BuiltProgram(), " completion bash); COMP_WORDS=(", words,
                   " ); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _onward; echo \"${COMPREPLY[*]}\" > ",
                   scratch.Path("offered"));
  EXPECT_EQ(std::system(absl::StrCat("bash -c '", script, "'").c_str()), 0);
  return scratch.Read("offered");
}

TEST(Manual, BashCompletes) {
  Scratch scratch;
  EXPECT_EQ(Offered(scratch, "onward sco"), "score\n");
  EXPECT_EQ(Offered(scratch, "onward train --clip-n"), "--clip-norm\n");
  EXPECT_EQ(Offered(scratch, "onward bench --mode t"), "train\n");
  EXPECT_THAT(Offered(scratch, "onward score --"), Not(HasSubstr("--clip-norm")));
}

TEST(Manual, IsWrittenAsSystemsKeepIt) {
  Scratch scratch;
  const CommandResult result = RunOnward(BuiltProgram(), "man --into " + scratch.Path("share"));
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(scratch.Read("share/man/man1/onward-train.1"), HasSubstr(".SH OPTIONS"));
  EXPECT_THAT(scratch.Read("share/man/man1/onward.1"), HasSubstr("completion"));
  EXPECT_THAT(scratch.Read("share/zsh/site-functions/_onward"), HasSubstr("#compdef onward"));
  for (const char* name :
       {"bash-completion/completions/onward", "fish/vendor_completions.d/onward.fish"}) {
    EXPECT_THAT(scratch.Read(absl::StrCat("share/", name)), HasSubstr("score"));
  }
  const CommandResult unknown = RunOnward(BuiltProgram(), "man trian");
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.errors, HasSubstr("did you mean 'train'"));
  EXPECT_EQ(RunOnward(BuiltProgram(), "completion tcsh").exit_code, 2);
}

}  // namespace onward::manual_test
