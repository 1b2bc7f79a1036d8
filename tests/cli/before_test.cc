// SPDX-License-Identifier: Apache-2.0
// Before the first step everything is checked and said.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/onnx_io/model.h"
#include "data/arrays/npy.h"
#include "tests/support/classified.h"
#include "tests/support/command.h"
#include "tests/support/npz.h"
#include "tests/support/paths.h"
#include "tests/support/scratch.h"
#include "tests/support/text_model.h"

namespace onward::before_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

namespace fs = std::filesystem;

class BeforeTheFirstStep : public ::testing::Test {
 protected:
  void SetUp() override {
    Write("m.onnx", LinearClassifier(2, 2));
    scratch_.Write("d.csv", ClassifiedCsv({"cat", "dog"}, 50));
  }
  void Write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(WriteModel(TextModel(text), Path(name)).ok());
  }
  std::string Path(const std::string& name) const { return scratch_.Path(name); }
  std::string Csv(const std::string& name) const {
    return " --data 'csv:" + Path(name) + "?label=label' ";
  }
  CommandResult Train(const std::string& model, const std::string& flags) const {
    return RunOnward(BuiltProgram(), "train " + Path(model) + " " + flags);
  }
  void ExpectRefused(const std::string& model, const std::string& flags,
                     const std::string& message) const {
    const CommandResult r = Train(model, flags + " -o " + Path("none.onnx"));
    EXPECT_EQ(r.exit_code, 2) << flags;
    EXPECT_THAT(r.errors, HasSubstr(message)) << flags;
    EXPECT_FALSE(fs::exists(Path("none.onnx"))) << flags;
  }

  Scratch scratch_;
};

TEST_F(BeforeTheFirstStep, ADryRunSaysAllAndWritesNothing) {
  const CommandResult r =
      Train("m.onnx", Csv("d.csv") +
                          "--dry-run --batch 16 --epochs 3 "
                          "--optimizer adamw:lr=0.01 --schedule cosine:warmup=2");
  ASSERT_EQ(r.exit_code, 0) << r.errors;
  EXPECT_THAT(
      r.output,
      AllOf(HasSubstr("loss        cross_entropy@y (labels 'label')"),
            HasSubstr("adamw: lr 0.01, beta1 0.9, beta2 0.999, eps 1e-08, weight_decay 0.01"),
            HasSubstr("schedule    cosine:total=12,warmup=2"), HasSubstr("classes     2: cat, dog"),
            HasSubstr("weights     1 tensor trained (4 numbers)"),
            HasSubstr("steps       12; an epoch has 4 of 16 examples, the last of 2")));
  EXPECT_THAT(r.output, AllOf(HasSubstr("memory      about "), HasSubstr("time        about ")));
  const CommandResult events =
      Train("m.onnx", Csv("d.csv") + "--dry-run --tensorboard " + Path("events"));
  EXPECT_THAT(events.output, HasSubstr("note: not written in a dry run: --tensorboard\n"));
  EXPECT_FALSE(fs::exists(Path("events")));
  const CommandResult json =
      Train("m.onnx", Csv("d.csv") + "--dry-run --json --train w --batch 16 -o " + Path("o.onnx"));
  EXPECT_THAT(json.output, AllOf(HasSubstr("\"steps\":4,"), HasSubstr("\"trained_numbers\":4,"),
                                 HasSubstr("\"memory_bytes\":"), HasSubstr("\"step_seconds\":")));
  EXPECT_FALSE(fs::exists(Path("o.onnx")));
}

TEST_F(BeforeTheFirstStep, OneClassIsNothingToLearn) {
  scratch_.Write("one.csv", "x0,x1,label\n1,2,0\n2,1,0\n3,5,0\n");
  const std::string told = "warning: all labels of " + Path("one.csv") +
                           " are one class, so there is nothing to tell apart";
  EXPECT_THAT(Train("m.onnx", Csv("one.csv") + "--dry-run").output, HasSubstr(told));
  EXPECT_THAT(Train("m.onnx", Csv("d.csv") + "--dry-run").output, Not(HasSubstr("one class")));
  scratch_.Write("cats.csv", ClassifiedCsv({"cat", "dog"}, 20, {"dog"}));
  ExpectRefused("m.onnx", Csv("cats.csv"),
                "1 class (cat), the model has 2: there is nothing to tell apart; pictures have a "
                "folder for each class");
  // What is wrong with data is told of the data.
  const CommandResult gone = Train("m.onnx", "--dry-run --data mnist:" + Path("gone"));
  EXPECT_EQ(gone.errors, "onward train: " + Path("gone") + ": no such folder\n");
}

