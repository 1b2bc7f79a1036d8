// SPDX-License-Identifier: Apache-2.0
// Language models on a text file, and classes of texts, with the real program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/onnx_io/model.h"
#include "tests/cli/journey.h"
#include "tests/support/text_model.h"

namespace onward::text_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

class TextJourney : public Journey {};

// Sentences whose end follows from their beginning.
std::string Tale(int sentences, int first) {
  const std::vector<std::string> animals = {"cat", "dog", "owl"}, says = {"meow", "woof", "hoot"};
  std::string text;
  for (int i = 0; i < sentences; ++i) {
    const size_t which = static_cast<size_t>(i * i + i / 3 + first) % 3;
    absl::StrAppend(&text, "the ", animals[which], " says ", says[which], ".\n");
  }
  return text;
}

TEST_F(TextJourney, ALanguageModelOnATextFile) {
  scratch_.Write("train.txt", Tale(600, 0));
  scratch_.Write("test.txt", Tale(60, 1));
  const std::string data = "'text:" + Path("train.txt") + "?tokens=chars&length=24&stride=12'";
  const std::string test = "'text:" + Path("test.txt") + "?length=24'";
  const CommandResult r =
      Onward("train gpt:1x32 --data " + data + " --eval " + test +
             " --batch 16 --epochs 8 --optimizer adamw:lr=0.01 --json -o " + Path("lm.onnx"));
  ASSERT_EQ(r.exit_code, 0) << r.errors;
  // Which animal it is cannot be known, all else can: ln(3) / 20 characters at best, ln(20) before.
  EXPECT_LT(Field("eval " + Path("lm.onnx") + " --data " + test, "loss"), 0.4);
  EXPECT_GT(Field("eval " + Path("lm.onnx") + " --data " + test, "accuracy"), 0.85);
  // It goes on, and the plain model knows its characters.
  Must("train x --resume --epochs 9 --data " + data + " -o " + Path("lm.onnx"));
  Must("export " + Path("lm.onnx") + " -o " + Path("plain.onnx"));
  EXPECT_GT(Field("eval " + Path("plain.onnx") + " --data " + test, "accuracy"), 0.85);
  scratch_.Write("other.txt", "the CAT says hello to everybody there is.\n");
  const CommandResult other =
      Onward("eval " + Path("lm.onnx") + " --data 'text:" + Path("other.txt") + "?length=24'");
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.errors, AllOf(HasSubstr("other.txt: at byte 4"), HasSubstr("'C' is unknown")));
  const CommandResult predicted =
      Onward("predict " + Path("lm.onnx") + " --data " + test + " -o " + Path("p.csv"));
  EXPECT_EQ(predicted.exit_code, 2);
  EXPECT_THAT(predicted.errors,
              AllOf(HasSubstr("scores for many places of each example"), HasSubstr("`onward eval`"),
                    HasSubstr("`onward run --input NAME=FILE.npy")));
  // Lines of different length: padded, and what fills up is passed over.
  const std::string lines = "'text:" + Path("test.txt") + "?lines=1&length=24'";
  EXPECT_GT(Field("eval " + Path("lm.onnx") +
                      " --loss cross_entropy:axis=-1,ignore_index=-100 --data " + lines,
                  "accuracy"),
            0.8);
}

TEST_F(TextJourney, LinesOfDifferentLength) {
  std::string text;
  for (int i = 0; i < 90; ++i)
    absl::StrAppend(&text, std::string(static_cast<size_t>(1 + i % 15), 'a'), "b\n");
  const std::string data = "'text:" + scratch_.Write("l.txt", text) + "?lines=1&length=16'";
  const CommandResult r = Onward("train gpt:1x32 --data " + data +
                                 " --batch 10 --epochs 3 --lr 0.01 -o " + Path("t.onnx"));
  ASSERT_EQ(r.exit_code, 0) << r.errors;
  EXPECT_LT(Field("eval " + Path("t.onnx") + " --data " + data, "loss"), 1.0);
  // As many positions as there are tokens: which axis is which follows from the open size.
  Must("train gpt:1x32 --steps 1 --batch 1 --data 'text:" + Path("l.txt") + "?length=256' -o " +
       Path("w.onnx"));
  EXPECT_THAT(ReadModel(Path("w.onnx")).value().Metadata("onward.loss"), HasSubstr("axis=-1"));
  EXPECT_EQ(Onward("train gpt:1x33 --data " + data + " -o " + Path("u.onnx")).exit_code, 2);
  scratch_.Write("d.csv", "a,y\n1,0\n");
  EXPECT_THAT(
      Onward("train gpt --data 'csv:" + Path("d.csv") + "?label=y' -o " + Path("u.onnx")).errors,
      HasSubstr("a gpt is made for a text"));
}

// The mean of embeddings tells what a review says.
TEST_F(TextJourney, ClassesOfTexts) {
  scratch_.Write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\nfilm\na\ngood\nbad\nlong\n##ish\n");
  std::string text = "review,verdict\n";
  for (int i = 0; i < 64; ++i) {
    absl::StrAppend(&text, i % 3 == 0 ? "A longish film" : "Film", i % 2 == 0 ? " good!" : " bad",
                    ",", i % 2 == 0 ? "watch" : "skip", "\n");
  }
  scratch_.Write("r.csv", text);
  ASSERT_TRUE(
      WriteModel(
          TextModel("g (int64[N, L] input_ids, int64[N, L] attention_mask) => (float[N, 2] y) "
                    "<float[10, 2] e = {0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0}> {"
                    "  t = Gather(e, input_ids)  m = Cast <to = 1> (attention_mask)"
                    "  two = Constant <value = int64[1] {2}> ()  w = Unsqueeze(m, two)"
                    "  p = Mul(t, w)  one = Constant <value = int64[1] {1}> ()"
                    "  y = ReduceSum <keepdims = 0> (p, one) }"),
          Path("m.onnx"))
          .ok());
  const std::string data = "'csv:" + Path("r.csv") +
                           "?label=verdict&column=review&vocab=" + Path("vocab.txt") +
                           "&tokens=wordpiece&length=12'";
  Must("train " + Path("m.onnx") + " --data " + data +
       " --batch 16 --epochs 20 --optimizer adamw:lr=0.1 -o " + Path("t.onnx"));
  EXPECT_EQ(Field("eval " + Path("t.onnx") + " --data " + data, "accuracy"), 1);
  EXPECT_THAT(Onward("export " + Path("t.onnx") + " --raw columns -o " + Path("raw.onnx")).errors,
              HasSubstr("was trained on text"));
  // Raw text in, names out; the vocabulary is in the file.
  scratch_.Write("n.jsonl", "{\"review\": \"a GOOD long film\"}\n{\"review\": \"bad\"}\n");
  Must("predict " + Path("t.onnx") + " --data jsonl:" + Path("n.jsonl") + " -o " + Path("p.csv"));
  EXPECT_THAT(scratch_.Read("p.csv"), AllOf(HasSubstr("\n1,watch,"), HasSubstr("\n2,skip,")));
}

}  // namespace onward::text_test
