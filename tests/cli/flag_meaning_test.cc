// SPDX-License-Identifier: Apache-2.0
// Flags that a trainable file was made with are known again however they are written.
#include "cli/flag_meaning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/author_flags.h"
#include "core/onnx_io/model.h"
#include "tests/cli/journey.h"
#include "tests/support/classified.h"
#include "tests/support/text_model.h"

namespace onward::flag_meaning_test {

using testing::HasSubstr;

struct Pair {
  const char *flag, *one, *other;
  bool same;
};

std::string MeaningOf(const std::string& name, const std::string& value) {
  for (const Flag& flag : AuthorFlags()) {
    if (flag.name == name) return FlagMeaning(flag, value);
  }
  ADD_FAILURE() << "no flag --" << name;
  return "";
}

TEST(FlagMeaning, IsTheSameForAllWaysToWriteIt) {
  for (const Pair& p : std::vector<Pair>{
           {"optimizer", "adamw:lr=0.001", "adamw:lr=1e-3", true},
           {"optimizer", "adamw:lr=0.001", "adamw", true},
           {"optimizer", "adamw:lr=0.1,weight_decay=0", "adamw:weight_decay=0.0,lr=1e-1", true},
           {"optimizer", "adam:betas=0.8/0.99", "adam:beta2=0.99,beta1=.8", true},
           {"optimizer", "sgd:lr=0.1,nesterov=true,momentum=0.9",
            "sgd:momentum=0.90,nesterov=1,lr=0.1", true},
           {"optimizer", "mine.onnx:lr=0.25,decay=0.5", "mine.onnx:decay=5e-1,lr=.25", true},
           {"optimizer", "adamw:lr=0.001", "adamw:lr=0.002", false},
           {"optimizer", "adamw", "adam", false},
           {"optimizer", "mine.onnx", "yours.onnx", false},
           {"loss", "cross_entropy:label_smoothing=0.1,ignore_index=-1",
            "cross_entropy:ignore_index=-1.0,label_smoothing=1e-1", true},
           {"loss", "cross_entropy:weight=1/2/0.5", "cross_entropy:weight=1.0/2/.5", true},
           {"loss", "0.50*mse@y", "5e-1*mse@y", true},
           {"loss", "1*mse", "mse", true},
           {"loss", "mse", "2*mse", false},
           {"loss", "mse@y", "mse@z", false},
           {"group", "head.*:lr=10x,weight_decay=0", "head.*:weight_decay=0.0,lr=1e1x", true},
           {"group", "head.*:lr=10x", "head.*:lr=10", false},
           {"group", "a:lr=1", "b:lr=1", false},
           {"lora", "a*:rank=8,alpha=16", "a*:alpha=16.0,rank=8", true},
           {"lora", "a*", "a*:rank=8", true},
           {"lora", "a*:rank=4", "a*:rank=8", false},
           {"init", "kaiming_normal:mode=fan_in", "kaiming_normal", true},
           {"init", "kaiming_normal:mode=fan_out", "kaiming_normal", false},
           {"clip-norm", "1", "1.0", true},
           {"clip-norm", "1", "1.5", false},
           {"ema", "0.999", "9.99e-1", true},
           {"freeze", "1.0", "1", false},
           {"precision", "float16", "bfloat16", false}}) {
    const std::string one = MeaningOf(p.flag, p.one), other = MeaningOf(p.flag, p.other);
    EXPECT_EQ(one == other, p.same) << p.flag << ": " << one << " and " << other;
  }
}

class FlagsOfTrainable : public Journey {
 protected:
  void SetUp() override {
    ASSERT_TRUE(WriteModel(TextModel(LinearClassifier(2, 2)), Path("m.onnx")).ok());
    scratch_.Write("d.csv", ClassifiedCsv({"cat", "dog"}, 40));
  }
  CommandResult Train(const std::string& flags) {
    return Onward("train " + Path("t.onnx") + " --data 'csv:" + Path("d.csv") +
                  "?label=label' --steps 1 --dry-run " + flags);
  }
};

TEST_F(FlagsOfTrainable, AreAcceptedInOtherWords) {
  Must("make-trainable " + Path("m.onnx") + " -o " + Path("t.onnx") +
       " --loss cross_entropy:label_smoothing=0.1 --optimizer adamw:lr=0.001,weight_decay=0.1 "
       "--group 'w:lr=10x,weight_decay=0' --clip-norm 1 --ema 0.9");
  for (const char* same :
       {"--optimizer adamw:weight_decay=1e-1,lr=1e-3", "--optimizer adamw:weight_decay=0.1",
        "--loss cross_entropy:label_smoothing=1e-1", "--loss 1*cross_entropy:label_smoothing=0.1",
        "--loss cross_entropy:label_smoothing=0.1@y", "--group w:weight_decay=0.0,lr=10.0x",
        "--clip-norm 1.0 --ema 9e-1", "--gradient op --label label --init default"}) {
    const CommandResult r = Train(same);
    EXPECT_EQ(r.exit_code, 0) << same << "\n" << r.errors;
  }
  for (const char* other :
       {"--optimizer adamw:lr=1e-4,weight_decay=0.1", "--loss cross_entropy", "--loss 2*mse",
        "--loss cross_entropy:label_smoothing=0.1 --loss mse", "--group w:lr=5x", "--clip-norm 2",
        "--gradient expanded", "--head 2"}) {
    const CommandResult r = Train(other);
    EXPECT_EQ(r.exit_code, 2) << other;
    EXPECT_THAT(r.errors, HasSubstr("is trainable already, made with --loss=cross_entropy:label_"));
  }
}

// The first group that means a weight counts, and losses go by their number.
TEST_F(FlagsOfTrainable, AreAllThatWereGivenInTheirOrder) {
  const std::string fast = " --group 'w:lr=10x'", bare = " --group '*:weight_decay=0'",
                    hard = " --loss cross_entropy",
                    smooth = " --loss 0.5*cross_entropy:label_smoothing=0.1", all = " --train '*'",
                    one = " --train w";
  Must("make-trainable " + Path("m.onnx") + " -o " + Path("t.onnx") + fast + bare + hard + smooth +
       all + one);
  for (const std::string& same : {fast + bare, hard + smooth, all + one, one + all}) {
    const CommandResult r = Train(same);
    EXPECT_EQ(r.exit_code, 0) << same << "\n" << r.errors;
  }
  for (const std::string& other : {bare + fast, fast, smooth + hard, smooth, one}) {
    const CommandResult r = Train(other);
    EXPECT_EQ(r.exit_code, 2) << other;
    EXPECT_THAT(r.errors, HasSubstr("is trainable already, made with --loss=cross_entropy, "));
  }
}

}  // namespace onward::flag_meaning_test