// The same words as `inspect` has for the file that is written.
TEST_F(BeforeTheFirstStep, TheRecipeIsSaidWhole) {
  Write("two.onnx", R"(g (float[N, 2] x) => (float[N, 2] y)
      <float[2, 2] W = {1, 2, 3, 4}, float[2] b = {0, 0}, float[2, 2] V = {1, 0.5, 0.25, 2}>
      { h = Gemm(x, W, b) y = MatMul(h, V) })");
  const std::string recipe =
      "--group 'W:lr=10x' --no-decay b --clip-value 2 --clip-norm 1 --precision float16 "
      "--accumulate 2 --ema 0.9 ";
  const CommandResult r = Train("two.onnx", Csv("d.csv") + "--dry-run --batch 16 " + recipe);
  ASSERT_EQ(r.exit_code, 0) << r.errors;
  EXPECT_THAT(
      r.output,
      AllOf(HasSubstr("\ngroups      lr=10x: W; weight_decay=0: b\n"),
            HasSubstr("\nclipping    value=2,norm=1\n"),
            HasSubstr("\nprecision   products in float16, the loss is scaled by 65536, skipped "
                      "steps: 0\n"),
            HasSubstr("\naccumulate  an update of 2 steps, 0 of them done\n"),
            HasSubstr("\naverages    of 3 weights, decay 0.9\n")));
  EXPECT_THAT(r.output, Not(HasSubstr("\nadapters ")));
  // Three of the four steps of an epoch: one more makes the next update.
  ASSERT_EQ(Train("two.onnx", Csv("d.csv") + recipe + "--batch 16 --steps 3 -o " + Path("t.onnx"))
                .exit_code,
            0);
  const CommandResult later =
      Train("two.onnx", Csv("d.csv") + "--resume --batch 16 --steps 4 -o " + Path("t.onnx"));
  EXPECT_THAT(later.errors, HasSubstr("an update of 2 steps, 1 of them done"));
  const CommandResult lora = Train(
      "two.onnx", Csv("d.csv") + "--dry-run --json --lora 'W:rank=1,alpha=2' --lora V:rank=2");
  EXPECT_THAT(lora.output,
              HasSubstr("\"adapters\":\"1 of rank 1, alpha 2; 1 of rank 2, alpha 8\""));
}

TEST_F(BeforeTheFirstStep, ARunSaysTheSame) {
  const CommandResult r = Train("m.onnx", Csv("d.csv") + "-o " + Path("t.onnx"));
  EXPECT_THAT(r.errors, AllOf(HasSubstr("optimizer   adamw: lr 0.001"),
                              HasSubstr("memory      about "), HasSubstr("2: cat, dog")));
  const CommandResult quiet = Train("m.onnx", Csv("d.csv") + "--quiet -o " + Path("q.onnx"));
  EXPECT_EQ(quiet.errors, "");
}

TEST_F(BeforeTheFirstStep, FlagsThatContradictEachOther) {
  const std::string data = Csv("d.csv");
  for (const auto& [flags, message] : std::vector<std::pair<std::string, std::string>>{
           {"--steps 3 --epochs 2", "--steps and --epochs both say when the run ends"},
           {"--resume --overwrite", "choose one"},
           {"--lr 0.1 --optimizer sgd:lr=0.2", "both give the learning rate"},
           {"--eval-every 3", "--eval-every goes by evaluations: give --eval"},
           {"--patience 3", "--patience goes by evaluations"},
           {"--best b.onnx", "--best goes by evaluations"},
           {"--metric accuracy", "--metric goes by evaluations"}}) {
    ExpectRefused("m.onnx", data + flags, message);
  }
  ASSERT_EQ(Train("m.onnx", data + "--steps 1 -o " + Path("t.onnx")).exit_code, 0);
  ExpectRefused("t.onnx", data + "--head 3", "--head=3: '" + Path("t.onnx"));
}

TEST_F(BeforeTheFirstStep, ClassesAgainstOutputs) {
  scratch_.Write("three.csv",
                 "x0,x1,label\n1,2,airplane\n2,1,dog\n3,3,truck\n1,1,truck\n2,2,dog\n");
  ExpectRefused("m.onnx", Csv("three.csv"),
                "3 classes (airplane, dog, truck), the model has 2: --head 3");
  const CommandResult head = Train("m.onnx", Csv("three.csv") + "--head 3 -o " + Path("h.onnx"));
  EXPECT_EQ(head.exit_code, 0) << head.errors;
}

