// SPDX-License-Identifier: Apache-2.0
// What every command says: an error names the file it is about, what is printed has
// arrived or is missed, and no broken model is written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>

#include "core/onnx_io/model.h"
#include "core/onnx_io/proto.h"
#include "data/arrays/npy.h"
#include "tests/support/classified.h"
#include "tests/support/command.h"
#include "tests/support/paths.h"
#include "tests/support/scratch.h"
#include "tests/support/text_model.h"

namespace onward::messages_test {

using ::testing::HasSubstr;

namespace fs = std::filesystem;

class MessagesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Write("m.onnx", TextModel(LinearClassifier(2, 2)));
    scratch_.Write("d.csv", ClassifiedCsv({"a", "b"}, 64));
    ASSERT_EQ(RunOnward(BuiltProgram(), "make-trainable " + Path("m.onnx") + " -o " +
                                            Path("t.onnx") + " --loss cross_entropy")
                  .exit_code,
              0);
    ASSERT_TRUE(WriteNpy(Path("x.npy"), Tensor::Zeros(DType::kFloat, {2, 2})).ok());
    ASSERT_TRUE(WriteNpy(Path("l.npy"), Tensor::Zeros(DType::kInt64, {2})).ok());
  }
  void Write(const std::string& name, const Model& model) { scratch_.Write(name, Bytes(model)); }
  std::string Path(const std::string& name) const { return scratch_.Path(name); }
  std::string Data() const { return "--data 'csv:" + Path("d.csv") + "?label=label' "; }
  // Every command that reads a model, as it would work on a good one.
  std::vector<std::string> Lines(const std::string& model) const {
    const std::string tensors = " -i x=" + Path("x.npy") + " ";
    return {"inspect " + model,
            "check " + model,
            "run " + model + tensors,
            "make-trainable " + model + " --loss cross_entropy -o " + Path("o1.onnx"),
            "step " + model + tensors + "-i label=" + Path("l.npy") + " -o " + Path("o2.onnx"),
            "train " + model + " " + Data() + "--steps 1 --overwrite -o " + Path("o3.onnx"),
            "eval " + model + " " + Data(),
            "doctor " + model + " " + Data() + "--steps 1 --optimizer adamw:lr=1",
            "export " + model + " -o " + Path("o4.onnx"),
            "export " + model + " --portable-step -o " + Path("o5.onnx"),
            "gradient " + model + " --of y --wrt x -o " + Path("o6.onnx"),
            "compare " + model + " " + model,
            "bench " + model + " --mode infer --seconds 0",
            "bench " + model + " --mode train --loss cross_entropy --seconds 0"};
  }
  Scratch scratch_;
};

TEST_F(MessagesTest, ErrorsNameTheModel) {
  const std::string header = "<ir_version: 8, opset_import: [\"\" : 18]> ";
  Model loose = TextModel(LinearClassifier(2, 2));
  loose.proto().mutable_graph()->mutable_output(0)->set_name("nowhere");
  Model outside = TextModel(LinearClassifier(2, 2));
  outside.proto().mutable_graph()->mutable_node(0)->set_op_type("Conv");
  Model silent = TextModel(LinearClassifier(2, 2));
  silent.proto().mutable_graph()->clear_output();
  Model external = TextModel(LinearClassifier(2, 2));
  auto* w = external.proto().mutable_graph()->mutable_initializer(0);
  w->clear_float_data();
  w->clear_raw_data();
  w->set_data_location(onnx::TensorProto::EXTERNAL);
  auto* location = w->add_external_data();
  location->set_key("location");
  location->set_value("missing.bin");
  const std::vector<std::pair<std::string, Model>> models = {
      {"unknown_operator.onnx",
       TextModel("g (float[N, 2] x) => (float[N, 2] y) { y = Fantasy(x) }")},
      {"wrong_count.onnx", TextModel("g (float[N, 2] x) => (float[N, 2] y) { y = MatMul(x) }")},
      {"sizes.onnx",
       TextModel("g (float[N, 2] x) => (float[N, 2] y) <float[3, 2] w = {0, 0, 0, 0, 0, 0}> "
                 "{ y = MatMul(x, w) }")},
      {"no_kernel.onnx", TextModel("g (float[N, 2] x) => (float[N] y) <float[2] w = {1, 1}> "
                                   "{ s = StringNormalizer(x) y = ReduceSum(x) }")},
      {"inputs.onnx",
       TextModel("g (float[N, 2] x, float[N, 2] other) => (float[N, 2] y) { y = Add(x, other) }")},
      {"frozen.onnx", TextModel("g (float[N, 2] x) => (int64[2] y) { y = Shape(x) }")},
      {"loose.onnx", loose},
      {"outside.onnx", outside},
      {"silent.onnx", silent},
      {"external.onnx", external},
  };
  int refused = 0;
  for (const auto& [name, model] : models) {
    Write(name, model);
    for (const std::string& line : Lines(Path(name))) {
      const CommandResult r = RunOnward(BuiltProgram(), line);
      ASSERT_NE(r.exit_code, -1) << line;
      if (r.exit_code != 2) continue;
      ++refused;
      EXPECT_THAT(r.errors, HasSubstr(Path(name))) << line;
    }
  }
  EXPECT_GT(refused, 80);
}

