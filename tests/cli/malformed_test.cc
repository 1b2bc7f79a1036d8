// SPDX-License-Identifier: Apache-2.0
// Bad files give a message and exit code 2, through the command line as a user
// meets them.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tests/support/command.h"
#include "tests/support/paths.h"
#include "tests/support/scratch.h"

namespace onward::malformed_test {

void ExpectRefused(const std::string& path, const std::string& what) {
  for (const char* command : {"run ", "inspect "}) {
    const CommandResult r = RunOnward(BuiltProgram(), command + path);
    EXPECT_EQ(r.exit_code, 2) << what << ": " << command << path << "\n" << r.output << r.errors;
    EXPECT_NE(r.errors, "") << what;
  }
}

TEST(Malformed, EveryPeerFileIsRefused) {
  const std::string folder = SharedPath("peer_cases/malformed");
  if (folder.empty()) GTEST_SKIP() << "shared peer_cases/malformed is absent";
  int count = 0;
  for (const auto& e : std::filesystem::directory_iterator(folder)) {
    const CommandResult r = RunOnward(BuiltProgram(), "run '" + e.path().string() + "'");
    EXPECT_EQ(r.exit_code, 2) << e.path() << "\n" << r.output << r.errors;
    EXPECT_NE(r.errors.find("onward"), std::string::npos) << e.path();
    ++count;
  }
  EXPECT_EQ(count, 9);
}

TEST(Malformed, ThingsThatAreNotModels) {
  const std::string folder = TemporaryFolder();
  auto write = [&](const std::string& name, const std::string& bytes) {
    std::ofstream(folder + "/" + name, std::ios::binary) << bytes;
    return folder + "/" + name;
  };
  ExpectRefused(write("empty", ""), "empty file");
  ExpectRefused(write("one", "\x08"), "one byte");
  ExpectRefused(write("text", "hello, this is text\n"), "text");
  ExpectRefused(write("gzip", "\x1f\x8b\x08 123"), "gzip");
  ExpectRefused(folder, "folder");
  ExpectRefused(folder + "/missing", "missing file");
  ASSERT_EQ(mkfifo((folder + "/fifo").c_str(), 0600), 0);
  ExpectRefused(folder + "/fifo", "FIFO");
}

TEST(Malformed, TruncatedModelNeverCrashes) {
  const std::string model = TemporaryFolder() + "/cnn.onnx";
  ASSERT_EQ(std::system((BuiltExamples() + "/make_cnn " + model + " >/dev/null").c_str()), 0);
  const std::string bytes = FileBytes(model);
  const std::string cut = TemporaryFolder() + "/cut.onnx";
  for (size_t size : {size_t{10}, size_t{100}, size_t{500}, bytes.size() / 2, bytes.size() - 1}) {
    std::ofstream(cut, std::ios::binary) << bytes.substr(0, size);
    EXPECT_EQ(RunOnward(BuiltProgram(), "inspect " + cut).exit_code, 2) << size;
  }
}

TEST(Usage, WrongFlagsNameTheRemedy) {
  const CommandResult flag = RunOnward(BuiltProgram(), "train model.onnx --dat x -o y");
  EXPECT_EQ(flag.exit_code, 2);
  EXPECT_NE(flag.errors.find("--data"), std::string::npos) << flag.errors;
  const CommandResult command = RunOnward(BuiltProgram(), "trian");
  EXPECT_EQ(command.exit_code, 2);
  EXPECT_NE(command.errors.find("train"), std::string::npos) << command.errors;
}

}  // namespace onward::malformed_test
