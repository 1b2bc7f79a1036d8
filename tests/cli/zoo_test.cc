// SPDX-License-Identifier: Apache-2.0
// The recipes of examples/zoo, with the models and data of the shared folder.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <iostream>
#include <regex>

#include "tests/cli/journey.h"

namespace onward::zoo_test {

namespace fs = std::filesystem;

using ::testing::HasSubstr;
using ::testing::StartsWith;

class Zoo : public Journey {
 protected:
  void SetUp() override {
    if (SharedPath("models").empty() || SharedPath("datasets").empty()) {
      GTEST_SKIP() << "the shared models and data are absent (ONWARD_SHARED)";
    }
  }
  CommandResult Tool(const std::string& arguments) {
    return RunOnward(In("python3"), SourceFolder() + "/tools/zoo.py " + arguments);
  }
  void Get(const std::string& names) {
    const CommandResult r = Tool("get " + names + " --from '" + SharedPath(".") + "'");
    ASSERT_EQ(r.exit_code, 0) << r.errors;
  }
  CommandResult Recipe(const std::string& name, const std::string& flags) {
    return RunOnward(In(BuiltProgram()), "train " + File(name) + " --threads 2 --quiet " + flags);
  }
  // A program in the folder that holds zoo/.
  std::string In(const std::string& program) {
    return "cd '" + scratch_.folder() + "' && " + program;
  }
  static std::string File(const std::string& name) {
    return SourceFolder() + "/examples/zoo/" + name + ".toml";
  }
};

std::vector<std::string> Recipes() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(SourceFolder() + "/examples/zoo")) {
    if (entry.path().extension() == ".toml") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// The cells of a recipe in docs/zoo.md.
constexpr size_t kCells = 9, kTitle = 1, kAfter = 6;
std::vector<std::string> Row(const std::string& name) {
  for (const absl::string_view line :
       absl::StrSplit(FileBytes(SourceFolder() + "/docs/zoo.md"), '\n')) {
    if (!absl::StartsWith(line, "| [" + name + "](")) continue;
    return absl::StrSplit(line, " | ");
  }
  return {};
}

bool HasFashion() { return fs::exists("/usr/share/datasets/fashion-mnist"); }

TEST_F(Zoo, EveryRecipeIsReady) {
  const std::vector<std::string> names = Recipes();
  ASSERT_GE(names.size(), 12u);
  ASSERT_NO_FATAL_FAILURE(Get(""));
  for (const std::string& name : names) {
    if (!HasFashion() && absl::StrContains(FileBytes(File(name)), "\"fashion\"")) {
      std::cerr << "left out: " << name
                << " (Fashion-MNIST is absent: Debian's dataset-fashion-mnist)\n";
      continue;
    }
    const CommandResult r = Recipe(name, "--dry-run");
    EXPECT_EQ(r.exit_code, 0) << name << "\n" << r.errors;
    EXPECT_THAT(r.output, HasSubstr("weights     ")) << name;
    const std::vector<std::string> row = Row(name);
    ASSERT_EQ(row.size(), kCells) << name << ": not in docs/zoo.md; tools/zoo.py run " << name;
    EXPECT_THAT(FileBytes(File(name)), StartsWith("# " + row[kTitle] + "\n"));
  }
}

TEST_F(Zoo, RecipesReachTheirTable) {
  for (const std::string name : {"mnist-2x10", "mnist-mlir", "mnist-cnn-pytorch"}) {
    ASSERT_NO_FATAL_FAILURE(Get(name));
    const CommandResult r = Recipe(name, "--json");
    ASSERT_EQ(r.exit_code, 0) << r.errors;
    std::smatch accuracy;
    ASSERT_TRUE(std::regex_search(r.output, accuracy, std::regex("\"eval_accuracy\":([0-9.]+)")));
    const std::vector<std::string> row = Row(name);
    ASSERT_EQ(row.size(), kCells) << name;
    EXPECT_NEAR(100 * std::stod(accuracy[1]), std::stod(row[kAfter]), 1) << name;
  }
}

}  // namespace onward::zoo_test