TEST_F(MessagesTest, ErrorsNameTheData) {
  scratch_.Write("wide.csv", ClassifiedCsv({"a", "b", "c"}, 30));
  scratch_.Write("words.csv", "x0,x1,label\n1,2,a\nmuch,2,b\n");
  scratch_.Write("empty.csv", "");
  ASSERT_TRUE(WriteNpy(Path("wide.npy"), Tensor::Zeros(DType::kFloat, {4, 7})).ok());
  for (const std::string& spec :
       {"csv:" + Path("wide.csv") + "?label=label", "csv:" + Path("words.csv") + "?label=label",
        "csv:" + Path("empty.csv") + "?label=label", "csv:" + Path("gone.csv") + "?label=label",
        "npz:" + Path("d.csv"), "npy:" + Path("wide.npy") + "," + Path("l.npy"),
        "npy:" + Path("wide.npy") + "," + Path("l.npy") + "?limit=2"}) {
    for (const std::string& line :
         {"eval " + Path("t.onnx") + " --data '" + spec + "'",
          "train " + Path("t.onnx") + " --batch 2 --steps 1 --overwrite -o " + Path("o.onnx") +
              " --data '" + spec + "'"}) {
      const CommandResult r = RunOnward(BuiltProgram(), line);
      EXPECT_EQ(r.exit_code, 2) << line;
      const size_t begin = spec.find(':') + 1;
      EXPECT_THAT(r.errors, HasSubstr(spec.substr(begin, spec.find_first_of("?,") - begin)))
          << line;
    }
  }
}

TEST_F(MessagesTest, FlagsAreNotTheModelsFault) {
  const CommandResult r = RunOnward(
      BuiltProgram(), "make-trainable " + Path("m.onnx") + " --loss mes -o " + Path("o.onnx"));
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_THAT(r.errors, ::testing::Not(HasSubstr("m.onnx")));
}

TEST_F(MessagesTest, AFullStandardOutputIsNoticed) {
  fs::create_directories(Path("cases/one/test_data_set_0"));
  fs::copy(Path("m.onnx"), Path("cases/one/model.onnx"));
  std::vector<std::string> lines = Lines(Path("t.onnx"));
  for (const char* line : {"ops", "ops --json", "--help", "help train", "--version"})
    lines.push_back(line);
  lines.push_back("score " + Path("cases"));
  for (const std::string& line : lines) {
    const std::string shell = BuiltProgram() + " " + line + " >/dev/full 2>" + Path("said");
    const int status = std::system(shell.c_str());
    // What prints nothing has nothing to miss.
    if (RunOnward(BuiltProgram(), line).output.empty()) continue;
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 2) << line;
    EXPECT_THAT(scratch_.Read("said"),
                HasSubstr("cannot write to standard output: No space left on device"))
        << line;
  }
}

TEST_F(MessagesTest, AReaderThatLeavesEarlyIsNotAnError) {
  for (const char* before : {"", "trap '' PIPE; "}) {
    const std::string shell = std::string("bash -c \"") + before + BuiltProgram() + " ops 2>" +
                              Path("said") + " | head -1 >" + Path("line") + "\"";
    EXPECT_EQ(std::system(shell.c_str()), 0);
    EXPECT_EQ(scratch_.Read("said"), "");
    EXPECT_THAT(scratch_.Read("line"), HasSubstr("operator"));
  }
}

TEST_F(MessagesTest, ExportLikeTellsOfOtherHeads) {
  Write("wide.onnx", TextModel(LinearClassifier(2, 3)));
  const CommandResult r =
      RunOnward(BuiltProgram(), "export " + Path("m.onnx") + " --like " + Path("wide.onnx") +
                                    " -o " + Path("out.onnx"));
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_THAT(r.errors, AllOf(HasSubstr("but its new value is float[2, 2]"),
                              HasSubstr("changed (--head) is exported without it")));
}

TEST_F(MessagesTest, BrokenModelsAreNotWritten) {
  Model dangling = TextModel(LinearClassifier(2, 2));
  dangling.proto().mutable_graph()->mutable_node(0)->set_input(1, "nobody");
  Write("dangling.onnx", dangling);
  Write("unknown.onnx", TextModel("g (float[N, 2] x) => (float[N, 2] y) { y = Fantasy(x) }"));
  Write("types.onnx", TextModel("g (float[N, 2] x, int64[2] i) => (float[N, 2] y) { y = Add(x, i) "
                                "}"));
  for (const char* name : {"dangling.onnx", "unknown.onnx", "types.onnx"}) {
    ASSERT_EQ(RunOnward(BuiltProgram(), "check " + Path(name)).exit_code, 1) << name;
    for (const std::string& line :
         {"export " + Path(name) + " -o " + Path("out.onnx"),
          "export " + Path("m.onnx") + " --like " + Path(name) + " -o " + Path("out.onnx"),
          "gradient " + Path(name) + " --of y --wrt x -o " + Path("out.onnx"),
          "make-trainable " + Path(name) + " --loss mse -o " + Path("out.onnx")}) {
      const CommandResult r = RunOnward(BuiltProgram(), line);
      EXPECT_EQ(r.exit_code, 2) << line << r.output;
      EXPECT_FALSE(fs::exists(Path("out.onnx"))) << line;
    }
  }
}

}  // namespace onward::messages_test
