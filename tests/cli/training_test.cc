// SPDX-License-Identifier: Apache-2.0
// A user's path through the command line: make a model, train it, stop, resume,
// export, evaluate.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>

#include "core/onnx_io/model.h"
#include "core/onnx_io/proto.h"
#include "data/arrays/npy.h"
#include "tests/support/command.h"
#include "tests/support/paths.h"
#include "tests/support/scratch.h"
#include "tests/support/text_model.h"

namespace onward::training_test {

class TrainingPath : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = TemporaryFolder();
    ASSERT_EQ(
        std::system((BuiltExamples() + "/make_cnn " + folder_ + "/cnn.onnx >/dev/null").c_str()),
        0);
    // Bright top or bottom half: learnable in a few steps.
    constexpr int kExamples = 200;
    Tensor x = Tensor::Zeros(DType::kFloat, {kExamples, 1, 28, 28});
    Tensor y = Tensor::Zeros(DType::kInt64, {kExamples});
    std::mt19937 random(3);
    for (int i = 0; i < kExamples; ++i) {
      const int label = static_cast<int>(random() % 2);
      y.data<int64_t>()[i] = label;
      for (int p = 0; p < 784; ++p) {
        const bool bright = (p < 392) == (label == 0);
        x.data<float>()[i * 784 + p] =
            static_cast<float>(random() % 1000) * (bright ? 1e-3f : 2e-4f);
      }
    }
    ASSERT_TRUE(WriteNpy(folder_ + "/x.npy", x).ok());
    ASSERT_TRUE(WriteNpy(folder_ + "/y.npy", y).ok());
    data_ = "npy:" + folder_ + "/x.npy," + folder_ + "/y.npy";
  }

  CommandResult Onward(const std::string& arguments) {
    return RunOnward(BuiltProgram(), arguments);
  }
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }

  std::string folder_, data_;
};

TEST_F(TrainingPath, ResumeIsByteIdenticalWithDropoutAndShuffling) {
  const std::string common =
      "train " + Path("cnn.onnx") + " --data '" + data_ + "' --batch 16 --seed 5 --quiet ";
  ASSERT_EQ(Onward(common + "--steps 20 -o " + Path("whole.onnx")).exit_code, 0);
  ASSERT_EQ(Onward(common + "--steps 10 -o " + Path("parts.onnx")).exit_code, 0);
  EXPECT_NE(FileBytes(Path("whole.onnx")), FileBytes(Path("parts.onnx")));
  const CommandResult resumed = Onward("train " + Path("cnn.onnx") + " --data '" + data_ +
                                       "' --quiet --resume --steps 20 -o " + Path("parts.onnx"));
  ASSERT_EQ(resumed.exit_code, 0) << resumed.errors;
  EXPECT_EQ(FileBytes(Path("whole.onnx")), FileBytes(Path("parts.onnx")));
}

TEST_F(TrainingPath, AFileThatFixesItsBatchIsTrainedWithIt) {
  auto model = ReadModel(Path("cnn.onnx"));
  ASSERT_TRUE(model.ok()) << model.status();
  for (auto* values : {model->proto().mutable_graph()->mutable_input(),
                       model->proto().mutable_graph()->mutable_output()}) {
    values->Mutable(0)
        ->mutable_type()
        ->mutable_tensor_type()
        ->mutable_shape()
        ->mutable_dim(0)
        ->set_dim_value(8);
  }
  ASSERT_TRUE(WriteModel(*model, Path("fixed.onnx")).ok());
  ASSERT_EQ(Onward("make-trainable " + Path("fixed.onnx") + " -o " + Path("t.onnx")).exit_code, 0);
  const std::string line = "train " + Path("t.onnx") + " --data '" + data_ + "' --steps 2 -o ";
  const CommandResult fits = Onward(line + Path("fits.onnx"));
  EXPECT_EQ(fits.exit_code, 0) << fits.errors;
  EXPECT_NE(fits.errors.find("batches of 8"), std::string::npos) << fits.errors;
  const CommandResult other = Onward(line + Path("other.onnx") + " --batch 16");
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_NE(other.errors.find("use --batch 8"), std::string::npos) << other.errors;
}

TEST_F(TrainingPath, LearnsExportsAndEvaluates) {
  const CommandResult trained =
      Onward("train " + Path("cnn.onnx") + " --data '" + data_ + "' --eval '" + data_ +
             "' --epochs 5 --batch 16 --quiet --json --log " + Path("log.jsonl") + " --report " +
             Path("report.html") + " -o " + Path("trained.onnx"));
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  EXPECT_NE(FileBytes(Path("report.html")).find("<svg"), std::string::npos);
  EXPECT_NE(FileBytes(Path("log.jsonl")).find("\"loss\""), std::string::npos);
  ASSERT_EQ(Onward("export " + Path("trained.onnx") + " -o " + Path("plain.onnx") + " --like " +
                   Path("cnn.onnx"))
                .exit_code,
            0);
  const CommandResult eval =
      Onward("eval " + Path("plain.onnx") + " --data '" + data_ + "' --at-least 0.95");
  EXPECT_EQ(eval.exit_code, 0) << eval.output << eval.errors;
}

