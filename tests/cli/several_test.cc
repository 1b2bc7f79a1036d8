// SPDX-License-Identifier: Apache-2.0
// Models with several inputs, outputs, labels and losses, from an .npz file to the evaluation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>

#include "core/onnx_io/model.h"
#include "tests/support/command.h"
#include "tests/support/npz.h"
#include "tests/support/paths.h"
#include "tests/support/scratch.h"
#include "tests/support/text_model.h"

namespace onward::several_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kRows = 90;

// digit = classes from a and b; size = a number from both.
constexpr char kTwoInputsTwoOutputs[] = R"(
  m (float[N, 2] a, float[N, 1] b) => (float[N, 3] digit, float[N, 1] size)
  <float[3, 3] W = {0, 0, 0, 0, 0, 0, 0, 0, 0}, float[3, 1] V = {0, 0, 0}, float ratio = {0.25},
   bool training = {1}> {
    x = Concat <axis = 1> (a, b)
    digit = MatMul(x, W)
    dropped, mask = Dropout(x, ratio)
    size = MatMul(dropped, V)
  })";

class SeveralTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Write("m.onnx", kTwoInputsTwoOutputs);
    Write("loss.onnx",
          "l (float[N, 1] size, float[N, 1, 1] target) => (float loss) <int64[1] last = {2}> {"
          "  t = Squeeze(target, last) d = Sub(size, t) a = Abs(d)"
          "  loss = ReduceMean <keepdims = 0> (a) }");
    Write("classes.onnx",
          "l (float[N, 3] digit, int32[N] kind) => (float[1] loss) <int64[1] one = {1}> {"
          "  k = Cast <to = 7> (kind) s = SoftmaxCrossEntropyLoss(digit, k)"
          "  loss = Reshape(s, one) }");
    Tensor a(DType::kFloat, {kRows, 2}), b(DType::kFloat, {kRows, 1});
    Tensor kind(DType::kInt64, {kRows}), size(DType::kFloat, {kRows, 1});
    Tensor deep(DType::kFloat, {kRows, 1, 1});
    for (int i = 0; i < kRows; ++i) {
      const int c = i % 3;
      for (int k = 0; k < 2; ++k) a.data<float>()[2 * i + k] = k == c ? 2.f : 0.01f * (i % 7);
      b.data<float>()[i] = c == 2 ? 2.f : 0.02f * (i % 5);
      kind.data<int64_t>()[i] = c;
      size.data<float>()[i] = deep.data<float>()[i] = 1.f + c;
    }
    WriteNpz(Path("d.npz"), {{"a", a}, {"b", b}, {"label", kind}, {"label_size", size}});
    WriteNpz(Path("named.npz"),
             {{"b", b}, {"a", a}, {"kind", kind}, {"weight", size}, {"target", deep}});
    WriteNpz(Path("short.npz"), {{"a", a}, {"b", b}, {"label", kind}});
  }
  void Write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(WriteModel(TextModel(text), Path(name)).ok());
  }
  std::string Path(const std::string& name) const { return scratch_.Path(name); }
  CommandResult Onward(const std::string& arguments) const {
    return RunOnward(BuiltProgram(), arguments);
  }
  CommandResult Train(const std::string& data, const std::string& flags,
                      const std::string& out) const {
    return Onward("train " + Path("m.onnx") + " --data npz:" + Path(data) +
                  " --batch 30 --optimizer adamw:lr=0.1 --quiet " + flags + " -o " + Path(out));
  }

  const Scratch scratch_;
};

// The number after `key` in JSON; NaN where it is not there.
double NumberOf(const std::string& json, const std::string& key, size_t from = 0) {
  const size_t at = json.find("\"" + key + "\":", from);
  return at == std::string::npos ? std::nan("") : std::atof(json.c_str() + at + key.size() + 3);
}

