// SPDX-License-Identifier: Apache-2.0
// A run in a file, and the rate to begin with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "core/onnx_io/model.h"
#include "tests/support/classified.h"
#include "tests/support/command.h"
#include "tests/support/paths.h"
#include "tests/support/scratch.h"
#include "tests/support/text_model.h"
#include "trainer/run/find_rate.h"

namespace onward::run_file_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

namespace fs = std::filesystem;

class RunFile : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(WriteModel(TextModel(LinearClassifier(2, 2)), Path("m.onnx")).ok());
    scratch_.Write("d.csv", ClassifiedCsv({"a", "b"}, 50));
  }
  std::string Path(const std::string& name) const { return scratch_.Path(name); }
  CommandResult Onward(const std::string& arguments) const {
    return RunOnward(BuiltProgram(), arguments);
  }
  // What all files here begin with.
  std::string Head(const std::string& out) const {
    return "model = \"" + Path("m.onnx") + "\"\noutput = \"" + Path(out) + "\"\n";
  }
  std::string DataKey() const { return "data = \"csv:" + Path("d.csv") + "?label=label\"\n"; }
  std::string Meta(const std::string& name, const std::string& key) const {
    const auto model = ReadModel(Path(name));
    return model.ok() ? model->Metadata(key) : "no file";
  }
  Scratch scratch_;
};

TEST_F(RunFile, IsTheSameAsItsFlags) {
  const std::string file = scratch_.Write("run.toml", Head("file.onnx") + R"(
batch = 16          # examples
steps = 7
quiet = true
no-shuffle = false
clip-norm = 1.5
loss = ["cross_entropy@y", "0.5*cross_entropy:label_smoothing=0.1@y"]

[optimizer]
name = "adam"
lr = 1e-2
betas = [0.9, 0.99]

[schedule]
name = "multistep"
at = [2, 4]

[data]
spec = "csv:)" + Path("d.csv") + R"("
label = "label"
)");
  const CommandResult r = Onward("train " + file);
  ASSERT_EQ(r.exit_code, 0) << r.errors;
  ASSERT_EQ(Onward("train " + Path("m.onnx") + " --data 'csv:" + Path("d.csv") +
                   "?label=label' --batch 16 --steps 7 --quiet --clip-norm 1.5 --loss "
                   "cross_entropy@y --loss '0.5*cross_entropy:label_smoothing=0.1@y' --optimizer "
                   "adam:lr=1e-2,betas=0.9/0.99 --schedule multistep:at=2/4 -o " +
                   Path("flags.onnx"))
                .exit_code,
            0);
  EXPECT_EQ(scratch_.Read("file.onnx"), scratch_.Read("flags.onnx"));
  // Again with --resume, and with what the line says instead.
  EXPECT_EQ(Onward("train " + file).exit_code, 2);
  EXPECT_EQ(Onward("train " + file + " --resume").exit_code, 0);
  ASSERT_EQ(Onward("train " + file + " --resume --epochs 3").exit_code, 0);
  EXPECT_EQ(Meta("file.onnx", "onward.steps"), "12");
}

TEST_F(RunFile, MistakesAreNamedWithTheirLine) {
  for (const auto& [text, message] : std::vector<std::pair<std::string, std::string>>{
           {DataKey() + "bach = 3\n", "line 4: unknown key 'bach': did you mean 'batch'?"},
           {DataKey() + "modle = 'x'\n", "line 4: unknown key 'modle': did you mean 'model'?"},
           {DataKey() + "batch = \"many\"\n", "line 4: --batch has to be an integer >= 1"},
           {DataKey() + "quiet = 1\n", "line 4: quiet is true or false"},
           {DataKey() + "epochs = [1, 2]\n", "line 4: epochs is given twice"},
           {DataKey() + "steps = 1\nepochs = 2\n", "both say when the run ends"},
           {DataKey() + "[optimizer]\nlr = 1\n", "line 5: table [optimizer] needs name"},
           {DataKey() + "[loop]\nlr = 1\n", "line 5: there is no table [loop]"},
           {DataKey() + "[data]\nspec = \"x\"\n", "line 5: 'data' is given twice"},
           {DataKey() + "batch = = 1\n", "line 4"},
           {"", "missing --data"}}) {
    const std::string file = scratch_.Write("bad.toml", Head("none.onnx") + text);
    const CommandResult r = Onward("train " + file);
    EXPECT_EQ(r.exit_code, 2) << text;
    EXPECT_THAT(r.errors, HasSubstr(message)) << text;
  }
  EXPECT_THAT(Onward("train " + Path("gone.toml")).errors, HasSubstr("gone.toml"));
  EXPECT_THAT(Onward("train " + scratch_.Write("no.toml", DataKey()) + " -o x").errors,
              HasSubstr("model = \"FILE\""));
}

