// SPDX-License-Identifier: Apache-2.0
// No file that a command names is written over another that it names.
#include "cli/paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "core/onnx_io/model.h"
#include "data/arrays/npy.h"
#include "tests/support/classified.h"
#include "tests/support/command.h"
#include "tests/support/paths.h"
#include "tests/support/scratch.h"
#include "tests/support/text_model.h"

namespace onward::paths_test {

using ::testing::AnyOf;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

class PathsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(WriteModel(TextModel(LinearClassifier(2, 2)), Path("m.onnx")).ok());
    scratch_.Write("d.csv", ClassifiedCsv({"a", "b"}, 64));
    ASSERT_EQ(Onward("make-trainable @m.onnx -o @t.onnx --loss cross_entropy").exit_code, 0);
    ASSERT_TRUE(WriteNpy(Path("x.npy"), Tensor::Zeros(DType::kFloat, {2, 2})).ok());
    ASSERT_TRUE(WriteNpy(Path("l.npy"), Tensor::Zeros(DType::kInt64, {2})).ok());
    fs::create_symlink("m.onnx", Path("soft.onnx"));
    fs::create_symlink(scratch_.folder(), Path("here"));
    fs::create_hard_link(Path("d.csv"), Path("hard.csv"));
  }
  std::string Path(const std::string& name) const { return scratch_.Path(name); }
  // '@' stands for the test's folder.
  CommandResult Onward(std::string arguments) {
    for (size_t at; (at = arguments.find('@')) != std::string::npos;)
      arguments.replace(at, 1, scratch_.folder() + "/");
    return RunOnward(BuiltProgram(), arguments);
  }
  std::map<std::string, std::string> Contents() const {
    std::map<std::string, std::string> files;
    for (const auto& e : fs::directory_iterator(scratch_.folder()))
      if (e.is_regular_file()) files[e.path().filename().string()] = FileBytes(e.path().string());
    return files;
  }
  Scratch scratch_;
};

TEST_F(PathsTest, NothingNamedIsReplaced) {
  const auto before = Contents();
  const std::string train = "train @m.onnx --data '@spec' --steps 1 --quiet ";
  const std::string data = "csv:" + Path("d.csv") + "?label=label";
  for (std::string line : {
           train + "-o @m.onnx --overwrite --log @m.onnx",
           train + "-o @d.csv --overwrite",
           train + "-o @hard.csv --overwrite",
           train + "-o @new.onnx --report @new.onnx",
           train + "-o @new.onnx --log @new.onnx",
           train + "-o @new.onnx --log @here/new.onnx",
           train + "-o @new.onnx --log @r --report @./r",
           train + "-o @new.onnx --report @m.onnx",
           train + "-o @new.onnx --report @soft.onnx",
           train + "-o @new.onnx --log @soft.onnx",
           train + "-o @new.onnx --log @d.csv",
           train + "-o @new.onnx --report @hard.csv",
           train + "-o @new.onnx --eval 'csv:@t.onnx?label=0' --log @t.onnx",
           std::string("make-trainable @m.onnx -o @m.onnx --loss cross_entropy"),
           std::string("make-trainable @m.onnx -o @here/soft.onnx --loss cross_entropy"),
           std::string("export @t.onnx -o @t.onnx"),
           std::string("export @t.onnx --like @m.onnx -o @m.onnx"),
           std::string("gradient @m.onnx --of y --wrt x -o @m.onnx"),
           std::string("step @t.onnx -i x=@x.npy -i label=@l.npy -o @t.onnx"),
           std::string("step @t.onnx -i x=@x.npy -i label=@l.npy -o @x.npy --overwrite"),
           std::string("bench @m.onnx --mode infer --profile --trace @m.onnx"),
       }) {
    if (const size_t at = line.find("@spec"); at != std::string::npos) line.replace(at, 5, data);
    const CommandResult r = Onward(line);
    EXPECT_EQ(r.exit_code, 2) << line << "\n" << r.output << r.errors;
    EXPECT_THAT(r.errors, AnyOf(HasSubstr("would replace"), HasSubstr("are the same file")))
        << line;
    EXPECT_EQ(Contents(), before) << line;
  }
}