TEST_F(SeveralTest, TrainsAndEvaluatesEachLossApart) {
  const CommandResult trained =
      Train("d.npz",
            "--loss cross_entropy@digit --loss 0.5*mse@size --epochs 40 --json --log " +
                Path("log") + " --eval npz:" + Path("d.npz"),
            "t.onnx");
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  EXPECT_THAT(trained.output, AllOf(HasSubstr("\"eval_accuracy\":1,"), HasSubstr("eval_parts")));
  EXPECT_THAT(scratch_.Read("log"), AllOf(HasSubstr("\"loss_digit\":"), HasSubstr("\"loss_size\":"),
                                          HasSubstr("\"name\":\"0.5*mse@size\"")));
  const CommandResult eval =
      Onward("eval " + Path("t.onnx") + " --data npz:" + Path("d.npz") + " --json");
  ASSERT_EQ(eval.exit_code, 0) << eval.errors;
  const size_t second = eval.output.find("\"name\":\"0.5*mse@size\"");
  ASSERT_NE(second, std::string::npos) << eval.output;
  EXPECT_EQ(NumberOf(eval.output, "accuracy"), 1);
  const double digit = NumberOf(eval.output, "loss", eval.output.find("parts"));
  const double size = NumberOf(eval.output, "loss", second);
  EXPECT_NEAR(NumberOf(eval.output, "loss"), digit + 0.5 * size, 1e-6);
  EXPECT_NEAR(NumberOf(eval.output, "rmse", second), std::sqrt(size), 1e-5);
  const CommandResult text = Onward("eval " + Path("t.onnx") + " --data npz:" + Path("d.npz"));
  EXPECT_THAT(text.output, AllOf(HasSubstr("cross_entropy@digit: loss"),
                                 HasSubstr("(90 of 90 right)"), HasSubstr("0.5*mse@size: loss")));
}

// Dropout is off: two evaluations agree, and so does that of the plain model.
TEST_F(SeveralTest, EvaluationIsOfTheInferenceGraph) {
  ASSERT_EQ(
      Train("d.npz", "--loss cross_entropy@digit --loss mse@size --epochs 2", "t.onnx").exit_code,
      0);
  ASSERT_EQ(Onward("export " + Path("t.onnx") + " -o " + Path("p.onnx")).exit_code, 0);
  const std::string data = " --data npz:" + Path("d.npz") + " --json";
  const std::string losses = " --loss cross_entropy@digit --loss mse@size";
  const std::string own = Onward("eval " + Path("t.onnx") + data).output;
  EXPECT_EQ(own, Onward("eval " + Path("t.onnx") + data).output);
  const std::string plain = Onward("eval " + Path("p.onnx") + data + losses).output;
  EXPECT_NEAR(NumberOf(own, "loss"), NumberOf(plain, "loss"), 1e-6) << own << plain;
  EXPECT_NEAR(NumberOf(own, "rmse", own.find("mse@size")),
              NumberOf(plain, "rmse", plain.find("mse@size")), 1e-6);
}

TEST_F(SeveralTest, LabelsHaveNamesOfTheirOwn) {
  const CommandResult trained = Train("named.npz",
                                      "--loss cross_entropy@digit --loss mse@size --label kind "
                                      "--label weight --epochs 40",
                                      "t.onnx");
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  const CommandResult eval =
      Onward("eval " + Path("t.onnx") + " --data npz:" + Path("named.npz") + " --at-least 0.99");
  EXPECT_EQ(eval.exit_code, 0) << eval.output << eval.errors;
}

// Labels of other shapes and types than the output has, in losses of somebody's own.
TEST_F(SeveralTest, LossFilesAreTrainedAndEvaluated) {
  const std::string losses = "--loss " + Path("classes.onnx") + " --loss " + Path("loss.onnx");
  const CommandResult trained =
      Train("named.npz", losses + " --epochs 40 --eval npz:" + Path("named.npz"), "t.onnx");
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  // The files may go: the trained one holds them.
  std::remove(Path("loss.onnx").c_str());
  const CommandResult eval =
      Onward("eval " + Path("t.onnx") + " --data npz:" + Path("named.npz") + " --json");
  ASSERT_EQ(eval.exit_code, 0) << eval.errors;
  EXPECT_EQ(NumberOf(eval.output, "accuracy"), 1) << eval.output;
  EXPECT_LT(NumberOf(eval.output, "loss"), 1) << eval.output;
  const CommandResult plain = Onward("eval " + Path("m.onnx") + " --data npz:" + Path("named.npz") +
                                     " --loss " + Path("classes.onnx") + " --json");
  EXPECT_NEAR(NumberOf(plain.output, "loss"), std::log(3.0), 1e-5) << plain.output << plain.errors;
}

TEST_F(SeveralTest, ResumesToTheSameBytes) {
  const std::string flags = "--loss cross_entropy@digit --loss mse@size ";
  ASSERT_EQ(Train("d.npz", flags + "--steps 8", "whole.onnx").exit_code, 0);
  ASSERT_EQ(Train("d.npz", flags + "--steps 5", "parts.onnx").exit_code, 0);
  ASSERT_EQ(Onward("train m --data npz:" + Path("d.npz") + " --quiet --resume --steps 8 -o " +
                   Path("parts.onnx"))
                .exit_code,
            0);
  EXPECT_EQ(scratch_.Read("whole.onnx"), scratch_.Read("parts.onnx"));
}

