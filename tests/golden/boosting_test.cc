// SPDX-License-Identifier: Apache-2.0
// Tables of which scikit-learn's gradient boosting was measured (make_boosting.py): one command
// comes within two points of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/json.h"
#include "tests/support/command.h"
#include "tests/support/guard.h"
#include "tests/support/paths.h"

namespace onward::boosting_test {

constexpr double kPoints = 0.02;
// Of median_house_value, in dollars.
constexpr double kLargestError = 58000;

struct BoostedTable {
  std::string path, label, metric;
  double figure = 0;
};

void PrintTo(const BoostedTable& t, std::ostream* out) { *out << t.path << " " << t.label; }

std::vector<BoostedTable> BoostedTables() {
  std::vector<BoostedTable> tables;
  std::ifstream file(GoldenFolder() + "/boosting.txt");
  BoostedTable t;
  while (file >> t.path >> t.label >> t.metric >> t.figure) tables.push_back(t);
  return tables;
}

class Boosting : public ::testing::TestWithParam<BoostedTable> {};

TEST_P(Boosting, IsNotFarAhead) {
  if (Sanitized()) GTEST_SKIP() << "five whole trainings take hours under sanitizers";
  const BoostedTable& table = GetParam();
  const bool own = table.path == "houses.csv";
  const std::string path = own ? GoldenFolder() + "/houses.csv" : SharedPath(table.path);
  if (!std::ifstream(path)) GTEST_SKIP() << path << " is not there";
  const CommandResult r =
      RunOnward(BuiltProgram(), absl::StrCat("train mlp --data 'csv:", path, "?label=", table.label,
                                             "' --folds 5 --quiet --json"));
  ASSERT_EQ(r.exit_code, 0) << r.errors;
  const std::vector<std::string> lines = absl::StrSplit(r.output, '\n', absl::SkipEmpty());
  const auto summary = ParseJson(lines.back());
  ASSERT_TRUE(summary.ok()) << r.output;
  EXPECT_EQ(summary->Find("metric")->text(), table.metric);
  const double mean = summary->Find("mean")->number();
  RecordProperty("mean", absl::StrCat(mean));
  if (table.metric == "accuracy") {
    EXPECT_GT(mean, table.figure - kPoints);
  } else {
    EXPECT_LT(mean, kLargestError);
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, Boosting, ::testing::ValuesIn(BoostedTables()),
                         [](const auto& info) {
                           std::string name = absl::StrCat(info.index, "_", info.param.label);
                           for (char& c : name)
                             c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
                           return name;
                         });

TEST(BoostingFigures, AreThere) { EXPECT_EQ(BoostedTables().size(), 6u); }

}  // namespace onward::boosting_test
