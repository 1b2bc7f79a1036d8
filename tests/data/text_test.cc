// SPDX-License-Identifier: Apache-2.0
// Text as data: tokens, windows of a text file, lines and columns of different length.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "data/dataset.h"
#include "data/text/read_text.h"
#include "data/text/tokenizer.h"
#include "tests/data/spec_fixture.h"

namespace onward::text_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kVocabulary[] =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\ncat\n##s\nsat\n,\n!\nun\n##want\n##ed\ncafe\n\xe4\xb8\xad\n";

class TextTest : public SpecTest {
 protected:
  std::string Text(const std::string& text, const std::string& options,
                   const std::string& name = "a.txt") {
    return absl::StrCat("text:", scratch_.Write(name, text), "?", options);
  }
  std::vector<double> Values(const Tensor& t) { return *ToDoubles(t); }
};

TEST_F(TextTest, WindowsOfBytes) {
  const auto data = Open(Text("abcdefg", "length=3"));
  EXPECT_EQ(Describe(*data), "2 examples, x int64 [3], y int64 [3], 256 classes");
  const auto batch = Take(*data, {1, 0});
  EXPECT_THAT(Values(batch[0]), ElementsAre('d', 'e', 'f', 'a', 'b', 'c'));
  EXPECT_THAT(Values(batch[1]), ElementsAre('e', 'f', 'g', 'b', 'c', 'd'));
  EXPECT_EQ(Open(Text("abcdefg", "length=3&stride=1"))->size(), 4);
  EXPECT_EQ(Open(Text("abcdefg", "length=6"))->size(), 1);
  EXPECT_EQ(Open(Text("abcdefg", "length=2&offset=1&limit=1"))->size(), 1);
  EXPECT_THAT(ErrorOf(Text("abcdefg", "length=7")),
              AllOf(HasSubstr("holds 7 tokens"), HasSubstr("the 8 that length=7 needs")));
  EXPECT_THAT(ErrorOf(Text("", "length=7")), HasSubstr("is empty"));
  EXPECT_THAT(ErrorOf(Text("abcdefg", "length=3&scale=2")), HasSubstr("neither scale"));
  EXPECT_FALSE(data->Fill({2}, nullptr).ok());
}

TEST_F(TextTest, CharactersOfTheTrainingText) {
  const auto data =
      Open(Text("b\xc3\xa9"
                "a\nb",
                "tokens=chars&length=4"));
  EXPECT_EQ(data->classes(), 4);  // \n a b é
  EXPECT_THAT(Values(Take(*data, {0})[0]), ElementsAre(2, 3, 1, 0));
  EXPECT_THAT(Values(Take(*data, {0})[1]), ElementsAre(3, 1, 0, 2));
  // Another text is cut the same way, and what was not seen is refused.
  const Preparation known = *data->preparation();
  EXPECT_THAT(known.text->vocabulary, ElementsAre("\n", "a", "b", "\xc3\xa9"));
  const auto other = Open(Text("aaaab", "length=2"), {.preparation = &known});
  EXPECT_EQ(other->classes(), 4);
  EXPECT_THAT(Values(Take(*other, {1})[1]), ElementsAre(1, 2));
  EXPECT_THAT(ErrorOf(Text("aaac", "length=2"), {.preparation = &known}),
              AllOf(HasSubstr("at byte 3"), HasSubstr("'c' is unknown to the model")));
  EXPECT_THAT(ErrorOf(Text("aa\nac\n", "length=2&lines=1"), {.preparation = &known}),
              HasSubstr("'c' is unknown to the model"));
  EXPECT_THAT(ErrorOf(Text("aaaab", "length=2&tokens=bytes"), {.preparation = &known}),
              HasSubstr("trained on other tokens"));
  EXPECT_EQ(Open(Text("aaaab", "length=2&tokens=chars"), {.preparation = &known})->classes(), 4);
  EXPECT_THAT(ErrorOf(Text("a\xff"
                           "b",
                           "tokens=chars&length=1")),
              HasSubstr("0xff begins no character"));
}

// Windows begin anywhere, also within a word, and pieces of the file end anywhere.
TEST_F(TextTest, WindowsAreTheSameWhereverTheyBegin) {
  const std::string vocabulary = scratch_.Write("vocab.txt", kVocabulary);
  std::string text;
  while (text.size() < 3000000) text += "The cats, the UNWANTED \xe4\xb8\xad caf\xc3\xa9s sat!\n";
  const auto tokenizer = Tokenizer::Create({.tokens = TokenKind::kWordPieces,
                                            .vocabulary = ReadVocabulary(vocabulary).value(),
                                            .lower_case = true,
                                            .length = 1,
                                            .column = ""});
  const std::vector<int64_t> all = (*tokenizer)->All(text).value();
  const auto data = Open(Text(text, "length=5&tokens=wordpiece&vocab=" + vocabulary));
  ASSERT_EQ(data->size(), static_cast<int64_t>((all.size() - 1) / 5));
  for (int64_t i = 0; i < data->size(); i += 997) {
    const auto batch = Take(*data, {i});
    for (int64_t k = 0; k < 5; ++k) {
      ASSERT_EQ(batch[0].data<int64_t>()[k], all[i * 5 + k]);
      ASSERT_EQ(batch[1].data<int64_t>()[k], all[i * 5 + k + 1]);
    }
  }
}

