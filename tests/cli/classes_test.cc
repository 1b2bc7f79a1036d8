// SPDX-License-Identifier: Apache-2.0
// Classes keep their names: whatever data set meets a model, its labels mean the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_join.h"
#include "core/onnx_io/model.h"
#include "core/onnx_io/proto.h"
#include "data/arrays/npy.h"
#include "tests/support/classified.h"
#include "tests/support/command.h"
#include "tests/support/paths.h"
#include "tests/support/scratch.h"
#include "tests/support/text_model.h"

namespace onward::classes_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::vector<std::string> kAnimals = {"ant", "bee", "cat", "dog"};
constexpr int kRows = 160;

class ClassesTest : public ::testing::Test {
 protected:
  CommandResult Onward(const std::string& arguments) {
    return RunOnward(BuiltProgram(), arguments);
  }
  std::string Csv(const std::string& name, const std::vector<std::string>& names,
                  const std::vector<std::string>& left_out = {}) {
    return "'csv:" + scratch_.Write(name, ClassifiedCsv(names, kRows, left_out)) + "?label=label'";
  }
  std::string Linear(int classes) {
    const std::string path = scratch_.Path("linear.onnx");
    EXPECT_TRUE(WriteModel(TextModel(LinearClassifier(classes, classes)), path).ok());
    return path;
  }
  CommandResult Train(const std::string& model, const std::string& data, const std::string& out,
                      const std::string& more = "") {
    return Onward("train " + model + " --data " + data +
                  " --epochs 20 --batch 20 --optimizer adamw:lr=0.1 -o " + scratch_.Path(out) +
                  " " + more);
  }
  // All right, by a model that learned it all.
  void ExpectRight(const std::string& model, const std::string& data) {
    const CommandResult r =
        Onward("eval " + scratch_.Path(model) + " --data " + data + " --at-least 0.99");
    EXPECT_EQ(r.exit_code, 0) << model << " on " << data << ": " << r.output << r.errors;
  }
  Scratch scratch_;
};

// The fault that was: without "ant" the others are numbered one less.
TEST_F(ClassesTest, AnEvaluationFileMayLackAClass) {
  const std::string all = Csv("all.csv", kAnimals), few = Csv("few.csv", kAnimals, {"ant"});
  const CommandResult trained = Train(Linear(4), all, "t.onnx", "--eval " + few + " --json");
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  EXPECT_THAT(trained.output, HasSubstr("\"eval_accuracy\":1,"));
  ExpectRight("t.onnx", all);
  ExpectRight("t.onnx", few);
  ASSERT_EQ(
      Onward("export " + scratch_.Path("t.onnx") + " -o " + scratch_.Path("p.onnx")).exit_code, 0);
  ExpectRight("p.onnx", few);
  for (const char* model : {"t.onnx", "p.onnx"}) {
    EXPECT_EQ(ReadModel(scratch_.Path(model)).value().Metadata("onward.classes"),
              R"(["ant","bee","cat","dog"])");
    EXPECT_THAT(Onward("inspect " + scratch_.Path(model)).output,
                HasSubstr("classes: ant, bee, cat, dog"));
  }
}

TEST_F(ClassesTest, TrainingGoesOnByName) {
  const std::string all = Csv("all.csv", kAnimals), few = Csv("few.csv", kAnimals, {"ant"});
  ASSERT_EQ(Train(Linear(4), all, "t.onnx").exit_code, 0);
  // Resumed, and trained anew from there, on data without the first class.
  ASSERT_EQ(Onward("train m --data " + few + " --resume --epochs 30 -o " + scratch_.Path("t.onnx"))
                .exit_code,
            0);
  ExpectRight("t.onnx", all);
  ASSERT_EQ(Train(scratch_.Path("t.onnx"), few, "u.onnx").exit_code, 0);
  ExpectRight("u.onnx", few);
}

TEST_F(ClassesTest, UnknownNamesAreRefused) {
  ASSERT_EQ(Train(Linear(4), Csv("all.csv", kAnimals), "t.onnx").exit_code, 0);
  const std::string other = Csv("other.csv", {"ant", "bee", "cow", "dog"});
  const std::string model = scratch_.Path("t.onnx");
  for (const std::string& line :
       {"eval " + model + " --data " + other,
        "train " + model + " --data " + other + " -o " + scratch_.Path("u.onnx"),
        "train " + model + " --resume --epochs 30 --data " + other + " -o " + model,
        "train " + model + " --data " + Csv("all.csv", kAnimals) + " --eval " + other + " -o " +
            scratch_.Path("u.onnx")}) {
    const CommandResult r = Onward(line);
    EXPECT_EQ(r.exit_code, 2) << line;
    EXPECT_THAT(r.errors, AllOf(HasSubstr("'cow'"), HasSubstr("'ant', 'bee', 'cat', 'dog'"),
                                HasSubstr("row 3 (line 4) of " + scratch_.Path("other.csv"))))
        << line;
  }
  // A new head is one for other classes.
  const CommandResult head = Train(model, other, "v.onnx", "--head 4");
  EXPECT_EQ(head.exit_code, 2);  // the file carries its training
  ASSERT_EQ(Onward("export " + model + " -o " + scratch_.Path("p.onnx")).exit_code, 0);
  ASSERT_EQ(Train(scratch_.Path("p.onnx"), other, "v.onnx", "--head 4").exit_code, 0);
  ExpectRight("v.onnx", other);
}

