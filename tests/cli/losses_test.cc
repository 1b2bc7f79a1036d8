// SPDX-License-Identifier: Apache-2.0
// Training, and evaluation by the loss that a model was trained with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <ostream>
#include <random>

#include "core/onnx_io/model.h"
#include "data/arrays/npy.h"
#include "tests/support/command.h"
#include "tests/support/paths.h"
#include "tests/support/scratch.h"
#include "tests/support/text_model.h"

namespace onward::losses_test {

using testing::HasSubstr;

struct Row {
  std::string name, model, flags;
  std::string shown;  // by eval, after training
  bool by_position = false;
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

constexpr int kExamples = 160, kSize = 4;

class EvalByLoss : public testing::TestWithParam<Row> {
 protected:
  // x is random; the label is whether it is positive in the sum, or at every position.
  void SetUp() override {
    folder_ = TemporaryFolder();
    const bool by_position = GetParam().by_position;
    Tensor x(DType::kFloat, {kExamples, kSize});
    Tensor y(DType::kInt64, by_position ? Shape{kExamples, kSize} : Shape{kExamples});
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    for (int i = 0; i < kExamples; ++i) {
      float sum = 0;
      for (int j = 0; j < kSize; ++j) {
        float& v = x.data<float>()[i * kSize + j];
        v = normal(random);
        sum += v;
        if (by_position) y.data<int64_t>()[i * kSize + j] = v > 0 ? 1 : 0;
      }
      if (!by_position) y.data<int64_t>()[i] = sum > 0 ? 1 : 0;
    }
    ASSERT_TRUE(WriteNpy(folder_ + "/x.npy", x).ok());
    ASSERT_TRUE(WriteNpy(folder_ + "/y.npy", y).ok());
    data_ = " --data 'npy:" + folder_ + "/x.npy," + folder_ + "/y.npy' ";
    ASSERT_TRUE(WriteModel(TextModel(GetParam().model), folder_ + "/m.onnx").ok());
  }
  CommandResult Onward(const std::string& arguments) {
    return RunOnward(BuiltProgram(), arguments);
  }
  CommandResult Train(const std::string& model, const std::string& flags, const std::string& out) {
    return Onward("train " + folder_ + "/" + model + data_ + flags +
                  " --batch 20 --optimizer adamw:lr=0.05 --quiet -o " + folder_ + "/" + out);
  }

  std::string folder_, data_;
};

TEST_P(EvalByLoss, TrainsAndEvaluates) {
  const CommandResult trained = Train("m.onnx", GetParam().flags + " --epochs 30", "t.onnx");
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  const CommandResult eval = Onward("eval " + folder_ + "/t.onnx" + data_ + "--at-least 0.95");
  EXPECT_EQ(eval.exit_code, 0) << eval.output << eval.errors;
  EXPECT_THAT(eval.output, HasSubstr(GetParam().shown));
}

INSTANTIATE_TEST_SUITE_P(
    Losses, EvalByLoss,
    testing::Values(
        Row{"OneScoreMeansBinary",
            "g (float[N, 4] x) => (float[N, 1] y) <float[4, 1] w = {0, 0, 0, 0}> { y = MatMul(x, "
            "w) }",
            "", "of 160 right"},
        Row{"OneProbability",
            "g (float[N, 4] x) => (float[N, 1] y) <float[4, 1] w = {0, 0, 0, 0}>"
            "{ z = MatMul(x, w) y = Sigmoid(z) }",
            "", "of 160 right"},
        Row{"ManyYesOrNo",
            "g (float[N, 4] x) => (float[N, 4] y) <float[4] w = {0, 0, 0, 0}> { y = Mul(x, w) }",
            "--loss bce", "of 640 right", true},
        Row{"ClassesLast",
            "g (float[N, 4] x) => (float[N, 4, 2] y) <float[1, 2] w = {0, 0}, int64[1] last = {2}>"
            "{ u = Unsqueeze(x, last) y = MatMul(u, w) }",
            "--loss cross_entropy:axis=-1", "of 640 right", true}),
    [](const auto& info) { return info.param.name; });

class Again : public EvalByLoss {};

TEST_P(Again, ATrainedFileTrainsOnAndRefusesOtherLosses) {
  ASSERT_EQ(Train("m.onnx", "--epochs 2", "t.onnx").exit_code, 0);
  const std::string line =
      "train " + folder_ + "/t.onnx" + data_ + "--batch 20 --epochs 1 -o " + folder_ + "/u.onnx ";
  const CommandResult other = Onward(line + "--loss mse --head 2");
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.errors, HasSubstr("--loss=mse, --head=2: "));
  EXPECT_THAT(other.errors, HasSubstr("is trainable already"));
  const CommandResult more = Onward(line);
  ASSERT_EQ(more.exit_code, 0) << more.errors;
  EXPECT_THAT(more.output, HasSubstr(": 8 steps"));
}

// The very command again, with --resume, goes on.
TEST_P(Again, TheFlagsThatItWasMadeWithAreKnown) {
  const std::string flags = "--loss bce:pos_weight=2 --clip-norm 1 --schedule cosine --steps ";
  ASSERT_EQ(Train("m.onnx", flags + "6", "whole.onnx").exit_code, 0);
  const CommandResult again = Train("m.onnx", flags + "6 --resume", "whole.onnx");
  EXPECT_EQ(again.exit_code, 0) << again.errors;
  const CommandResult other =
      Train("m.onnx", "--loss bce:pos_weight=3 --resume --steps 9", "whole.onnx");
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.errors, HasSubstr("made with --loss=bce:pos_weight=2"));
}

