// SPDX-License-Identifier: Apache-2.0
// Cross validation with the real program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/json.h"
#include "core/onnx_io/model.h"
#include "tests/cli/journey.h"

namespace onward::folds_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

// 90 rows of three classes that overlap; two names of `kind` stand in one row each.
std::string Overlapping() {
  std::string text = "a,b,kind,class\n";
  for (int i = 0; i < 90; ++i) {
    const int c = i % 3;
    const char* kind = i == 10 ? "once" : i == 77 ? "single" : i % 2 ? "odd" : "even";
    absl::StrAppend(&text, (i * 37 % 11) + 9 * c, ",", (i * 53 % 13) - 9 * c, ",", kind, ",",
                    std::string(1, "xyz"[c]), "\n");
  }
  return text;
}

class FoldsTest : public Journey {
 protected:
  void SetUp() override { scratch_.Write("t.csv", Overlapping()); }
  std::string Data(const std::string& options = "") {
    return " --data 'csv:" + Path("t.csv") + "?label=class" + options + "'";
  }
  std::vector<Json> Objects(const std::string& text) {
    std::vector<Json> objects;
    for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
      auto json = ParseJson(line);
      EXPECT_TRUE(json.ok()) << line;
      if (json.ok()) objects.push_back(*std::move(json));
    }
    return objects;
  }
  std::vector<std::string> Files() {
    std::vector<std::string> names;
    for (const auto& e : fs::directory_iterator(scratch_.folder())) {
      names.push_back(e.path().filename().string());
    }
    return names;
  }
};

double NumberOf(const Json& object, const char* key) {
  const Json* value = object.Find(key);
  EXPECT_NE(value, nullptr) << key;
  return value == nullptr ? NAN : value->number();
}

TEST_F(FoldsTest, MeanAndDeviationOfWhatEachFoldGives) {
  const CommandResult r =
      Onward("train mlp:8" + Data() + " --epochs 20 --batch 8 --seed 3 --folds 4 --json");
  ASSERT_EQ(r.exit_code, 0) << r.errors;
  EXPECT_THAT(Files(), ElementsAre("t.csv"));
  const std::vector<Json> lines = Objects(r.output);
  ASSERT_EQ(lines.size(), 5u) << r.output;
  double examples = 0, mean = 0, squares = 0;
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(NumberOf(lines[i], "fold"), i + 1);
    EXPECT_EQ(NumberOf(lines[i], "examples") + NumberOf(lines[i], "eval_examples"), 90);
    examples += NumberOf(lines[i], "eval_examples");
    mean += NumberOf(lines[i], "eval_accuracy") / 4;
  }
  for (int i = 0; i < 4; ++i) squares += std::pow(NumberOf(lines[i], "eval_accuracy") - mean, 2);
  EXPECT_EQ(examples, 90);
  EXPECT_NEAR(NumberOf(lines[4], "mean"), mean, 1e-6);
  EXPECT_NEAR(NumberOf(lines[4], "deviation"), std::sqrt(squares / 3), 1e-6);
  EXPECT_GT(mean, 0.5);
  // A fold is a run like any other.
  for (int fold : {1, 3}) {
    const std::string part = absl::StrCat("&fold=", fold, "/4&split_seed=3");
    Must("train mlp:8" + Data(part) + " --epochs 20 --batch 8 --seed 3 --overwrite -o " +
         Path("f.onnx"));
    EXPECT_NEAR(Field("eval " + Path("f.onnx") + Data(part), "accuracy"),
                NumberOf(lines[fold - 1], "eval_accuracy"), 1e-6);
  }
}