TEST_F(ClassesTest, NumbersAreTakenByValue) {
  const std::vector<std::string> ten = {"1", "2", "3", "4", "5", "6", "7", "8", "9", "10"};
  const std::string all = Csv("all.csv", ten), few = Csv("few.csv", ten, {"1", "2", "10"});
  const CommandResult trained = Train(Linear(10), all, "t.onnx");
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  ExpectRight("t.onnx", all);
  ExpectRight("t.onnx", few);
  // As many numbers as outputs from 0 on stay what they are.
  const std::string plain = Csv("plain.csv", {"0", "1", "2"});
  ASSERT_EQ(Train(Linear(3), plain, "plain.onnx").exit_code, 0);
  ExpectRight("plain.onnx", Csv("fewer.csv", {"0", "1", "2"}, {"0"}));
  EXPECT_EQ(ReadModel(scratch_.Path("plain.onnx")).value().Metadata("onward.classes"), "");
}

TEST_F(ClassesTest, CountsThatDisagreeAreRefused) {
  for (const std::vector<std::string>& names :
       {std::vector<std::string>{"a", "b"}, {"a", "b", "c", "d", "e"}, {"3", "7"}}) {
    const std::string n = std::to_string(names.size());
    Linear(4);
    const std::string model = scratch_.Path("wide.onnx");
    ASSERT_TRUE(
        WriteModel(TextModel(LinearClassifier(static_cast<int>(names.size()), 4)), model).ok());
    const CommandResult r = Train(model, Csv("n.csv", names), "t.onnx");
    EXPECT_EQ(r.exit_code, 2);
    EXPECT_THAT(r.errors, HasSubstr(": " + n + " classes (" + absl::StrJoin(names, ", ") +
                                    "), the model has 4: --head " + n));
  }
}

// Files of before have no names: all goes as it went, with a word about it.
TEST_F(ClassesTest, AModelWithoutNamesTakesTheDataAsItIs) {
  const std::string all = Csv("all.csv", kAnimals);
  ASSERT_EQ(Train(Linear(4), all, "t.onnx").exit_code, 0);
  Model old = ReadModel(scratch_.Path("t.onnx")).value();
  old.SetMetadata("onward.classes", "");
  ASSERT_TRUE(WriteModel(old, scratch_.Path("old.onnx")).ok());
  const CommandResult eval = Onward("eval " + scratch_.Path("old.onnx") + " --data " + all);
  EXPECT_THAT(eval.output, HasSubstr("accuracy 100.00 %"));
  EXPECT_THAT(eval.errors, HasSubstr("note: the model does not say what its classes are"));
  const CommandResult more =
      Onward("train m --data " + all + " --resume --epochs 21 -o " + scratch_.Path("old.onnx"));
  EXPECT_EQ(more.exit_code, 0) << more.errors;
  EXPECT_THAT(more.errors, HasSubstr("note: the model does not say what its classes are"));
}

TEST_F(ClassesTest, TextLabelsOfNumPy) {
  const std::vector<std::string> words = {"bee", "ant", "bee", "ant", "bee", "ant"};
  Tensor x(DType::kFloat, {6, 2}), y(DType::kString, {6});
  for (int i = 0; i < 6; ++i) {
    x.data<float>()[2 * i] = words[i] == "ant" ? 1.f : -1.f;
    x.data<float>()[2 * i + 1] = 0;
    y.data<std::string>()[i] = words[i];
  }
  ASSERT_TRUE(WriteNpy(scratch_.Path("x.npy"), x).ok());
  ASSERT_TRUE(WriteNpy(scratch_.Path("y.npy"), y).ok());
  const std::string data = "npy:" + scratch_.Path("x.npy") + "," + scratch_.Path("y.npy");
  const CommandResult r =
      Onward("train " + Linear(2) + " --data " + data +
             " --epochs 40 --batch 6 --optimizer adamw:lr=0.1 -o " + scratch_.Path("t.onnx"));
  ASSERT_EQ(r.exit_code, 0) << r.errors;
  EXPECT_EQ(ReadModel(scratch_.Path("t.onnx")).value().Metadata("onward.classes"),
            R"(["ant","bee"])");
  ExpectRight("t.onnx", data);
}

TEST_F(ClassesTest, MetadataThatMakesNoSense) {
  ASSERT_EQ(Train(Linear(4), Csv("all.csv", kAnimals), "t.onnx").exit_code, 0);
  for (const char* text : {"cat", "[\"a\"]", "[\"a\",\"a\",\"b\",\"c\"]", "[1,2,3,4]"}) {
    Model model = ReadModel(scratch_.Path("t.onnx")).value();
    model.SetMetadata("onward.classes", text);
    ASSERT_TRUE(WriteModel(model, scratch_.Path("odd.onnx")).ok());
    const CommandResult r =
        Onward("eval " + scratch_.Path("odd.onnx") + " --data " + Csv("all.csv", kAnimals));
    EXPECT_EQ(r.exit_code, 2) << text;
    EXPECT_THAT(r.errors, AllOf(HasSubstr("odd.onnx"), HasSubstr("onward.classes"))) << text;
  }
}

}  // namespace onward::classes_test
