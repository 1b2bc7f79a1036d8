// SPDX-License-Identifier: Apache-2.0
// Files of the folder authored, which the onnx package for Python wrote without Onward
// (authored.py): a loss, an optimizer, and two models that train against each other. They train,
// and numpy's figures come out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/support/command.h"
#include "tests/support/npz.h"
#include "tests/support/paths.h"
#include "tests/support/scratch.h"
#include "tests/support/tensor_text.h"
#include "tests/support/text_model.h"
#include "training_info/step.h"

namespace onward::authored_test {

constexpr double kTolerance = 1e-5;  // of the largest value, which counts as 1 at least

std::string FileOf(const std::string& name) {
  return absl::StrCat(GoldenFolder(), "/authored/", name);
}

struct Authored {
  int steps = 0;
  std::vector<TensorMap> feeds;  // one after the other, then from the first again
  TensorMap weights;
};

Authored CaseIn(const std::string& name) {
  Authored found;
  std::ifstream file(FileOf(name + ".txt"));
  for (std::string line; std::getline(file, line);) {
    const Words words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (words[0] == "steps") {
      found.steps = std::atoi(words[1].c_str());
      continue;
    }
    const Tensor value = TensorIn(absl::MakeSpan(words).subspan(2));
    if (words[0] == "weight") found.weights[words[1]] = value;
    if (words[0] != "feed") continue;
    const std::pair<std::string, std::string> place = absl::StrSplit(words[1], ':');
    const size_t number = static_cast<size_t>(std::atoi(place.second.c_str()));
    if (found.feeds.size() <= number) found.feeds.resize(number + 1);
    found.feeds[number][place.first] = value;
  }
  return found;
}

CommandResult Must(const std::string& line) {
  const CommandResult result = RunOnward(BuiltProgram(), line);
  EXPECT_EQ(result.exit_code, 0) << line << "\n" << result.output << result.errors;
  return result;
}

void Train(const Authored& authored, int from, int to, TrainingModel* model) {
  for (int k = from; k < to; ++k) {
    const auto out = model->Step(authored.feeds[k % authored.feeds.size()], {});
    ASSERT_TRUE(out.ok()) << out.status();
  }
}

// As a whole, and in two parts with a file between them.
void ExpectFigures(const std::string& file, const Authored& authored) {
  auto whole = Open(ReadModel(file).value());
  Train(authored, 0, authored.steps, whole.get());
  ASSERT_FALSE(authored.weights.empty());
  for (const auto& [name, expected] : authored.weights) {
    const std::vector<double> ours = ValueOf(*whole, name), theirs = Values(expected);
    ASSERT_EQ(ours.size(), theirs.size()) << name;
    for (size_t i = 0; i < ours.size(); ++i) {
      EXPECT_NEAR(ours[i], theirs[i], kTolerance * std::max(1.0, std::abs(theirs[i]))) << name;
    }
  }
  const int half = authored.steps / 2 + 1;
  auto first = Open(ReadModel(file).value());
  Train(authored, 0, half, first.get());
  auto second = Open(Reread(first->Export().value()));
  Train(authored, half, authored.steps, second.get());
  EXPECT_EQ(Bytes(second->Export().value()), Bytes(whole->Export().value()));
}

TEST(Authored, ALossAndAnOptimizerTrainAModel) {
  const Scratch scratch;
  Must(absl::StrCat("make-trainable ", FileOf("line.onnx"), " --loss ", FileOf("log_cosh.onnx"),
                    " --optimizer ", FileOf("averaged_signs.onnx"), ":lr=0.25,decay=0.5 -o ",
                    scratch.Path("t.onnx")));
  Must("check " + scratch.Path("t.onnx"));
  ExpectFigures(scratch.Path("t.onnx"), CaseIn("line"));
}

TEST(Authored, TwoModelsTrainAgainstEachOther) {
  Must("check " + FileOf("two_players.onnx"));
  const Authored authored = CaseIn("two_players");
  ExpectFigures(FileOf("two_players.onnx"), authored);
  // The generator rests in the first iteration, and comes near the numbers it is to be like.
  auto model = Open(ReadModel(FileOf("two_players.onnx")).value());
  Train(authored, 0, 1, model.get());
  EXPECT_EQ(ValueOf(*model, "b")[0], 0);
  EXPECT_NE(ValueOf(*model, "u")[0], 0);
  EXPECT_NEAR(Values(authored.weights.at("b"))[0], 2, 0.5);
}

// The same by the command that trains any file.
TEST(Authored, TwoModelsAreTrainedFromADataSet) {
  const Scratch scratch;
  const Authored authored = CaseIn("two_players");
  std::map<std::string, std::vector<double>> joined;
  for (const TensorMap& feeds : authored.feeds) {
    for (const auto& [name, value] : feeds) {
      for (const double v : Values(value)) joined[name].push_back(v);
    }
  }
  std::map<std::string, Tensor> arrays;
  for (const auto& [name, values] : joined) {
    Tensor t(DType::kFloat, {static_cast<int64_t>(values.size())});
    for (size_t i = 0; i < values.size(); ++i) t.data<float>()[i] = static_cast<float>(values[i]);
    arrays.emplace(name, std::move(t));
  }
  WriteNpz(scratch.Path("d.npz"), {arrays.begin(), arrays.end()});
  Must(absl::StrCat("train ", FileOf("two_players.onnx"), " --data npz:", scratch.Path("d.npz"),
                    " --batch 8 --no-shuffle --steps ", authored.steps, " --quiet -o ",
                    scratch.Path("t.onnx")));
  auto trained = Open(ReadModel(scratch.Path("t.onnx")).value());
  for (const auto& [name, expected] : authored.weights)
    EXPECT_NEAR(ValueOf(*trained, name)[0], Values(expected)[0], 1e-4) << name;
}

}  // namespace onward::authored_test