TEST_F(BeforeTheFirstStep, ShapesWithTheirRemedy) {
  scratch_.Write("wide.csv", ClassifiedCsv({"a", "b", "c"}, 9));
  ExpectRefused("m.onnx", Csv("wide.csv"),
                "the table has 3 columns beside the label, the model takes 2: leave some out with "
                "?drop=NAME,NAME");
  scratch_.Write("narrow.csv", "x0,label\n1,a\n2,b\n");
  ExpectRefused("m.onnx", Csv("narrow.csv"), "is it the table the model is for?");
  Write("picture.onnx", absl::StrCat("g (float[N, 3, 4, 6] x) => (float[N, 2] y) <float[72, 2] w "
                                     "= {",
                                     absl::StrJoin(std::vector<int>(144, 0), ", "),
                                     "}> { f = Flatten(x) y = MatMul(f, w) }"));
  const auto pictures = [&](const Shape& shape) {
    Tensor x = Tensor::Zeros(DType::kFloat, shape), y = Tensor::Zeros(DType::kInt64, {shape[0]});
    EXPECT_TRUE(WriteNpy(Path("px.npy"), x).ok());
    EXPECT_TRUE(WriteNpy(Path("py.npy"), y).ok());
    return " --data npy:" + Path("px.npy") + "," + Path("py.npy");
  };
  ExpectRefused("picture.onnx", pictures({2, 3, 8, 8}), "?size=4x6");
  ExpectRefused("picture.onnx", pictures({2, 8, 8, 1}), "?size=4x6&channels=3");
}

TEST_F(BeforeTheFirstStep, LabelsWithTheLossThatTakesThem) {
  const Tensor x = Tensor::Zeros(DType::kFloat, {4, 2});
  WriteNpz(Path("hot.npz"), {{"x", x}, {"y", Floats({4, 2}, {1, 0, 0, 1, 1, 0, 1, 0})}});
  WriteNpz(Path("number.npz"), {{"x", x}, {"y", Int64s({0, 1, 1, 0})}});
  const std::string hot = " --data npz:" + Path("hot.npz"),
                    number = " --data npz:" + Path("number.npz");
  ExpectRefused("m.onnx", hot + " --loss cross_entropy",
                "an example of 'y' is [2], but input 'label' takes [] per example; a number for "
                "each class is a label of --loss cross_entropy:soft_labels=1");
  ExpectRefused("m.onnx", number + " --loss mse",
                "takes [2] per example; the number of a class is a label of --loss cross_entropy");
  for (const std::string& flags :
       {hot + " --loss cross_entropy:soft_labels=1", number + " --loss cross_entropy"}) {
    EXPECT_EQ(Train("m.onnx", flags + " --dry-run").exit_code, 0) << flags;
  }
}

TEST_F(BeforeTheFirstStep, BadNumbersWithTheirRow) {
  Tensor x = Tensor::Zeros(DType::kFloat, {3, 2});
  x.data<float>()[3] = std::nanf("");
  WriteNpz(Path("nan.npz"), {{"x", x}, {"y", Int64s({0, 1, 0})}});
  const std::string data = " --data npz:" + Path("nan.npz") + " ";
  const std::string found = "'x' of example 1 of " + Path("nan.npz") + " is nan";
  ExpectRefused("m.onnx", data,
                found + "; mend the data, leave the row out, or train with --on-nan skip");
  const CommandResult skipped =
      Train("m.onnx", data + "--on-nan skip --batch 1 --no-shuffle -o " + Path("s.onnx"));
  EXPECT_EQ(skipped.exit_code, 0) << skipped.errors;
  EXPECT_THAT(skipped.errors,
              AllOf(HasSubstr(found + "; batches with such numbers are skipped"),
                    HasSubstr("warning: 1 steps were skipped"), Not(HasSubstr("--on-nan"))));
  // A model that looks for NaN means to take it.
  Write("fills.onnx",
        "g (float[N, 2] x) => (float[N, 2] y) <float[2, 2] w = {0, 0, 0, 0}, float zero = {0}> "
        "{ n = IsNaN(x) f = Where(n, zero, x) y = MatMul(f, w) }");
  const CommandResult filled = Train("fills.onnx", data + "-o " + Path("f.onnx"));
  EXPECT_EQ(filled.exit_code, 0) << filled.errors;
}

// Evaluations go by running statistics, which a short run hardly moves.
TEST_F(BeforeTheFirstStep, StatisticsThatStayOld) {
  Write(
      "norm.onnx",
      "g (float[N, 2] x) => (float[N, 2] y) <float[2, 2] w = {1, 2, 3, 4}, float[2] s = {1, 1}, "
      "float[2] b = {0, 0}, float[2] mean = {0, 0}, float[2] var = {1, 1}> { h = MatMul(x, w) y = "
      "BatchNormalization <momentum = 0.99> (h, s, b, mean, var) }");
  const auto told = [&](const std::string& flags) {
    return Train("norm.onnx", Csv("d.csv") + "--dry-run -o " + Path("n.onnx") + flags).output;
  };
  const std::string old = "running statistics of BatchNormalization (momentum 0.99) will be ";
  EXPECT_THAT(told(" --steps 50"), AllOf(HasSubstr("after 50 steps the " + old + "61 %"),
                                         HasSubstr("--freeze-statistics")));
  EXPECT_THAT(told(" --steps 500"), Not(HasSubstr(old)));
  EXPECT_THAT(told(" --steps 50 --freeze-statistics"), Not(HasSubstr(old)));
}

