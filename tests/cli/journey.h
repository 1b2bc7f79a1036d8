// SPDX-License-Identifier: Apache-2.0
// Runs of the real program one after the other, in a folder of their own.
#ifndef ONWARD_TESTS_CLI_JOURNEY_H_
#define ONWARD_TESTS_CLI_JOURNEY_H_

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/support/command.h"
#include "tests/support/paths.h"
#include "tests/support/scratch.h"

namespace onward {

class Journey : public ::testing::Test {
 protected:
  CommandResult Onward(const std::string& arguments) {
    return RunOnward(BuiltProgram(), arguments);
  }
  void Must(const std::string& arguments) {
    const CommandResult r = Onward(arguments);
    ASSERT_EQ(r.exit_code, 0) << arguments << "\n" << r.errors;
  }
  std::string Path(const std::string& name) { return scratch_.Path(name); }
  // A number of what the command prints with --json.
  double Field(const std::string& line, const std::string& name) {
    const CommandResult r = Onward(line + " --json");
    EXPECT_EQ(r.exit_code, 0) << line << r.errors;
    const std::vector<std::string> parts =
        absl::StrSplit(r.output, absl::StrCat("\"", name, "\":"));
    double value = -1;
    EXPECT_EQ(parts.size(), 2u) << r.output;
    EXPECT_TRUE(absl::SimpleAtod(parts.back().substr(0, parts.back().find_first_of(",}")), &value));
    return value;
  }
  std::vector<std::string> Lines(const std::string& name) {
    return absl::StrSplit(scratch_.Read(name), '\n', absl::SkipEmpty());
  }

  Scratch scratch_;
};

}  // namespace onward

#endif  // ONWARD_TESTS_CLI_JOURNEY_H_