TEST_F(TrainingPath, ExportLikeChangesOnlyTrainedInitializers) {
  ASSERT_EQ(Onward("train " + Path("cnn.onnx") + " --train 'fc*' --data '" + data_ +
                   "' --steps 3 --quiet -o " + Path("t.onnx"))
                .exit_code,
            0);
  ASSERT_EQ(Onward("export " + Path("t.onnx") + " -o " + Path("plain.onnx") + " --like " +
                   Path("cnn.onnx"))
                .exit_code,
            0);
  Model before = ReadModel(Path("cnn.onnx")).value(), after = ReadModel(Path("plain.onnx")).value();
  int changed = 0;
  for (auto* m : {&before, &after}) {
    for (auto& t : *m->proto().mutable_graph()->mutable_initializer()) {
      if (t.name().rfind("fc", 0) != 0) continue;
      t.clear_raw_data();
      t.clear_external_data();
    }
  }
  EXPECT_EQ(Bytes(before), Bytes(after));
  const Graph old = InferenceGraph(ReadModel(Path("cnn.onnx")).value()).value();
  const Graph trained = InferenceGraph(ReadModel(Path("plain.onnx")).value()).value();
  for (const auto& [name, tensor] : old.initializers) {
    changed += !Identical(tensor, trained.initializers.at(name));
  }
  EXPECT_EQ(changed, 4);
}

TEST_F(TrainingPath, StepRunsTheFileAlone) {
  ASSERT_EQ(Onward("make-trainable " + Path("cnn.onnx") + " -o " + Path("t.onnx") +
                   " --loss cross_entropy --optimizer sgd:lr=0.1")
                .exit_code,
            0);
  ASSERT_EQ(Onward("check " + Path("t.onnx")).exit_code, 0);
  Tensor x = ReadNpy(Path("x.npy")).value();
  Tensor batch = Tensor(DType::kFloat, Shape{4, 1, 28, 28}, x.raw(), nullptr);
  ASSERT_TRUE(WriteNpy(Path("batch.npy"), batch).ok());
  ASSERT_TRUE(WriteNpy(Path("labels.npy"), Tensor::FromValues<int64_t>({4}, {0, 1, 0, 1})).ok());
  const CommandResult r = Onward("step " + Path("t.onnx") + " --input image=" + Path("batch.npy") +
                                 " --input label=" + Path("labels.npy") + " -n 3 --output-dir " +
                                 Path("out") + " -o " + Path("after.onnx"));
  ASSERT_EQ(r.exit_code, 0) << r.errors;
  EXPECT_TRUE(std::isfinite(*ReadNpy(Path("out/loss.npy")).value().data<float>()));
  EXPECT_NE(FileBytes(Path("t.onnx")), FileBytes(Path("after.onnx")));
}

TEST_F(TrainingPath, HeadIsReplaced) {
  const CommandResult r = Onward("make-trainable " + Path("cnn.onnx") + " -o " + Path("t.onnx") +
                                 " --head 3 --loss cross_entropy");
  ASSERT_EQ(r.exit_code, 0) << r.errors;
  const CommandResult inspected = Onward("inspect " + Path("t.onnx"));
  EXPECT_NE(inspected.output.find("logits: float[N, 3]"), std::string::npos) << inspected.output;
}

// The data has two of the model's ten classes.
TEST_F(TrainingPath, EvalKnowsTheClassesOfTheModel) {
  const CommandResult r = Onward("eval " + Path("cnn.onnx") + " --data '" + data_ + "'");
  EXPECT_EQ(r.exit_code, 0) << r.errors;
}

TEST_F(TrainingPath, GradientsByValuesThatDependOnEachOther) {
  for (const std::string wrt : {"image", "image,h_5"}) {
    const std::string model = Path(wrt + ".onnx");
    ASSERT_EQ(Onward("gradient " + Path("cnn.onnx") + " --of logits --wrt " + wrt + " -o " + model)
                  .exit_code,
              0);
    Tensor x = Tensor::Zeros(DType::kFloat, {1, 1, 28, 28});
    for (int i = 0; i < 784; ++i) x.data<float>()[i] = static_cast<float>(i % 7) * 0.1f;
    ASSERT_TRUE(WriteNpy(Path("one.npy"), x).ok());
    ASSERT_EQ(
        Onward("run " + model + " -i " + Path("one.npy") + " --output-dir " + Path(wrt)).exit_code,
        0);
  }
  auto alone = ReadNpy(Path("image/image__grad.npy")),
       both = ReadNpy(Path("image,h_5/image__grad.npy"));
  ASSERT_TRUE(alone.ok() && both.ok());
  EXPECT_TRUE(Identical(*alone, *both));
}

}  // namespace onward::training_test
