// SPDX-License-Identifier: Apache-2.0
// Other people's cases through `onward score`. known_failures.txt lists what
// does not pass, with the reason; the list has to be exact in both directions.
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "onnx/onnx_pb.h"
#include "tests/support/command.h"
#include "tests/support/known_failures.h"
#include "tests/support/paths.h"
#include "tests/support/scratch.h"

namespace onward::score_test {

// The text of a string field in one line of `score --json`.
std::string Field(const std::string& line, const std::string& key) {
  const std::string mark = "\"" + key + "\":\"";
  const size_t begin = line.find(mark);
  if (begin == std::string::npos) return "";
  return line.substr(begin + mark.size(),
                     line.find('"', begin + mark.size()) - begin - mark.size());
}

// The cases of a folder are what the list says they are.
void ExpectScore(const std::string& folder, const std::string& path, int fewest) {
  const CommandResult r = RunOnward(BuiltProgram(), "score --json " + path);
  ASSERT_NE(r.exit_code, 2) << r.errors;
  ASSERT_NE(r.exit_code, -1) << "ended by a signal";
  std::vector<KnownFailure> known = ReadKnownFailures(KnownFailuresFile(), folder);
  int cases = 0;
  std::istringstream lines(r.output);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("{", 0) != 0) continue;
    ++cases;
    const Expected expected = ExpectedOf(Field(line, "case"), known);
    const bool passed = Field(line, "result") == "pass";
    EXPECT_TRUE(passed ? expected.pass : expected.fail) << line;
  }
  EXPECT_GE(cases, fewest) << "cases are missing";
  ExpectAllMatched(folder, known);
}

using Folder = std::pair<std::string, int>;  // name, fewest cases

class Conformance : public testing::TestWithParam<Folder> {};

TEST_P(Conformance, PassesButForTheKnownFailures) {
  const auto& [folder, fewest] = GetParam();
  const std::string path = SharedPath(folder);
  if (path.empty()) GTEST_SKIP() << "shared " << folder << " is absent";
  ExpectScore(folder, path, fewest);
}

class OfficialCases : public testing::TestWithParam<Folder> {};

TEST_P(OfficialCases, PassButForTheKnownFailures) {
  const auto& [folder, fewest] = GetParam();
  if (!std::filesystem::exists(OfficialCasesFolder() + "/ready")) {
    GTEST_SKIP() << "the official cases of onnx are not in " << OfficialCasesFolder()
                 << ": ./build.sh test or tools/cases.sh writes them";
  }
  ExpectScore("onnx/" + folder, OfficialCasesFolder() + "/" + folder, fewest);
}

// The one known failure among the training cases passes with the epsilon that
// its values were computed with.
TEST(TrainingCases, OldAdamCasePassesWithItsEpsilon) {
  const std::string from = SharedPath("peer_cases/onnx-1.12-training-nodes/test_adam_multiple");
  if (from.empty()) GTEST_SKIP() << "shared peer_cases/onnx-1.12-training-nodes is absent";
  const Scratch scratch;
  std::filesystem::copy(from, scratch.Path("case"), std::filesystem::copy_options::recursive);
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(FileBytes(from + "/model.onnx")));
  onnx::AttributeProto* epsilon = model.mutable_graph()->mutable_node(0)->add_attribute();
  epsilon->set_name("epsilon");
  epsilon->set_type(onnx::AttributeProto::FLOAT);
  epsilon->set_f(1e-2f);
  scratch.Write("case/model.onnx", model.SerializeAsString());
  const CommandResult r = RunOnward(BuiltProgram(), "score " + scratch.folder());
  EXPECT_EQ(r.exit_code, 0) << r.output << r.errors;
}

std::string FolderName(const testing::TestParamInfo<Folder>& info) {
  std::string name = info.param.first;
  for (char& c : name) c = isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Shared, Conformance,
                         testing::Values(Folder("models", 55),
                                         Folder("peer_cases/onnx-1.12-training-nodes", 77),
                                         Folder("peer_cases/opencv-onnx", 170),
                                         Folder("peer_cases/ort-edge", 200)),
                         FolderName);

INSTANTIATE_TEST_SUITE_P(Onnx, OfficialCases,
                         testing::Values(Folder("node", 1884), Folder("simple", 23),
                                         Folder("pytorch-converted", 82),
                                         Folder("pytorch-operator", 35)),
                         FolderName);

}  // namespace onward::score_test