TEST_F(SeveralTest, AMissingLabelIsNamed) {
  const CommandResult r =
      Train("short.npz", "--loss cross_entropy@digit --loss mse@size", "t.onnx");
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_THAT(r.errors, AllOf(HasSubstr("label_size"), HasSubstr("short.npz")));
}

// [N, T, C]: that the classes are last is seen by the labels.
TEST_F(SeveralTest, TheClassAxisIsInferredFromTheLabels) {
  Write("sequence.onnx",
        "g (float[N, 4] x) => (float[N, T, 2] y) <float[1, 2] w = {0, 0}, int64[1] last = {2}>"
        "{ u = Unsqueeze(x, last) y = MatMul(u, w) }");
  Tensor x(DType::kFloat, {kRows, 4}), y(DType::kInt64, {kRows, 4});
  for (int i = 0; i < kRows * 4; ++i) {
    x.data<float>()[i] = static_cast<float>(i * 37 % 19 - 9) + 0.5f;
    y.data<int64_t>()[i] = x.data<float>()[i] > 0 ? 1 : 0;
  }
  WriteNpz(Path("s.npz"), {{"x", x}, {"y", y}});
  const std::string data = " --data npz:" + Path("s.npz");
  for (const std::string flags : {"", "--loss cross_entropy:label_smoothing=0.01 "}) {
    const CommandResult r = Onward("train " + Path("sequence.onnx") + data +
                                   " --batch 30 --epochs 20 --optimizer adamw:lr=0.1 --overwrite " +
                                   flags + "-o " + Path("s.onnx"));
    ASSERT_EQ(r.exit_code, 0) << r.errors;
    EXPECT_THAT(Onward("eval " + Path("s.onnx") + data).output, HasSubstr("(360 of 360 right)"));
    EXPECT_EQ(r.errors.find("on its last axis") == std::string::npos, flags.empty()) << r.errors;
  }
}

// The schedule in the file, the run's own total, and what evaluations did to the rate.
TEST_F(SeveralTest, SchedulesKnowTheRun) {
  ASSERT_EQ(
      Train("d.npz", "--loss cross_entropy@digit --epochs 4 --schedule cosine", "c.onnx").exit_code,
      0);
  EXPECT_EQ(ReadModel(Path("c.onnx")).value().Metadata("onward.schedule"), "cosine:total=12");
  EXPECT_EQ(ReadModel(Path("c.onnx")).value().Metadata("onward.optimizer"), "adamw:lr=0.1");
  const CommandResult without =
      Train("d.npz", "--loss cross_entropy@digit --schedule reduce-on-plateau", "p.onnx");
  EXPECT_EQ(without.exit_code, 2);
  EXPECT_THAT(without.errors, HasSubstr("give --eval"));
}

TEST_F(SeveralTest, PlateauIsStateOfTheFile) {
  const std::string flags =
      "--loss cross_entropy@digit --eval npz:" + Path("d.npz") +
      " --schedule reduce-on-plateau:patience=1,factor=0.5,threshold=0.9,threshold_mode=abs";
  ASSERT_EQ(Train("d.npz", flags + " --epochs 9 --log " + Path("log"), "whole.onnx").exit_code, 0);
  // The first evaluation is better than nothing; of the others every second halves the rate.
  const std::string log = scratch_.Read("log");
  EXPECT_THAT(log, AllOf(HasSubstr("\"learning_rate\":0.1"), HasSubstr("\"learning_rate\":0.05"),
                         HasSubstr("\"learning_rate\":0.0125"), Not(HasSubstr("0.003125"))));
  const Model whole = ReadModel(Path("whole.onnx")).value();
  EXPECT_EQ(ValueOf(*Open(whole), "onward_rate_factor"), std::vector<double>{0.0625});
  ASSERT_EQ(Train("d.npz", flags + " --steps 14", "parts.onnx").exit_code, 0);
  ASSERT_EQ(Onward("train m --data npz:" + Path("d.npz") + " --eval npz:" + Path("d.npz") +
                   " --quiet --resume --epochs 9 -o " + Path("parts.onnx"))
                .exit_code,
            0);
  EXPECT_EQ(scratch_.Read("whole.onnx"), scratch_.Read("parts.onnx"));
  for (const std::string wrong : {"--metric accuracy", "--metric rmse"}) {
    EXPECT_EQ(Train("d.npz", flags + " --epochs 1 " + wrong, "w.onnx").exit_code, 2);
  }
}

}  // namespace onward::several_test
