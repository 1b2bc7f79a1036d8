// SPDX-License-Identifier: Apache-2.0
// A file is written whole or not at all: whatever goes wrong, what was there
// before is still there, and only a killed process leaves anything beside it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <functional>

#include "core/onnx_io/model.h"
#include "core/onnx_io/proto.h"
#include "tests/support/scratch.h"
#include "tests/support/text_model.h"

namespace onward::save_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

namespace fs = std::filesystem;

// A model of `floats` values, all `value`.
Model Filled(int floats, float value) {
  Model model = TextModel("m (float[1] x) => (float[1] y) { y = Identity(x) }");
  onnx::TensorProto* t = model.proto().mutable_graph()->add_initializer();
  Tensor values(DType::kFloat, Shape{floats});
  std::fill_n(values.data<float>(), floats, value);
  TensorToProto(values, "W", t);
  return model;
}

std::vector<std::string> FilesIn(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& e : fs::directory_iterator(folder))
    names.push_back(e.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

// Runs `work` in a process of its own; what it returns is the exit code.
pid_t Fork(const std::function<int()>& work) {
  const pid_t child = fork();
  if (child == 0) _exit(work());
  return child;
}

int ExitCode(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

class SaveTest : public ::testing::Test {
 protected:
  void ExpectRefused(const std::string& path) {
    const absl::Status status = WriteModel(Filled(4, 1), path);
    EXPECT_FALSE(status.ok()) << path;
    EXPECT_THAT(std::string(status.message()), HasSubstr(path));
  }
  Scratch scratch_;
};

TEST_F(SaveTest, ReplacesTheWholeFile) {
  const std::string path = scratch_.Write("m.onnx", std::string(100000, 'x'));
  ASSERT_TRUE(WriteModel(Filled(4, 1), path).ok());
  EXPECT_EQ(FileBytes(path), Bytes(Filled(4, 1)));
  EXPECT_THAT(FilesIn(scratch_.folder()), ElementsAre("m.onnx"));
}

TEST_F(SaveTest, RefusesWhatIsNotAFile) {
  fs::create_directory(scratch_.Path("folder"));
  scratch_.Write("target", "old");
  fs::create_symlink("folder", scratch_.Path("link"));
  fs::create_symlink("nowhere/m.onnx", scratch_.Path("dangling"));
  fs::create_symlink("circle", scratch_.Path("circle"));
  ASSERT_EQ(mkfifo(scratch_.Path("fifo").c_str(), 0600), 0);
  for (const char* name : {"folder", "folder/", "link", "dangling", "circle", "fifo",
                           "missing/m.onnx", "target/m.onnx"}) {
    ExpectRefused(scratch_.Path(name));
  }
  ExpectRefused("/dev/full");
  EXPECT_EQ(scratch_.Read("target"), "old");
  EXPECT_THAT(FilesIn(scratch_.folder()),
              ElementsAre("circle", "dangling", "fifo", "folder", "link", "target"));
  EXPECT_THAT(FilesIn(scratch_.Path("folder")), ElementsAre());
}

TEST_F(SaveTest, UnwritableFolder) {
  const std::string path = scratch_.Write("sealed/m.onnx", "old");
  ASSERT_EQ(chmod(scratch_.folder().c_str(), 0755), 0);
  ASSERT_EQ(chmod(scratch_.Path("sealed").c_str(), 0555), 0);
  constexpr uid_t kNobody = 65534;
  const Model model = Filled(4, 1);
  const int code = ExitCode(Fork([&] {
    // The superuser may write anywhere.
    if (geteuid() == 0 && setuid(kNobody) != 0) return 2;
    const absl::Status status = WriteModel(model, path);
    return !status.ok() && status.message().find(path) != absl::string_view::npos ? 0 : 1;
  }));
  EXPECT_EQ(code, 0);
  EXPECT_EQ(FileBytes(path), "old");
  EXPECT_THAT(FilesIn(scratch_.Path("sealed")), ElementsAre("m.onnx"));
  chmod(scratch_.Path("sealed").c_str(), 0755);
}

// The limit on file sizes stands for a full disk: write comes back short, then
// fails.
TEST_F(SaveTest, NoSpaceLeft) {
  const std::string path = scratch_.Path("m.onnx");
  ASSERT_TRUE(WriteModel(Filled(4, 1), path).ok());
  const Model large = Filled(1 << 18, 2);
  const int code = ExitCode(Fork([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {1 << 16, 1 << 16};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 2;
    const absl::Status status = WriteModel(large, path);
    return !status.ok() && status.message().find(path) != absl::string_view::npos ? 0 : 1;
  }));
  EXPECT_EQ(code, 0);
  EXPECT_EQ(FileBytes(path), Bytes(Filled(4, 1)));
  EXPECT_THAT(FilesIn(scratch_.folder()), ElementsAre("m.onnx"));
}

// Killed at any moment, the file is one of those that were written.
TEST_F(SaveTest, KilledWhileSaving) {
  const std::string path = scratch_.Path("m.onnx");
  constexpr int kFloats = 1 << 18;
  const Model even = Filled(kFloats, 2), odd = Filled(kFloats, 3);
  const std::string one = Bytes(even), other = Bytes(odd);
  ASSERT_TRUE(WriteModel(even, path).ok());
  for (int attempt = 0; attempt < 20; ++attempt) {
    const pid_t child = Fork([&] {
      for (int i = 0;; ++i) {
        if (!WriteModel(i % 2 == 0 ? odd : even, path).ok()) return 1;
      }
    });
    usleep(5000 + 1700 * attempt);
    kill(child, SIGKILL);
    EXPECT_EQ(ExitCode(child), -1);
    const std::string found = FileBytes(path);
    EXPECT_TRUE(found == one || found == other)
        << "attempt " << attempt << ": " << found.size() << " bytes";
    EXPECT_TRUE(ReadModel(path).ok());
    // What a killed process leaves is beside the file and named after it.
    for (const std::string& name : FilesIn(scratch_.folder())) {
      if (name == "m.onnx") continue;
      EXPECT_THAT(name, MatchesRegex("\\.m\\.onnx\\.onward-[0-9a-f]+\\.tmp"));
    }
  }
  ASSERT_TRUE(WriteModel(even, path).ok());
  EXPECT_THAT(FilesIn(scratch_.folder()), ElementsAre("m.onnx"));
}

}  // namespace onward::save_test