// The report measures what a plain run does not.
TEST_F(BeforeTheFirstStep, MemoryOfWhatTheReportMeasures) {
  const std::string line = Csv("d.csv") + "--dry-run";
  EXPECT_THAT(Train("m.onnx", line + " --report " + Path("r.html")).output,
              HasSubstr(", norms of layers "));
  EXPECT_THAT(Train("m.onnx", line).output, Not(HasSubstr("norms of layers")));
}

TEST_F(BeforeTheFirstStep, WhatTrainsAndWhatIsFrozen) {
  Write("two.onnx",
        "g (float[N, 2] x) => (float[N, 2] y) <float[2, 3] w = {1, 2, 3, 4, 5, 6}, "
        "float[3, 2] v = {1, 2, 3, 4, 5, 6}> { h = MatMul(x, w) y = MatMul(h, v) }");
  EXPECT_THAT(Train("two.onnx", Csv("d.csv") + "--dry-run --train v").output,
              HasSubstr("weights     1 tensor trained (6 numbers): v; 1 frozen (6 numbers)"));
}

// A constant inside says how many examples a step takes.
TEST_F(BeforeTheFirstStep, AModelForWholeBatches) {
  Write("whole.onnx",
        absl::StrCat("g (float[N, 2] x) => (float[N, 2] y) <float[2, 2] w = {0, 0, 0, 0}, "
                     "float[16, 2] c = {",
                     absl::StrJoin(std::vector<int>(32, 1), ", "),
                     "}> { h = MatMul(x, w) y = Mul(h, c) }"));
  const std::string flags = Csv("d.csv") + "--batch 16 --train w ";
  ExpectRefused("whole.onnx", flags,
                "the last batch of an epoch has 2 examples, which --drop-last leaves out");
  const CommandResult r = Train("whole.onnx", flags + "--drop-last -o " + Path("w.onnx"));
  EXPECT_EQ(r.exit_code, 0) << r.errors;
}

// Of the second of two outputs with classes.
TEST_F(BeforeTheFirstStep, LabelsInRange) {
  Write("two.onnx",
        "g (float[N, 2] x) => (float[N, 2] y, float[N, 3] z) <float[2, 2] w = {0, 0, 0, 0}, "
        "float[2, 3] v = {0, 0, 0, 0, 0, 0}> { y = MatMul(x, w) z = MatMul(x, v) }");
  Tensor x = Tensor::Zeros(DType::kFloat, {4, 2});
  WriteNpz(Path("d.npz"),
           {{"x", x}, {"label", Int64s({0, 1, 0, 1})}, {"label_z", Int64s({0, 1, 3, 2})}});
  ExpectRefused(
      "two.onnx", "--data npz:" + Path("d.npz") + " --loss cross_entropy@y --loss cross_entropy@z",
      "'label_z' of example 2 of " + Path("d.npz") + " is 3, but output 'z' has 3 classes, 0 to 2");
}

// A negative number where there is no class: the loss passes over it, or says how.
TEST_F(BeforeTheFirstStep, LabelsOfNoClass) {
  Write("one.onnx",
        "g (float[N, 2] x) => (float[N, 2] y) <float[2, 2] w = {0, 0, 0, 0}> { y = MatMul(x, w) }");
  WriteNpz(Path("d.npz"),
           {{"x", Tensor::Zeros(DType::kFloat, {4, 2})}, {"label", Int64s({0, -100, -100, 1})}});
  const std::string data = "--data npz:" + Path("d.npz") + " ";
  EXPECT_THAT(Train("one.onnx", data + "--dry-run").output,
              HasSubstr("cross_entropy:ignore_index=-100@y"));
  ExpectRefused("one.onnx", data + "--loss cross_entropy",
                "'label' of example 1 of " + Path("d.npz") +
                    " is -100, which is no class; where it means that there is none, say so to the "
                    "loss: --loss cross_entropy:ignore_index=-100");
  WriteNpz(Path("d.npz"),
           {{"x", Tensor::Zeros(DType::kFloat, {4, 2})}, {"label", Int64s({0, -100, -1, 1})}});
  ExpectRefused("one.onnx", data, "--loss cross_entropy:ignore_index=-100");
}

}  // namespace onward::before_test
