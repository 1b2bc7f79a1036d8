// SPDX-License-Identifier: Apache-2.0
// Classes that differ in number, with the real program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/onnx_io/model.h"
#include "tests/cli/journey.h"
#include "tests/support/classified.h"
#include "tests/support/text_model.h"
#include "trainer/run/judging.h"
#include "training_info/author.h"

namespace onward::balance_test {

using ::testing::HasSubstr;

class BalanceTest : public Journey {
 protected:
  // 180 rows of `common`, 20 of `rare`, which lie within each other.
  void SetUp() override {
    std::string text = "x0,x1,label\n";
    for (int i = 0; i < 200; ++i) {
      const bool rare = i % 10 == 0;
      absl::StrAppend(&text, (i * 37 % 41) * 0.1 + (rare ? 1.5 : 0), ",", i % 7, ",",
                      rare ? "rare" : "common", "\n");
    }
    scratch_.Write("d.csv", text);
    ASSERT_TRUE(WriteModel(TextModel(LinearClassifier(2, 2)), Path("m.onnx")).ok());
  }
  std::string Train(const std::string& flags, const std::string& out) {
    return "train " + Path("m.onnx") + " --data 'csv:" + Path("d.csv") +
           "?label=label' --batch 20 --quiet --lr 0.05 " + flags + " -o " + Path(out);
  }
  std::string Weights(const std::string& name) {
    const Model model = ReadModel(Path(name)).value();
    const std::optional<LossSpec> loss = StoredLoss(model);
    if (!loss || !loss->options.contains("weight")) return "";
    return loss->options.at("weight");
  }
  int Rare(const std::string& model) {
    Must("predict " + Path(model) + " --data csv:" + Path("d.csv") + " -o " + Path("p.csv"));
    int count = 0;
    for (const std::string& line : Lines("p.csv")) count += absl::StrContains(line, ",rare,0");
    return count;
  }
};

TEST_F(BalanceTest, RareClassesCount) {
  Must(Train("--epochs 10", "plain.onnx"));
  Must(Train("--epochs 10 --balance", "weights.onnx"));
  Must(Train("--epochs 10 --balance sample", "sample.onnx"));
  EXPECT_LT(Rare("plain.onnx"), 5);
  EXPECT_GT(Rare("weights.onnx"), 20);
  EXPECT_GT(Rare("sample.onnx"), 20);
  // The file says it.
  EXPECT_EQ(Weights("plain.onnx"), "");
  EXPECT_EQ(Weights("weights.onnx"), "0.555556/5");
  EXPECT_EQ(Weights("sample.onnx"), "");
  const CommandResult said =
      Onward(Train("--steps 201 --balance --resume --dry-run", "weights.onnx"));
  EXPECT_THAT(said.output, HasSubstr("cross_entropy:weight=0.555556/5"));
}

TEST_F(BalanceTest, WeightsAreInTheOrderOfTheModel) {
  Model model = ReadModel(Path("m.onnx")).value();
  model.SetMetadata("onward.classes", "[\"rare\",\"common\"]");
  ASSERT_TRUE(WriteModel(model, Path("m.onnx")).ok());
  Must(Train("--steps 1 --balance weights", "o.onnx"));
  EXPECT_EQ(Weights("o.onnx"), "5/0.555556");
  Must(Train("--steps 1 --balance weights --head 2", "h.onnx"));
  EXPECT_EQ(Weights("h.onnx"), "0.555556/5");
}

TEST_F(BalanceTest, RunsGoOnToTheSameBytes) {
  for (const char* how : {"sample", "weights"}) {
    const std::string flags = absl::StrCat("--balance ", how, " --seed 5 ");
    Must(Train(flags + "--steps 17", absl::StrCat(how, ".onnx")));
    Must(Train(flags + "--steps 7", "parts.onnx"));
    Must(Train(absl::StrCat("--balance ", how, " --steps 17 --resume"), "parts.onnx"));
    EXPECT_EQ(scratch_.Read("parts.onnx"), scratch_.Read(absl::StrCat(how, ".onnx"))) << how;
    std::filesystem::remove(Path("parts.onnx"));
  }
  EXPECT_NE(scratch_.Read("sample.onnx"), scratch_.Read("weights.onnx"));
  // What a run began with it keeps, said or not.
  Must(Train("--balance sample --seed 5 --steps 7", "p.onnx"));
  Must(Train("--steps 17 --resume", "p.onnx"));
  EXPECT_EQ(scratch_.Read("p.onnx"), scratch_.Read("sample.onnx"));
}

TEST_F(BalanceTest, Contradictions) {
  Must(Train("--steps 2", "plain.onnx"));
  scratch_.Write("r.csv", "x0,x1,y\n1,2,2.5\n2,3,3.5\n");
  ASSERT_TRUE(WriteModel(TextModel("g (float[N, 2] x) => (float[N, 1] y) <float[2, 1] w = {1, 1}> "
                                   "{ y = MatMul(x, w) }"),
                         Path("line.onnx"))
                  .ok());
  const std::string numbers = "train " + Path("line.onnx") + " --data 'csv:" + Path("r.csv") +
                              "?label=y' --batch 2 -o " + Path("o.onnx");
  const std::pair<std::string, std::string> cases[] = {
      {numbers + " --balance", "has no classes as labels"},
      {numbers + " --balance sample", "has no classes as labels"},
      {Train("--balance --loss focal", "o.onnx"), "no weights of classes; take --balance sample"},
      {Train("--balance --loss cross_entropy:weight=1/2", "o.onnx"), "both weigh the classes"},
      {Train("--balance sample --no-shuffle", "o.onnx"), "examples in a random order"},
      {Train("--balance sample --steps 4 --resume", "plain.onnx"), "leave --balance sample out"},
      {Train("--balance --steps 4 --resume", "plain.onnx"), "is trainable already"},
      {Train("--balance=evenly", "o.onnx"), "evenly"},
  };
  for (const auto& [line, message] : cases) {
    const CommandResult r = Onward(line);
    EXPECT_EQ(r.exit_code, 2) << line;
    EXPECT_THAT(r.errors, HasSubstr(message)) << line;
  }
}

}  // namespace onward::balance_test
