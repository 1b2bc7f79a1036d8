// SPDX-License-Identifier: Apache-2.0
// Other people's cases through `onward score`. known_failures.txt lists what
// does not pass, with the reason; the list has to be exact in both directions.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "onnx/onnx_pb.h"
#include "tests/support/command.h"
#include "tests/support/paths.h"
#include "tests/support/scratch.h"

namespace onward {
namespace {

// Case -> reason. A reason that speaks of rounding may go either way on another
// machine.
std::map<std::string, std::string> KnownFailures(const std::string& folder) {
  std::ifstream in(ONWARD_KNOWN_FAILURES);
  std::map<std::string, std::string> cases;
  for (std::string line; std::getline(in, line);) {
    const std::string prefix = folder + "/";
    if (line.rfind(prefix, 0) != 0) continue;
    const size_t colon = line.find(": ");
    EXPECT_NE(colon, std::string::npos) << "no reason: " << line;
    cases[line.substr(prefix.size(), colon - prefix.size())] = line.substr(colon + 2);
  }
  return cases;
}

// The text of a string field in one line of `score --json`.
std::string Field(const std::string& line, const std::string& key) {
  const std::string mark = "\"" + key + "\":\"";
  const size_t begin = line.find(mark);
  if (begin == std::string::npos) return "";
  return line.substr(begin + mark.size(),
                     line.find('"', begin + mark.size()) - begin - mark.size());
}

class Conformance : public testing::TestWithParam<std::pair<std::string, int>> {};

TEST_P(Conformance, PassesButForTheKnownFailures) {
  const auto& [folder, fewest] = GetParam();
  const std::string path = SharedPath(folder);
  if (path.empty()) GTEST_SKIP() << "shared " << folder << " is absent";
  const CommandResult r = RunOnward(ONWARD_BINARY, "score --json " + path);
  ASSERT_NE(r.exit_code, 2) << r.errors;
  ASSERT_NE(r.exit_code, -1) << "ended by a signal";
  const std::map<std::string, std::string> known = KnownFailures(folder);
  int cases = 0;
  std::istringstream lines(r.output);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("{", 0) != 0) continue;
    ++cases;
    const bool passed = Field(line, "result") == "pass";
    auto it = known.find(Field(line, "case"));
    if (it != known.end() && it->second.find("round") != std::string::npos) continue;
    EXPECT_EQ(passed, it == known.end()) << line;
  }
  EXPECT_GE(cases, fewest) << "cases are missing";
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
  const CommandResult r = RunOnward(ONWARD_BINARY, "score " + scratch.folder());
  EXPECT_EQ(r.exit_code, 0) << r.output << r.errors;
}

INSTANTIATE_TEST_SUITE_P(
    Shared, Conformance,
    testing::Values(std::make_pair(std::string("models"), 55),
                    std::make_pair(std::string("peer_cases/onnx-1.12-training-nodes"), 77),
                    std::make_pair(std::string("peer_cases/opencv-onnx"), 170),
                    std::make_pair(std::string("peer_cases/ort-edge"), 200)),
    [](const auto& info) {
      std::string name = info.param.first;
      for (char& c : name) c = isalnum(static_cast<unsigned char>(c)) ? c : '_';
      return name;
    });

}  // namespace
}  // namespace onward
