// SPDX-License-Identifier: Apache-2.0
// A run that is killed at any moment goes on from its file to the very bytes it would have had.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "core/onnx_io/model.h"
#include "data/arrays/npy.h"
#include "tests/support/command.h"
#include "tests/support/paths.h"
#include "tests/support/scratch.h"
#include "tests/support/text_model.h"

namespace onward::killed_test {

namespace fs = std::filesystem;

constexpr int kKills = 20;

// Two layers with Dropout, so that the state of the generator counts.
constexpr char kModel[] = R"(
  m (float[N, 2] x) => (float[N, 2] y)
  <float[2, 8] W = {0.1, 0.2, -0.1, 0.3, 0.5, -0.4, 0.2, 0.1,
                    -0.3, 0.1, 0.2, 0.4, -0.2, 0.3, 0.1, -0.1},
   float[8, 2] V = {0.1, -0.2, 0.3, 0.1, -0.1, 0.2, 0.4, -0.3,
                    0.2, 0.1, -0.2, 0.1, 0.3, -0.1, 0.1, 0.2}, float ratio = {0.25}> {
    h = MatMul(x, W)
    r = Relu(h)
    d, mask = Dropout(r, ratio)
    y = MatMul(d, V)
  })";

class Killed : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(WriteModel(TextModel(kModel), scratch_.Path("m.onnx")).ok());
    Tensor x(DType::kFloat, {70, 2}), y(DType::kInt64, {70});
    for (int i = 0; i < 70; ++i) {
      x.data<float>()[2 * i] = 0.1f * static_cast<float>(i % 11);
      x.data<float>()[2 * i + 1] = 0.1f * static_cast<float>(i % 7);
      y.data<int64_t>()[i] = i % 11 > i % 7 ? 1 : 0;
    }
    ASSERT_TRUE(WriteNpy(scratch_.Path("x.npy"), x).ok());
    ASSERT_TRUE(WriteNpy(scratch_.Path("y.npy"), y).ok());
  }
  std::vector<std::string> Words(const std::string& out, bool resume) const {
    const std::string data = "npy:" + scratch_.Path("x.npy") + "," + scratch_.Path("y.npy");
    std::vector<std::string> words = {BuiltProgram(),
                                      "train",
                                      scratch_.Path("m.onnx"),
                                      "--data",
                                      data,
                                      "--eval",
                                      data,
                                      "--batch",
                                      "16",
                                      "--schedule",
                                      "reduce_on_plateau:patience=0,factor=0.9",
                                      "--save-every",
                                      "1",
                                      "--keep",
                                      "2",
                                      "--epochs",
                                      "120",
                                      "--quiet",
                                      "--threads",
                                      "1",
                                      "--best",
                                      scratch_.Path(out + ".best"),
                                      "-o",
                                      scratch_.Path(out)};
    words.push_back(resume ? "--resume" : "--overwrite");
    return words;
  }
  // Starts the program; it has a process of its own.
  static pid_t Start(const std::vector<std::string>& words) {
    std::vector<char*> argv;
    for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    const pid_t pid = fork();
    if (pid == 0) {
      execv(argv[0], argv.data());
      _exit(127);
    }
    return pid;
  }
  static int Wait(pid_t pid) {
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  Scratch scratch_;
};

TEST_F(Killed, AtTwentyMomentsGoesOnToTheSameBytes) {
  ASSERT_EQ(Wait(Start(Words("whole.onnx", false))), 0);
  const auto expect_same = [&] {
    EXPECT_EQ(scratch_.Read("parts.onnx"), scratch_.Read("whole.onnx"));
    EXPECT_EQ(scratch_.Read("parts.onnx.best"), scratch_.Read("whole.onnx.best"));
  };
  int kills = 0;
  for (int round = 0; kills < kKills; ++round) {
    const bool begun = fs::exists(scratch_.Path("parts.onnx"));
    const pid_t pid = Start(Words("parts.onnx", begun));
    // Moments all over the time that a start, a few steps and their saves take.
    std::this_thread::sleep_for(std::chrono::milliseconds(40 + 17 * (round % 12)));
    kill(pid, SIGKILL);
    if (const int code = Wait(pid); code == 0) {  // a quick machine was done already: begin anew
      expect_same();
      fs::remove(scratch_.Path("parts.onnx"));
    } else {
      ASSERT_EQ(code, -1);
      ++kills;
    }
  }
  const bool begun = fs::exists(scratch_.Path("parts.onnx"));
  ASSERT_EQ(Wait(Start(Words("parts.onnx", begun))), 0);
  expect_same();
  // Nothing half written stays.
  for (const auto& e : fs::directory_iterator(scratch_.folder())) {
    EXPECT_EQ(e.path().string().find(".tmp"), std::string::npos) << e.path();
  }
}

}  // namespace onward::killed_test
