// SPDX-License-Identifier: Apache-2.0
// Every flag does something: a row for each, run with the flag and without it, and something that
// shows the difference.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/onnx_io/model.h"
#include "tests/cli/flag_scene.h"
#include "tests/support/classified.h"
#include "tests/support/command.h"
#include "tests/support/paths.h"
#include "tests/support/scratch.h"
#include "tests/support/text_model.h"

namespace onward::flags_test {

using ::testing::HasSubstr;
using ::testing::Not;

FlagRows AllRows() {
  FlagRows rows;
  for (FlagRows& some :
       std::vector<FlagRows>{TrainFlagRows(), FileFlagRows(), RunFlagRows(), ComputeFlagRows()}) {
    for (FlagRow& row : some) rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<std::string> CommandsWithRows() {
  std::set<std::string> commands;
  for (const FlagRow& row : AllRows()) commands.insert(row.command);
  return {commands.begin(), commands.end()};
}

// All rows of a command, so that those with the same arguments share a run without their flags.
class EveryFlag : public ::testing::TestWithParam<std::string> {
 protected:
  // `again`: another run of the same.
  const FlagScene& Without(const FlagRow& row, bool again = false) {
    std::unique_ptr<FlagScene>& scene =
        without_[{row.before, row.base, row.until, row.seen == "TEAMS", again}];
    if (scene == nullptr) scene = std::make_unique<FlagScene>(row, /*with=*/false);
    return *scene;
  }

  void Check(const FlagRow& row) {
    const std::string without = Without(row).Seen(row.seen);
    const FlagScene scene(row, /*with=*/true);
    const std::string with = scene.Seen(row.seen);
    if (row.same) {
      EXPECT_EQ(scene.exit_code(), Without(row).exit_code()) << scene.errors();
      EXPECT_TRUE(with == without) << scene.errors();
      return;
    }
    EXPECT_TRUE(with != without) << scene.errors();
    if (row.with.empty()) {
      // That nothing is said at all shows enough.
      EXPECT_TRUE(with.empty() || without == Without(row, true).Seen(row.seen))
          << "differs by itself";
      return;
    }
    EXPECT_THAT(with, HasSubstr(row.with)) << scene.errors();
    EXPECT_THAT(without, Not(HasSubstr(row.with)));
  }

 private:
  std::map<std::tuple<std::string, std::string, std::string, bool, bool>,
           std::unique_ptr<FlagScene>>
      without_;
};

bool NeedsEmulator(const FlagRow& row) {
  return absl::StrContains(absl::StrCat(row.before, row.base, row.given), "cuda-emu");
}

TEST_P(EveryFlag, IsNoticed) {
  const bool emulates = std::filesystem::exists(EmulatedCuda());
  for (const FlagRow& row : AllRows()) {
    if (row.command != GetParam() || (!emulates && NeedsEmulator(row))) continue;
    SCOPED_TRACE(absl::StrCat(row.command, " ", row.base, " ", row.given));
    Check(row);
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, EveryFlag, ::testing::ValuesIn(CommandsWithRows()),
                         [](const auto& info) {
                           return absl::StrReplaceAll(info.param, {{"-", "_"}});
                         });

// The commands that --help lists.
std::set<std::string> ListedCommands() {
  std::set<std::string> names;
  std::istringstream lines(RunOnward(BuiltProgram(), "--help").output);
  for (std::string line; std::getline(lines, line);) {
    if (line.size() > 2 && line.compare(0, 2, "  ") == 0 && std::islower(line[2])) {
      names.insert(line.substr(2, line.find(' ', 2) - 2));
    }
  }
  return names;
}

// Its flags.
std::set<std::string> Listed(const std::string& command) {
  std::set<std::string> names;
  std::istringstream lines(RunOnward(BuiltProgram(), command + " --help").output);
  for (std::string line; std::getline(lines, line);) {
    // "  --name" or "  -n, --name".
    if (line.size() < 8) continue;
    const size_t at = line.compare(0, 4, "  --") == 0 ? 2 : line.compare(4, 4, ", --") == 0 ? 6 : 0;
    if (at > 0) names.insert(line.substr(at + 2, line.find(' ', at) - at - 2));
  }
  names.erase("help");
  return names;
}

TEST(EveryFlagOf, EveryCommandHasARow) {
  const std::set<std::string> commands = ListedCommands();
  EXPECT_GT(commands.size(), 20u);
  for (const std::string& command : commands) {
    std::set<std::string> rows;
    for (const FlagRow& row : AllRows()) {
      if (row.command == command) rows.insert(row.flag);
    }
    EXPECT_EQ(Listed(command), rows) << command;
  }
}

TEST(AtLeastAndAtMost, SayWhatIsMissing) {
  const Scratch scratch;
  ASSERT_TRUE(WriteModel(TextModel("g (float[N, 1] x) => (float[N, 1] y) <float[1, 1] w = {1}> { y "
                                   "= MatMul(x, w) }"),
                         scratch.Path("line.onnx"))
                  .ok());
  ASSERT_TRUE(WriteModel(TextModel(LinearClassifier(2, 2)), scratch.Path("m.onnx")).ok());
  scratch.Write("d.csv", ClassifiedCsv({"a", "b"}, 20));
  scratch.Write("r.csv", "x,y\n1,2.5\n2,3.5\n");
  const std::string numbers =
      "eval " + scratch.Path("line.onnx") + " --data 'csv:" + scratch.Path("r.csv") + "?label=y' ";
  const std::string classes =
      "eval " + scratch.Path("m.onnx") + " --data 'csv:" + scratch.Path("d.csv") + "?label=label' ";
  for (const auto& [line, code, message] : std::vector<std::tuple<std::string, int, std::string>>{
           {numbers + "--at-least 0.9", 2, "--at-most E asks for an RMSE"},
           {numbers + "--at-most 1", 1, "RMSE 1.5 is above --at-most 1"},
           {numbers + "--at-most 1.5", 0, ""},
           {classes + "--at-most 1", 2, "--at-least A asks for an accuracy"},
           {classes + "--at-least 0.75", 1, "accuracy 0.5000 is below --at-least 0.75"},
           {classes + "--at-least 0.5", 0, ""},
           {classes + "--train-output q", 2, "'q' is not an output of the model; there are: y"}}) {
    const CommandResult r = RunOnward(BuiltProgram(), line);
    EXPECT_EQ(r.exit_code, code) << line << r.errors;
    EXPECT_THAT(r.errors, HasSubstr(message)) << line;
  }
}

}  // namespace onward::flags_test