// Names of outputs come from the model, so they are known only after the run.
TEST_F(PathsTest, OutputFilesAreNoInputs) {
  ASSERT_TRUE(
      WriteModel(TextModel("g (float[N, 2] x) => (float[N, 2] y) { y = Neg(x) }"), Path("neg.onnx"))
          .ok());
  ASSERT_TRUE(WriteNpy(Path("y.npy"), Tensor::Zeros(DType::kFloat, {2, 2})).ok());
  const std::string before = FileBytes(Path("y.npy"));
  const CommandResult r = Onward("run @neg.onnx -i x=@y.npy --output-dir @here");
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_THAT(r.errors, HasSubstr("would replace"));
  EXPECT_EQ(FileBytes(Path("y.npy")), before);
  EXPECT_EQ(Onward("run @neg.onnx -i x=@y.npy --output-dir @out").exit_code, 0);
}

TEST_F(PathsTest, ImagesAndMnistFilesAreData) {
  fs::create_directories(Path("pictures/cat"));
  scratch_.Write("pictures/cat/1.png", "x");
  scratch_.Write("mnist/train-labels-idx1-ubyte", "x");
  for (const char* line :
       {"train @m.onnx --data images:@pictures -o @pictures/cat/1.png --overwrite",
        "train @m.onnx --data mnist:@mnist -o @new.onnx --log "
        "@mnist/train-labels-idx1-ubyte"}) {
    const CommandResult r = Onward(line);
    EXPECT_EQ(r.exit_code, 2);
    EXPECT_THAT(r.errors, HasSubstr("would replace"));
  }
}

TEST_F(PathsTest, OverwriteSaysSo) {
  EXPECT_EQ(Onward("step @t.onnx -i x=@x.npy -i label=@l.npy -o @t.onnx --overwrite").exit_code, 0);
  EXPECT_EQ(Onward("make-trainable @m.onnx -o @m.onnx --overwrite --loss cross_entropy").exit_code,
            0);
  EXPECT_EQ(Onward("check @m.onnx").exit_code, 0);
  // A converter replaces what is none of its inputs.
  EXPECT_EQ(Onward("export @t.onnx -o @soft2.onnx").exit_code, 0);
  EXPECT_EQ(Onward("export @t.onnx -o @soft2.onnx").exit_code, 0);
}

TEST_F(PathsTest, LogsMayBePipes) {
  const CommandResult r = Onward("train @m.onnx --data 'csv:" + Path("d.csv") +
                                 "?label=label' --steps 1 --quiet -o @new.onnx --log /dev/stdout");
  EXPECT_EQ(r.exit_code, 0) << r.errors;
}

// Numbers that an int does not hold, and more digits than a double tells apart.
TEST_F(PathsTest, IntegersAreNotCutShort) {
  const std::string step = "step @t.onnx -i x=@x.npy -i label=@l.npy ";
  for (const std::string& line :
       {step + "--entry 4294967296", step + "--entry 2147483648", step + "-n 9007199254740993",
        std::string("run @m.onnx -i x=@x.npy --threads 4294967297"),
        std::string("gradient @m.onnx --of y --wrt x --order 4294967297 -o @g.onnx"),
        std::string("make-trainable @m.onnx --head 1e15 --loss cross_entropy -o @h.onnx"),
        std::string("make-trainable @m.onnx --seed 9007199254740993 --loss mse -o @h.onnx"),
        std::string("train @m.onnx --data digits --epochs 1e15 -o @h.onnx")}) {
    const CommandResult r = Onward(line);
    EXPECT_EQ(r.exit_code, 2) << line;
    EXPECT_THAT(r.errors, HasSubstr("has to be an integer")) << line;
  }
}

}  // namespace onward::paths_test