// Also where another command made it so.
TEST_P(Again, AFileThatWasMadeTrainableKnowsItsFlags) {
  const std::string flags = "--loss bce:pos_weight=2 --clip-norm 1 --freeze-statistics ";
  const CommandResult made = Onward("make-trainable " + folder_ + "/m.onnx -o " + folder_ +
                                    "/made.onnx --optimizer adamw:lr=0.05 " + flags);
  ASSERT_EQ(made.exit_code, 0) << made.errors;
  const CommandResult same = Train("made.onnx", flags + "--steps 3", "t.onnx");
  EXPECT_EQ(same.exit_code, 0) << same.errors;
  const CommandResult again = Train("made.onnx", flags + "--steps 5 --resume", "t.onnx");
  EXPECT_EQ(again.exit_code, 0) << again.errors;
  const CommandResult other = Train("made.onnx", "--loss mse --clip-norm 1 --steps 3", "u.onnx");
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.errors, HasSubstr("--loss=mse: "));
  EXPECT_THAT(other.errors, HasSubstr("is trainable already, made with --loss=bce:pos_weight=2, "
                                      "--optimizer=adamw:lr=0.05, --freeze-statistics, "
                                      "--clip-norm=1; leave them out"));
}

TEST_P(Again, TheLossIsTheOneItWasTrainedWith) {
  ASSERT_EQ(Train("m.onnx", "--loss l1 --epochs 1", "t.onnx").exit_code, 0);
  const CommandResult eval = Onward("eval " + folder_ + "/t.onnx" + data_);
  double loss = 0, mae = 1;
  const char* numbers = std::strstr(eval.output.c_str(), "loss ");
  ASSERT_EQ(std::sscanf(numbers == nullptr ? "" : numbers, "loss %lf, MAE %lf", &loss, &mae), 2)
      << eval.output << eval.errors;
  EXPECT_NEAR(loss, mae, 1e-5 * mae);
}

TEST_P(Again, ResumeKeepsTheOrderOfTheData) {
  ASSERT_EQ(Train("m.onnx", "--no-shuffle --steps 6", "whole.onnx").exit_code, 0);
  ASSERT_EQ(Train("m.onnx", "--no-shuffle --steps 3", "parts.onnx").exit_code, 0);
  ASSERT_EQ(Onward("train " + folder_ + "/m.onnx" + data_ + "--resume --steps 6 --quiet -o " +
                   folder_ + "/parts.onnx")
                .exit_code,
            0);
  EXPECT_EQ(FileBytes(folder_ + "/whole.onnx"), FileBytes(folder_ + "/parts.onnx"));
  ASSERT_EQ(Train("m.onnx", "--steps 3", "shuffled.onnx").exit_code, 0);
  const CommandResult mixed =
      Onward("train " + folder_ + "/m.onnx" + data_ +
             "--resume --no-shuffle --steps 6 --quiet -o " + folder_ + "/shuffled.onnx");
  EXPECT_EQ(mixed.exit_code, 2);
  EXPECT_THAT(mixed.errors, HasSubstr("leave --no-shuffle out"));
}

INSTANTIATE_TEST_SUITE_P(
    Models, Again,
    testing::Values(Row{
        "OneScore",
        "g (float[N, 4] x) => (float[N, 1] y) <float[4, 1] w = {0, 0, 0, 0}> { y = MatMul(x, w) }",
        "", ""}));

}  // namespace onward::losses_test
