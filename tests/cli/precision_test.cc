// SPDX-License-Identifier: Apache-2.0
// --accumulate, --ema, --precision and more through the program: a run in parts is the run in one,
// byte for byte, and averages are evaluated and exported.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <random>
#include <string>

#include "core/onnx_io/model.h"
#include "data/arrays/npy.h"
#include "tests/support/command.h"
#include "tests/support/paths.h"
#include "tests/support/scratch.h"
#include "tests/support/text_model.h"

namespace onward::precision_test {

using testing::HasSubstr;

constexpr int kExamples = 64, kSize = 4;

class TrainedInParts : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    folder_ = TemporaryFolder();
    Tensor x(DType::kFloat, {kExamples, kSize}), y(DType::kInt64, {kExamples});
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    for (int i = 0; i < kExamples; ++i) {
      float sum = 0;
      for (int j = 0; j < kSize; ++j) sum += x.data<float>()[i * kSize + j] = normal(random);
      y.data<int64_t>()[i] = sum > 0 ? 1 : 0;
    }
    ASSERT_TRUE(WriteNpy(folder_ + "/x.npy", x).ok());
    ASSERT_TRUE(WriteNpy(folder_ + "/y.npy", y).ok());
    data_ = "npy:" + folder_ + "/x.npy," + folder_ + "/y.npy";
    ASSERT_TRUE(WriteModel(TextModel(R"(
        g (float[N, 4] x) => (float[N, 2] y)
        <float[4, 2] w = {0.1, -0.2, 0.3, 0.4, 0.5, -0.6, 0.7, 0.1}, float[2] s = {1, 1},
         float[2] b = {0, 0}, float[2] mean = {0, 0}, float[2] var = {1, 1}>
        { h = MatMul(x, w) n = BatchNormalization(h, s, b, mean, var) d = Dropout(n) y = Relu(d) })"),
                           Path("m.onnx"))
                    .ok());
  }
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  CommandResult Onward(const std::string& arguments) {
    return RunOnward(BuiltProgram(), arguments);
  }
  CommandResult Train(const std::string& flags, const std::string& out) {
    return Onward("train " + Path("m.onnx") + " --data '" + data_ + "' " + flags + " -o " +
                  Path(out));
  }

  std::string folder_, data_;
};

TEST_P(TrainedInParts, IsTrainedInOne) {
  const std::string begin = std::string(GetParam()) + " --batch 8 --quiet";
  ASSERT_EQ(Train(begin + " --steps 11", "whole.onnx").exit_code, 0);
  const CommandResult first = Train(begin + " --steps 5", "parts.onnx");
  ASSERT_EQ(first.exit_code, 0) << first.errors;
  ASSERT_EQ(Train("--resume --quiet --steps 11", "parts.onnx").exit_code, 0);
  EXPECT_EQ(FileBytes(Path("whole.onnx")), FileBytes(Path("parts.onnx")));
  const CommandResult checked = Onward("check " + Path("parts.onnx"));
  EXPECT_EQ(checked.exit_code, 0) << checked.output;
}

INSTANTIATE_TEST_SUITE_P(Flags, TrainedInParts,
                         testing::Values("--accumulate 3", "--ema 0.9", "--precision bfloat16",
                                         "--precision float16",
                                         "--precision float16 --accumulate 2 --ema 0.9 "
                                         "--clip-norm 1 --optimizer adam",
                                         "--lora 'w:rank=2,alpha=4,dropout=0.25'",
                                         "--schedule onecycle:total=11 --group 'w:lr=2x' "
                                         "--no-decay norm --clip-value 1 --optimizer radam"),
                         [](const auto& info) { return std::to_string(info.index); });

class Overflowing : public TrainedInParts {
 protected:
  void SetUp() override {
    TrainedInParts::SetUp();
    Tensor x = ReadNpy(Path("x.npy")).value();
    x.data<float>()[5] = 1e7f;  // no float16
    ASSERT_TRUE(WriteNpy(Path("x.npy"), x).ok());
  }
};

// One batch of each epoch cannot be computed: the run goes on, and says so.
TEST_P(Overflowing, AreLeftOutAndCounted) {
  const CommandResult trained =
      Train(std::string(GetParam()) + " --batch 8 --epochs 3 --json", "t.onnx");
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  EXPECT_THAT(trained.errors, HasSubstr("of 24 steps overflowed and were left out"));
  const std::string key = "\"skipped_steps\":";
  const size_t at = trained.output.find(key);
  ASSERT_NE(at, std::string::npos) << trained.output;
  EXPECT_GE(std::stoi(trained.output.substr(at + key.size())), 3);
}

INSTANTIATE_TEST_SUITE_P(Flags, Overflowing, testing::Values("--precision float16"),
                         [](const auto& info) { return std::to_string(info.index); });

class Accumulated : public TrainedInParts {};

// 16 steps are 4 updates, and the schedule ends with the last of them.
TEST_P(Accumulated, SchedulesCountUpdates) {
  const CommandResult trained =
      Train(std::string(GetParam()) + " --schedule linear --batch 8 --steps 16", "t.onnx");
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  EXPECT_THAT(trained.errors, HasSubstr("\nschedule    linear:total=4\n"));
}

INSTANTIATE_TEST_SUITE_P(Flags, Accumulated, testing::Values("--accumulate 4"),
                         [](const auto& info) { return std::to_string(info.index); });

class Averaged : public TrainedInParts {};

TEST_P(Averaged, AreEvaluatedAndExported) {
  const CommandResult trained = Train(std::string(GetParam()) + " --batch 8 --epochs 3 --eval '" +
                                          data_ + "' --log " + Path("log.jsonl"),
                                      "t.onnx");
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  EXPECT_THAT(trained.errors, HasSubstr("; averages: loss "));
  EXPECT_THAT(FileBytes(Path("log.jsonl")), HasSubstr("\"ema_eval_accuracy\":"));
  const auto eval = [&](const std::string& arguments) {
    const CommandResult result = Onward("eval " + arguments + " --data '" + data_ + "' --json");
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    return result.output.substr(result.output.find("\"examples\""));
  };
  ASSERT_EQ(Onward("export " + Path("t.onnx") + " --ema -o " + Path("a.onnx")).exit_code, 0);
  ASSERT_EQ(Onward("export " + Path("t.onnx") + " -o " + Path("w.onnx")).exit_code, 0);
  const std::string averages = eval(Path("t.onnx") + " --ema");
  EXPECT_EQ(eval(Path("a.onnx")), averages);
  EXPECT_EQ(eval(Path("w.onnx")), eval(Path("t.onnx")));
  EXPECT_NE(eval(Path("w.onnx")), averages);
  const CommandResult none = Onward("export " + Path("w.onnx") + " --ema -o " + Path("n.onnx"));
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.errors, HasSubstr("holds no averages"));
}

INSTANTIATE_TEST_SUITE_P(Flags, Averaged,
                         testing::Values("--ema 0.9", "--ema 0.9 --precision bfloat16"),
                         [](const auto& info) { return std::to_string(info.index); });

}  // namespace onward::precision_test
