// SPDX-License-Identifier: Apache-2.0
// Training from picture files with the real program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "data/pictures/picture.h"
#include "tests/support/command.h"
#include "tests/support/paths.h"
#include "tests/support/scratch.h"

namespace onward::pictures_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class PicturePath : public testing::Test {
 protected:
  // Bright at the top or at the bottom, in pictures of different sizes.
  void SetUp() override {
    ASSERT_EQ(
        std::system((BuiltExamples() + "/make_cnn " + Path("cnn.onnx") + " >/dev/null").c_str()),
        0);
    std::mt19937 random(3);
    for (int i = 0; i < 80; ++i) {
      const int64_t height = 24 + i % 8, width = 30;
      Picture p{{height, width, 1}, std::vector<uint8_t>(height * width)};
      for (int64_t k = 0; k < height * width; ++k) {
        const bool bright = (k < height * width / 2) == (i % 2 == 0);
        p.pixels[k] = static_cast<uint8_t>(random() % 60 + (bright ? 190 : 0));
      }
      scratch_.Write(absl::StrCat("p/", i % 2 == 0 ? "top" : "under", "/", i, ".png"),
                     *EncodePng(p));
    }
  }

  CommandResult Onward(const std::string& arguments) {
    return RunOnward(BuiltProgram(), arguments);
  }
  std::string Train(const std::string& options) {
    return absl::StrCat("train ", Path("cnn.onnx"), " --data 'images:", Path("p"), "?size=28x28&",
                        options, "' --quiet ");
  }
  std::string Path(const std::string& name) const { return scratch_.Path(name); }

  Scratch scratch_;
};

// What is wrong with the data is told of the data, not of the model.
TEST_F(PicturePath, MessagesNameTheDataAndTheSizeThatTheModelTakes) {
  const auto errors = [&](const std::string& options) {
    return Onward("train " + Path("cnn.onnx") + " --data 'images:" + Path("p") + options +
                  "' --head 2 -o " + Path("none.onnx"))
        .errors;
  };
  EXPECT_THAT(errors(""), AllOf(StartsWith("onward train: " + Path("p") + "/"),
                                HasSubstr("; resize all with size=28x28, which the model takes")));
  EXPECT_THAT(
      errors("?sise=28x28"),
      StartsWith("onward train: --data 'images:" + Path("p") +
                 "?sise=28x28': unknown option of images data 'sise': did you mean 'size'"));
}

TEST_F(PicturePath, ResumeIsByteIdenticalWithAugmentationAndThreads) {
  const std::string train =
      Train("augment=flip,crop:3,rotate:10,colour:0.2,erase,resize:0.9-1.1&balance=1");
  for (const std::string threads : {" --threads 1", " --threads 3"}) {
    const std::string common = train + "--head 2 --batch 16 --seed 5 --overwrite" + threads;
    ASSERT_EQ(Onward(common + " --steps 12 -o " + Path("whole.onnx")).exit_code, 0);
    ASSERT_EQ(Onward(common + " --steps 7 -o " + Path("parts.onnx")).exit_code, 0);
    EXPECT_NE(FileBytes(Path("whole.onnx")), FileBytes(Path("parts.onnx")));
    const CommandResult resumed =
        Onward(train + "--resume --steps 12 -o " + Path("parts.onnx") + threads);
    ASSERT_EQ(resumed.exit_code, 0) << resumed.errors;
    EXPECT_EQ(FileBytes(Path("whole.onnx")), FileBytes(Path("parts.onnx"))) << threads;
  }
}

TEST_F(PicturePath, LearnsFromOnePartAndIsJudgedByTheRest) {
  const std::string spec =
      absl::StrCat("'images:", Path("p"), "?size=28x28&fit=crop&augment=flip,crop:2&split=0.75'");
  const CommandResult trained =
      Onward(absl::StrCat("train ", Path("cnn.onnx"), " --data ", spec, " --eval ", spec,
                          " --head 2 --epochs 6 --batch 12 --quiet --json -o ", Path("t.onnx")));
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  const CommandResult eval =
      Onward(absl::StrCat("eval ", Path("t.onnx"), " --data ", spec, " --at-least 0.95 --json"));
  EXPECT_EQ(eval.exit_code, 0) << eval.output << eval.errors;
  EXPECT_THAT(eval.output, HasSubstr("\"examples\":20"));
}

TEST_F(PicturePath, MixedExamplesAreLearntAndResumeByteIdentical) {
  const std::string train = Train("mixup=0.2&cutmix=1&split=0.8");
  const std::string common = train + "--head 2 --batch 16 --seed 5 ";
  const CommandResult whole = Onward(common + "--epochs 8 --json -o " + Path("whole.onnx"));
  ASSERT_EQ(whole.exit_code, 0) << whole.errors;
  // The rest is evaluated without being named, on labels that are not mixed.
  EXPECT_THAT(whole.output, HasSubstr("\"eval_accuracy\":1"));
  ASSERT_EQ(Onward(common + "--epochs 5 -o " + Path("parts.onnx")).exit_code, 0);
  ASSERT_EQ(Onward(train + "--resume --epochs 8 -o " + Path("parts.onnx")).exit_code, 0);
  EXPECT_EQ(FileBytes(Path("whole.onnx")), FileBytes(Path("parts.onnx")));
  const CommandResult hard = Onward(common + "--loss cross_entropy -o " + Path("hard.onnx"));
  EXPECT_EQ(hard.exit_code, 2);
  EXPECT_THAT(hard.errors, HasSubstr("--loss cross_entropy:soft_labels=1"));
}

TEST_F(PicturePath, ABrokenPictureStopsBeforeTheRunOrIsLeftOut) {
  const std::string bad = scratch_.Write("p/top/99.png", "not a picture");
  const CommandResult refused = Onward(Train("limit=100") + "-o " + Path("t.onnx"));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.errors, AllOf(HasSubstr(bad), HasSubstr("?broken=skip")));
  EXPECT_FALSE(std::filesystem::exists(Path("t.onnx")));
  const CommandResult skipped = Onward(
      absl::StrCat("train ", Path("cnn.onnx"), " --data 'images:", Path("p"),
                   "?size=28x28&broken=skip&split=0.5' --head 2 --steps 1 -o ", Path("t.onnx")));
  EXPECT_EQ(skipped.exit_code, 0);
  EXPECT_THAT(skipped.errors, AllOf(HasSubstr("note: left out 1 of 81 pictures"), HasSubstr(bad)));
  // Once, although what is evaluated is of the same folder.
  EXPECT_EQ(std::vector<std::string>(absl::StrSplit(skipped.errors, "note: left out")).size(), 2u);
}

TEST_F(PicturePath, TheResultReplacesNoArchiveThatIsRead) {
  const std::string shard = scratch_.Write("s-0.tar", "x");
  const CommandResult refused = Onward(absl::StrCat(
      "train ", Path("cnn.onnx"), " --data 'tar:", Path("s-*.tar"), "' --overwrite -o ", shard));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.errors, HasSubstr("would replace what --data reads"));
}

TEST_F(PicturePath, HelpKeepsTheListsOfSpecs) {
  const CommandResult help = Onward("eval --help");
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.output,
              AllOf(HasSubstr("\n      images:DIR "), HasSubstr("\n      tar:SHARDS "),
                    HasSubstr("\n      augment=flip,crop:4"), HasSubstr("\n        rotate:D ")));
  for (absl::string_view line : absl::StrSplit(help.output, '\n')) {
    EXPECT_LE(line.size(), 100u) << line;
  }
}

}  // namespace onward::pictures_test