TEST_F(RunFile, IsWrittenByTheFlags) {
  const std::string line = "train " + Path("m.onnx") + " --data 'csv:" + Path("d.csv") +
                           "?label=label' --batch 8 --lr 0.02 --no-decay norm --no-decay w "
                           "--steps 3 --threads 1 -o " +
                           Path("o.onnx") + " --overwrite --save-config " + Path("run.toml");
  const CommandResult r = Onward(line);
  const std::string text = scratch_.Read("run.toml");
  EXPECT_THAT(text, AllOf(HasSubstr("batch = 8\n"), HasSubstr("lr = 0.02\n"),
                          HasSubstr("no-decay = [\"norm\", \"w\"]\n"), HasSubstr("threads = 1\n"),
                          Not(HasSubstr("overwrite")), Not(HasSubstr("save-config"))));
  ASSERT_EQ(r.exit_code, 0) << r.errors;
  const std::string before = scratch_.Read("o.onnx");
  ASSERT_EQ(Onward("train " + Path("run.toml") + " --overwrite").exit_code, 0);
  EXPECT_EQ(scratch_.Read("o.onnx"), before);
}

TEST_F(RunFile, ARateIsSuggested) {
  const std::string line =
      "train " + Path("m.onnx") + " --data 'csv:" + Path("d.csv") + "?label=label' --batch 16 ";
  const CommandResult text =
      Onward(line + "--find-lr --quiet --log " + Path("curve") + " --report " + Path("curve.html"));
  ASSERT_EQ(text.exit_code, 0) << text.errors;
  EXPECT_THAT(text.output, HasSubstr("suggested: --lr "));
  EXPECT_THAT(scratch_.Read("curve.html"), AllOf(HasSubstr("<svg"), HasSubstr("Suggested rate")));
  const CommandResult json = Onward(line + "--find-lr --quiet --json");
  const double rate = std::atof(json.output.c_str() + json.output.find(":") + 1);
  EXPECT_GT(rate, 1e-5);
  EXPECT_LT(rate, 10);
  // The curve begins with a tiny rate, and is the same each time.
  EXPECT_THAT(scratch_.Read("curve"),
              AllOf(HasSubstr("{\"learning_rate\":1e-07,\"loss\":"), HasSubstr("smoothed_loss")));
  EXPECT_EQ(json.output, Onward(line + "--find-lr --quiet --json").output);
  EXPECT_EQ(Onward(line + "--find-lr --dry-run").exit_code, 2);
  const CommandResult events = Onward(line + "--find-lr --tensorboard " + Path("events"));
  EXPECT_EQ(events.exit_code, 2);
  EXPECT_THAT(events.errors, HasSubstr("--find-lr writes no event files"));
}

TEST(SuggestRate, LiesInTheDescent) {
  std::vector<RateTrial> curve;
  for (int i = 0; i < 90; ++i) {
    const double x = i / 30.0;  // flat, falling, rising
    const double loss = x < 1 ? 2 + 0.001 * (i % 2) : x < 2 ? 3 - x : 1 + 5 * (x - 2);
    curve.push_back({static_cast<double>(i), loss, loss});
  }
  EXPECT_GT(SuggestRate(curve), 30);
  EXPECT_LT(SuggestRate(curve), 60);
  EXPECT_EQ(SuggestRate({{0.5, 1, 1}}), 0.5);
}

}  // namespace onward::run_file_test