TEST_F(TextTest, WordPiecesAsBertHasThem) {
  const std::vector<std::string> vocabulary =
      ReadVocabulary(scratch_.Write("vocab.txt", kVocabulary)).value();
  EXPECT_TRUE(IsLowerCase(vocabulary));
  const auto pieces = [&](const std::string& text) {
    TextPreparation p{.tokens = TokenKind::kWordPieces,
                      .vocabulary = vocabulary,
                      .lower_case = true,
                      .length = 9,
                      .column = ""};
    return Tokenizer::Create(p).value()->All(text).value();
  };
  EXPECT_THAT(pieces("The cats"), ElementsAre(4, 5, 6));
  EXPECT_THAT(pieces("unwanted"), ElementsAre(10, 11, 12));
  EXPECT_THAT(pieces("unwantedx the"), ElementsAre(1, 4));
  EXPECT_THAT(pieces(" CAF\xc3\x89 , cafe\xcc\x81!"), ElementsAre(13, 8, 13, 9));
  EXPECT_THAT(pieces("the\xe4\xb8\xad"
                     "cat"),
              ElementsAre(4, 14, 5));
  EXPECT_THAT(pieces("\xe2\x80\x9cthe\xe2\x80\x9d"), ElementsAre(1, 4, 1));
  EXPECT_THAT(pieces(std::string(101, 'x')), ElementsAre(1));
  EXPECT_THAT(pieces(" \t\n"), ElementsAre());
  EXPECT_THAT(pieces("\xff\xfe the"), ElementsAre(4));
  EXPECT_FALSE(Tokenizer::Create({.tokens = TokenKind::kWordPieces,
                                  .vocabulary = {"a"},
                                  .lower_case = false,
                                  .length = 1,
                                  .column = ""})
                   .ok());
}

TEST_F(TextTest, LinesArePaddedAndMasked) {
  const auto data = Open(Text("abc\n\nabcdefghijk\r\nab\n", "tokens=chars&lines=1&length=9"));
  EXPECT_EQ(data->size(), 3);
  EXPECT_TRUE(data->fields()[1].varies);
  EXPECT_FALSE(data->rows_are_independent());
  const auto batch = Take(*data, {0, 2});
  EXPECT_EQ(batch[0].shape(), (Shape{2, 8}));
  const int64_t a = batch[0].data<int64_t>()[0];
  EXPECT_THAT(Values(batch[0]), ElementsAre(a, a + 1, 0, 0, 0, 0, 0, 0, a, 0, 0, 0, 0, 0, 0, 0));
  const double no = static_cast<double>(kNoToken);
  EXPECT_THAT(Values(batch[1]),
              ElementsAre(a + 1, a + 2, no, no, no, no, no, no, a + 1, no, no, no, no, no, no, no));
  EXPECT_EQ(Take(*data, {1})[0].shape(), (Shape{1, 9}));
}

TEST_F(TextTest, AColumnOfText) {
  const std::string vocabulary = scratch_.Write("vocab.txt", kVocabulary);
  const std::string csv =
      scratch_.Write("r.csv", "review,stars\n\"the cats, the cat!\",good\nsat,bad\nunwanted,bad\n");
  const std::string spec =
      "csv:" + csv + "?label=stars&column=review&tokens=wordpiece&vocab=" + vocabulary;
  const auto data = Open(spec + "&length=10");
  EXPECT_THAT(data->class_names(), ElementsAre("bad", "good"));
  const std::vector<FieldInfo> fields = data->fields();
  ASSERT_EQ(fields.size(), 4u);
  EXPECT_EQ(fields[0].name, "input_ids");
  EXPECT_TRUE(fields[1].by_name);
  const auto batch = Take(*data, {0, 1});
  EXPECT_EQ(batch[0].shape(), (Shape{2, 10}));
  EXPECT_THAT(Values(batch[0]), ElementsAre(2, 4, 5, 6, 8, 4, 5, 9, 3, 0,  //
                                            2, 7, 3, 0, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(Values(batch[1]), ElementsAre(1, 1, 1, 1, 1, 1, 1, 1, 1, 0,  //
                                            1, 1, 1, 0, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(Values(batch[3]), ElementsAre(1, 0));
  EXPECT_EQ(Take(*data, {1, 2})[0].shape(), (Shape{2, 8}));
  // What somebody does to the labels is his own.
  Tensor labels = data->class_labels();
  labels.data<int64_t>()[0] = 7;
  EXPECT_THAT(Values(data->class_labels()), ElementsAre(1, 0, 0));
  EXPECT_THAT(Values(Take(*Open(spec + "&length=4"), {0})[0]), ElementsAre(2, 4, 5, 3));
  // The model knows what to do with another table.
  const Preparation known = *data->preparation();
  const std::string other = scratch_.Write("o.jsonl", "{\"id\":1,\"review\":\"the cat\"}\n");
  const auto unlabelled = Open("jsonl:" + other, {.preparation = &known, .labels_optional = true});
  EXPECT_EQ(unlabelled->fields().size(), 3u);
  EXPECT_THAT(Values(Take(*unlabelled, {0})[0]), ElementsAre(2, 4, 5, 3, 0, 0, 0, 0));
  EXPECT_THAT(ErrorOf("csv:" + csv + "?label=stars&column=text&vocab=" + vocabulary),
              HasSubstr("no column 'text'"));
  EXPECT_THAT(ErrorOf("csv:" + csv + "?label=stars&column=review&tokens=wordpiece"),
              HasSubstr("vocab=FILE go together"));
}

}  // namespace onward::text_test
