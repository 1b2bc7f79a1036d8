// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/class_labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "data/pictures/picture.h"
#include "tests/support/scratch.h"
#include "tests/support/text_model.h"
#include "trainer/report/log/jsonl.h"
#include "training_info/export.h"

namespace onward::class_labels_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ClassLabelsTest : public ::testing::Test {
 protected:
  // One example per label.
  std::shared_ptr<const Dataset> Csv(const std::vector<std::string>& labels) {
    std::string text = "x,label\n";
    for (const std::string& label : labels) text += "1," + label + "\n";
    const std::string path = scratch_.Write("d" + std::to_string(files_++) + ".csv", text);
    auto data = ParseDataSpec("csv:" + path + "?label=label&task=classes", Split::kTrain);
    EXPECT_TRUE(data.ok()) << data.status();
    return std::move(data).value();
  }
  static std::vector<int64_t> Labels(const Dataset& data) {
    std::vector<int64_t> all(data.size());
    for (int64_t i = 0; i < data.size(); ++i) all[i] = i;
    std::vector<Tensor> batch;
    EXPECT_TRUE(data.Fill(all, &batch).ok());
    const Tensor all_labels = data.class_labels();
    const auto labels = batch.back().values<int64_t>(), whole = all_labels.values<int64_t>();
    EXPECT_TRUE(std::equal(labels.begin(), labels.end(), whole.begin(), whole.end()));
    return {labels.begin(), labels.end()};
  }
  Scratch scratch_;
  int files_ = 0;
};

TEST_F(ClassLabelsTest, NamesAreFoundWhereverTheyStand) {
  const auto aligned = AlignClasses(Csv({"dog", "bee", "dog"}),
                                    {.names = {"ant", "bee", "cat", "dog"}, .outputs = 4});
  ASSERT_TRUE(aligned.ok()) << aligned.status();
  EXPECT_THAT(Labels(*aligned->data), ElementsAre(3, 1, 3));
  EXPECT_EQ(aligned->data->classes(), 4);
  EXPECT_THAT(aligned->data->class_names(), ElementsAre("ant", "bee", "cat", "dog"));
}

TEST_F(ClassLabelsTest, NumbersByValue) {
  const ModelClasses fresh{.output = "y", .outputs = 2, .takes_names = true};
  const auto aligned = AlignClasses(Csv({"7", "3", "7", "7", "3", "7", "7", "7"}), fresh);
  ASSERT_TRUE(aligned.ok()) << aligned.status();
  EXPECT_THAT(aligned->names, ElementsAre("3", "7"));
  EXPECT_THAT(Labels(*aligned->data), ElementsAre(1, 0, 1, 1, 0, 1, 1, 1));
  const auto few = AlignClasses(Csv({"7", "7"}), {.names = aligned->names, .outputs = 2});
  ASSERT_TRUE(few.ok()) << few.status();
  EXPECT_THAT(Labels(*few->data), ElementsAre(1, 1));
  const auto other = AlignClasses(Csv({"7", "0"}), {.names = aligned->names, .outputs = 2});
  EXPECT_THAT(std::string(other.status().message()),
              AllOf(HasSubstr("'0'"), HasSubstr("'3', '7'"), HasSubstr("row 2 (line 3)")));
}

TEST_F(ClassLabelsTest, NumbersBelowTheOutputsStay) {
  for (const bool training : {true, false}) {
    const auto aligned =
        AlignClasses(Csv({"3", "7"}), {.output = "y", .outputs = 10, .takes_names = training});
    ASSERT_TRUE(aligned.ok()) << aligned.status();
    EXPECT_THAT(Labels(*aligned->data), ElementsAre(3, 7));
    EXPECT_TRUE(aligned->names.empty());
  }
  const auto beyond = AlignClasses(Csv({"3", "10"}), {.output = "y", .outputs = 10});
  EXPECT_THAT(std::string(beyond.status().message()),
              AllOf(HasSubstr("'10'"), HasSubstr("0 to 9"), HasSubstr("row 2")));
  // Numbers of a model with words for its classes are the words' numbers, with a note.
  const auto words = AlignClasses(Csv({"1", "0"}), {.names = {"no", "yes"}, .outputs = 2});
  ASSERT_TRUE(words.ok()) << words.status();
  EXPECT_THAT(Labels(*words->data), ElementsAre(1, 0));
  EXPECT_THAT(words->note, HasSubstr("are numbers"));
}

TEST_F(ClassLabelsTest, LabelsThatStandForNoClassStay) {
  const auto aligned = AlignClasses(
      Csv({"255", "0", "1"}), {.output = "y", .outputs = 2, .ignored = 255, .takes_names = true});
  ASSERT_TRUE(aligned.ok()) << aligned.status();
  EXPECT_THAT(Labels(*aligned->data), ElementsAre(255, 0, 1));
}

TEST_F(ClassLabelsTest, ThePictureIsNamed) {
  Picture grey;
  grey.info = {2, 2, 1};
  grey.pixels.assign(4, 7);
  for (const char* name : {"p/cat/1.png", "p/cow/2.png", "p/emu/3.png"})
    scratch_.Write(name, EncodePng(grey).value());
  auto data = ParseDataSpec("images:" + scratch_.Path("p"), Split::kTrain);
  ASSERT_TRUE(data.ok()) << data.status();
  const auto aligned =
      AlignClasses(std::move(data).value(), {.names = {"bee", "emu", "cat"}, .outputs = 3});
  EXPECT_THAT(std::string(aligned.status().message()),
              AllOf(HasSubstr("'cow'"), HasSubstr(scratch_.Path("p/cow/2.png"))));
}

TEST_F(ClassLabelsTest, NamesOfAnyBytesComeBack) {
  const std::vector<std::string> names = {
      "caf\xc3\xa9", "caf\xe9", "caf\xe8", "a\"b\\c\n\x01", "", "\xf0\x9f\x90\x9d", "\xff\xfe\x80"};
  const auto parsed = ParseJsonStringList(JsonStringList(names));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(*parsed, names);
  EXPECT_THAT(*ParseJsonStringList(R"( [ "\u00e9\ud83d\udc1d" , "\/" ] )"),
              ElementsAre("\xc3\xa9\xf0\x9f\x90\x9d", "/"));
  EXPECT_THAT(*ParseJsonStringList("[]"), ElementsAre());
  for (const char* wrong : {"", "[", "[\"a\"", "[\"a\",]", "\"a\"", "[1]", "[\"a\"] x", "[\"\\x\"]",
                            "[\"\\u12\"]", "[\"\\ud800\"]", "[\"\\ud800\\u0041\"]", "{\"a\":1}"}) {
    EXPECT_FALSE(ParseJsonStringList(wrong).ok()) << wrong;
  }
  Model model = TextModel("g (float[1] x) => (float[1] y) { y = Neg(x) }");
  StoreClasses(names, &model);
  EXPECT_EQ(StoredClasses(model).value(), names);
  EXPECT_EQ(StoredClasses(InferenceOnly(model)).value(), names);
  StoreClasses({}, &model);
  EXPECT_TRUE(StoredClasses(model).value().empty());
}

}  // namespace onward::class_labels_test