TEST_F(FoldsTest, TrainsOnEverythingThen) {
  const std::string line = "train mlp:8" + Data() + " --epochs 4 --batch 10 --quiet ";
  const CommandResult r = Onward(line + "--folds 3 -o " + Path("folds.onnx"));
  ASSERT_EQ(r.exit_code, 0) << r.errors;
  EXPECT_THAT(r.output,
              AllOf(HasSubstr("fold 1 of 3: loss "), HasSubstr("(30 examples, trained on 60)"),
                    HasSubstr("3 folds: accuracy "), HasSubstr(" % ± "),
                    HasSubstr("folds.onnx: 36 steps")));
  Must(line + "-o " + Path("all.onnx"));
  Model folds = ReadModel(Path("folds.onnx")).value(), all = ReadModel(Path("all.onnx")).value();
  EXPECT_EQ(InferenceGraph(folds)->initializers.at("head.bias").values<float>(),
            InferenceGraph(all)->initializers.at("head.bias").values<float>());
}

TEST_F(FoldsTest, Numbers) {
  std::string text = "a,price\n";
  for (int i = 0; i < 40; ++i) absl::StrAppend(&text, i, ",", 2 * i, ".5\n");
  const std::string data = " --data 'csv:" + scratch_.Write("p.csv", text) + "?label=price'";
  const std::string line = "train mlp:8" + data + " --epochs 20 --batch 8 --folds 4 --quiet ";
  const CommandResult rmse = Onward(line), mae = Onward(line + "--metric mae --json");
  ASSERT_EQ(rmse.exit_code, 0) << rmse.errors;
  EXPECT_THAT(rmse.output, AllOf(HasSubstr("4 folds: rmse "), HasSubstr(" ± ")));
  EXPECT_THAT(mae.output, HasSubstr("\"metric\":\"mae\",\"mean\":"));
}

TEST_F(FoldsTest, AFileBeginsEachFoldAsItIs) {
  Must("new mlp:8" + Data("&drop=kind") + " -o " + Path("m.onnx"));
  const std::string before = scratch_.Read("m.onnx");
  const CommandResult r = Onward("train " + Path("m.onnx") + Data("&drop=kind") +
                                 " --folds 3 --epochs 5 --batch 10 --lr 0 --json --quiet");
  ASSERT_EQ(r.exit_code, 0) << r.errors;
  EXPECT_EQ(scratch_.Read("m.onnx"), before);
  // A rate of 0 leaves the model as it was: the folds judge it on all rows, a third each.
  double mean = 0;
  for (const Json& line : Objects(r.output)) {
    if (line.Find("fold") != nullptr) mean += NumberOf(line, "eval_accuracy") / 3;
  }
  EXPECT_NEAR(mean, Field("eval " + Path("m.onnx") + Data(), "accuracy"), 1e-6);
}

TEST_F(FoldsTest, Contradictions) {
  const std::string line = "train mlp:8 --folds 3 --batch 8 ", out = " -o " + Path("o.onnx");
  const std::pair<std::string, std::string> cases[] = {
      {Data() + " --eval csv:x", "leave --eval out"},
      {Data() + " --resume" + out, "leave --resume out"},
      {Data("&split=0.8"), "leave split= and fold= out of --data"},
      {Data("&fold=1/2"), "leave split= and fold= out of --data"},
      {Data() + " --best " + Path("b.onnx"), "leave --best out"},
      {Data() + " --patience 2", "leave --patience out"},
      {Data() + " --eval-every 2", "leave --eval-every out"},
      {Data() + " --dry-run", "leave --folds out"},
      {Data() + " --find-lr", "leave --folds out"},
      {Data() + " --time-limit 5s", "leave it out with --folds"},
      {Data() + " --report " + Path("r.html"), "give -o, too"},
      {Data() + " --schedule reduce_on_plateau", "take another --schedule"},
      {Data("&limit=2"), "leaves a part empty"},
  };
  for (const auto& [flags, message] : cases) {
    const CommandResult r = Onward(line + flags);
    EXPECT_EQ(r.exit_code, 2) << flags;
    EXPECT_THAT(r.errors, HasSubstr(message)) << flags;
  }
  EXPECT_THAT(Files(), ElementsAre("t.csv"));
  EXPECT_EQ(Onward("train mlp" + Data() + " --folds 1").exit_code, 2);
}

}  // namespace onward::folds_test
