// SPDX-License-Identifier: Apache-2.0
// Models, sessions and what is made of them, through the public interface alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "onward/onward.h"

namespace {

using onward::ElementType;
using onward::InferenceSession;
using onward::Model;
using onward::StatusCode;
using onward::Tensor;
using onward::TensorMap;
using onward::TrainingSession;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

class Api : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/onward_api_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static Model Trainable() { return Model::Read(ONWARD_TRAINABLE).value(); }
  // Two images that differ, so that a step moves every layer.
  static TensorMap Batch() {
    Tensor image = Tensor::Zeros(ElementType::kFloat, {2, 1, 28, 28}).value();
    for (int i = 0; i < image.elements(); ++i) image.data<float>()[i] = 0.01f * (i % 97);
    return {{"image", image}, {"label", Tensor::From<int64_t>({2}, {3, 7}).value()}};
  }
  static float Loss(TrainingSession& training) {
    return *training.Step(Batch(), {training.loss()}).value().at("loss").data<float>();
  }

  std::string folder_;
};

TEST_F(Api, LooksInsideAModel) {
  const Model model = Trainable();
  EXPECT_TRUE(model.has_training());
  EXPECT_GE(model.opsets().at(""), 18);
  EXPECT_EQ(model.path(), ONWARD_TRAINABLE);
  const auto inputs = model.Inputs().value();
  ASSERT_EQ(inputs.size(), 1u);
  EXPECT_EQ(inputs[0].name, "image");
  EXPECT_EQ(inputs[0].element_type, ElementType::kFloat);
  ASSERT_EQ(inputs[0].shape.size(), 4u);
  EXPECT_EQ(inputs[0].shape[0].symbol, "N");
  EXPECT_EQ(inputs[0].shape[3].size, 28);
  EXPECT_EQ(model.Outputs().value()[0].name, "logits");
  EXPECT_THAT(model.Initializers().value(), Contains("fc2.weight"));
  EXPECT_THAT(model.Initializer("fc2.weight")->shape(), ElementsAre(10, 128));
  EXPECT_EQ(model.Initializer("none").status().code(), StatusCode::kNotFound);
  EXPECT_TRUE(model.Check()->empty());
}

TEST_F(Api, MetadataTravelsInTheFile) {
  const Model original = Trainable();
  Model changed = original;
  ASSERT_TRUE(changed.SetMetadata("note", "mine").ok());
  EXPECT_EQ(original.Metadata("note"), "");
  ASSERT_TRUE(changed.Write(folder_ + "/m.onnx").ok());
  EXPECT_EQ(Model::Read(folder_ + "/m.onnx")->Metadata("note"), "mine");
}

TEST_F(Api, WeightsGoBesideTheModelOnRequest) {
  const std::string path = folder_ + "/m.onnx";
  const Model model = Trainable();
  ASSERT_TRUE(model.Write(path).ok());
  const auto whole = std::filesystem::file_size(path);
  ASSERT_TRUE(model.Write(path, {.external_data = true}).ok());
  EXPECT_LT(std::filesystem::file_size(path), whole / 2);
  const Tensor before = model.Initializer("fc2.weight").value();
  const Tensor after = Model::Read(path)->Initializer("fc2.weight").value();
  EXPECT_TRUE(std::equal(before.data<float>(), before.data<float>() + 1280, after.data<float>()));
}

TEST_F(Api, ErrorsNameTheFile) {
  EXPECT_THAT(Model::Read("/nowhere.onnx").status().message(), HasSubstr("/nowhere.onnx"));
  const std::string junk = "not a model";
  EXPECT_THAT(Model::Parse(junk.data(), junk.size(), "junk.onnx").status().message(),
              HasSubstr("junk.onnx"));
  EXPECT_FALSE(Trainable().Write(folder_ + "/none/m.onnx").ok());
}

TEST_F(Api, TrainsResumesAndServes) {
  TrainingSession training = TrainingSession::Create(Trainable()).value();
  EXPECT_EQ(training.loss(), "loss");
  EXPECT_EQ(training.inputs().size(), 2u);
  const float first = Loss(training);
  for (int i = 0; i < 4; ++i) Loss(training);
  ASSERT_TRUE(training.Checkpoint()->Write(folder_ + "/checkpoint.onnx").ok());
  TrainingSession resumed =
      TrainingSession::Create(Model::Read(folder_ + "/checkpoint.onnx").value()).value();
  const float there = Loss(training), here = Loss(resumed);
  EXPECT_EQ(there, here);
  EXPECT_LT(there, first);

  const Model plain = training.Inference().value();
  EXPECT_FALSE(plain.has_training());
  const TensorMap image = {{"image", Batch()["image"]}};
  InferenceSession session = InferenceSession::Create(plain).value();
  EXPECT_EQ(session.inputs()[0].name, "image");
  // Weights that stay are packed beforehand, which rounds otherwise.
  EXPECT_THAT(session.Run(image)->at("logits").Values<float>().value(),
              testing::Pointwise(testing::FloatNear(1e-4f),
                                 training.Infer(image)->at("logits").Values<float>().value()));
}

TEST_F(Api, VariablesAreReadAndSet) {
  TrainingSession training = TrainingSession::Create(Trainable()).value();
  EXPECT_THAT(training.Variables(), Contains("fc2.bias"));
  Tensor bias = training.Variable("fc2.bias").value();
  bias.data<float>()[0] = 5;
  EXPECT_NE(training.Variable("fc2.bias")->data<float>()[0], 5);
  ASSERT_TRUE(training.SetVariable("fc2.bias", bias).ok());
  EXPECT_EQ(training.Variable("fc2.bias")->data<float>()[0], 5);
  EXPECT_EQ(training.Checkpoint()->Initializer("fc2.bias")->data<float>()[0], 5);
  EXPECT_THAT(training.SetVariable("fc2.bias", Tensor::Scalar<float>(1).value()).message(),
              AllOf(HasSubstr("fc2.bias"), HasSubstr("[10]")));
  EXPECT_EQ(training.Variable("none").status().code(), StatusCode::kNotFound);
  ASSERT_TRUE(training.Initialize().ok());
  EXPECT_NE(training.Variable("fc2.bias")->data<float>()[0], 5);
}

TEST_F(Api, ASessionGoesBackAndLooksWithoutLearning) {
  const Model start = Trainable();
  TrainingSession training = TrainingSession::Create(start).value();
  EXPECT_EQ(training.entries(), 1);
  const float first = Loss(training);
  const auto learned = training.Variable("fc2.bias")->Values<float>().value();
  const float seen = training.Evaluate(Batch(), {"loss"})->at("loss").data<float>()[0];
  EXPECT_EQ(training.Variable("fc2.bias")->Values<float>().value(), learned);
  EXPECT_EQ(training.StepEntry(0, Batch(), {"loss"})->at("loss").data<float>()[0], seen);
  EXPECT_FALSE(training.StepEntry(1, Batch()).ok());
  ASSERT_TRUE(training.Reset(start).ok());
  EXPECT_EQ(Loss(training), first);
  EXPECT_EQ(training.Variable("fc2.bias")->Values<float>().value(), learned);
  EXPECT_THAT(training.Reset(onward::InferenceModel(start).value()).message(),
              HasSubstr("has no initializer"));
}

TEST_F(Api, AccumulatesAveragesAndLowersPrecision) {
  const Model plain = onward::InferenceModel(Trainable()).value();
  onward::AuthorOptions options;
  options.accumulate = 2;
  options.ema = 0.5;
  options.precision = "float16";
  const Model made = onward::MakeTrainable(plain, options).value().model;
  TrainingSession training = TrainingSession::Create(made).value();
  for (const char* name : {"fc2.bias__sum", "fc2.bias__ema", "onward_accumulated",
                           "onward_loss_scale", "onward_skipped_steps"}) {
    EXPECT_THAT(training.Variables(), Contains(name));
  }
  for (int i = 0; i < 8; ++i) Loss(training);
  const auto weights = training.Inference()->Initializer("fc2.bias")->Values<float>().value();
  const auto averages = training.Inference(true)->Initializer("fc2.bias")->Values<float>().value();
  EXPECT_EQ(weights, training.Variable("fc2.bias")->Values<float>().value());
  EXPECT_EQ(averages, training.Variable("fc2.bias__ema")->Values<float>().value());
  EXPECT_NE(weights, averages);
  options.precision = "float8";
  EXPECT_THAT(onward::MakeTrainable(plain, options).status().message(), HasSubstr("float8"));
}

TEST_F(Api, WrongFeedsAreErrorsThatChangeNothing) {
  TrainingSession training = TrainingSession::Create(Trainable()).value();
  const auto before = training.Variable("fc2.bias")->Values<float>().value();
  EXPECT_THAT(training.Step({}).status().message(),
              AllOf(HasSubstr("trainable.onnx"), HasSubstr("needs the input")));
  TensorMap wrong = Batch();
  wrong["image"] = Tensor::Scalar<float>(1).value();
  EXPECT_FALSE(training.Step(wrong).ok());
  wrong["image"] = Tensor();
  EXPECT_FALSE(training.Step(wrong).ok());
  EXPECT_EQ(training.Variable("fc2.bias")->Values<float>().value(), before);
  InferenceSession session = InferenceSession::Create(Trainable()).value();
  EXPECT_THAT(session.Run({}).status().message(), HasSubstr("'image'"));
  TensorMap more = Batch();
  EXPECT_THAT(session.Run(more).status().message(), HasSubstr("no input 'label'"));
}

TEST_F(Api, MakesModelsTrainable) {
  const Model plain = onward::InferenceModel(Trainable()).value();
  EXPECT_FALSE(TrainingSession::Create(plain).ok());
  onward::AuthorOptions options;
  options.optimizer = "sgd:lr=0.1";
  options.freeze = {"conv*"};
  options.label = "y";
  const auto made = onward::MakeTrainable(plain, options).value();
  EXPECT_THAT(made.trained, Contains("fc1.weight"));
  EXPECT_THAT(made.trained, testing::Not(Contains("conv1.weight")));
  TrainingSession training = TrainingSession::Create(made.model).value();
  TensorMap batch = Batch();
  batch["y"] = batch["label"];
  batch.erase("label");
  ASSERT_TRUE(training.Step(batch).ok());
  const Model like = onward::InferenceModelLike(training.Checkpoint().value(), plain).value();
  EXPECT_EQ(like.Initializer("fc2.bias")->Values<float>().value(),
            training.Variable("fc2.bias")->Values<float>().value());
  options.optimizer = "nothing";
  EXPECT_THAT(onward::MakeTrainable(plain, options).status().message(), HasSubstr("nothing"));
}

TEST_F(Api, AdaptersAreTrainedMergedAndApplied) {
  const Model plain = onward::InferenceModel(Trainable()).value();
  onward::AuthorOptions options;
  options.lora = {"fc*:rank=2,alpha=4", "conv1.weight:rank=1"};
  options.init = "orthogonal";
  const auto made = onward::MakeTrainable(plain, options).value();
  EXPECT_THAT(made.trained, testing::Each(HasSubstr(".lora_")));
  TrainingSession training = TrainingSession::Create(made.model).value();
  for (int i = 0; i < 3; ++i) Loss(training);
  const Model trained = training.Checkpoint().value();
  const auto adapters = onward::Adapters(trained).value();
  ASSERT_EQ(adapters.size(), 3u);
  EXPECT_EQ(adapters[0].weight, "conv1.weight");
  EXPECT_EQ(adapters[0].alpha, 8);
  EXPECT_EQ(adapters[1].rank, 2);

  const auto merged = onward::MergeAdapters(trained).value();
  EXPECT_FALSE(merged.model.has_training());
  EXPECT_EQ(merged.merged.size(), 3u);
  EXPECT_TRUE(merged.kept.empty());
  EXPECT_TRUE(onward::Adapters(merged.model)->empty());
  const Model file = onward::ExtractAdapters(trained).value();
  EXPECT_EQ(file.Initializers()->size(), 6u);
  const Model applied = onward::ApplyAdapters(plain, file).value();
  const TensorMap image = {{"image", Batch()["image"]}};
  const auto logits = [&](const Model& model) {
    return InferenceSession::Create(model)->Run(image)->at("logits").Values<float>().value();
  };
  const auto expected = training.Infer(image)->at("logits").Values<float>().value();
  EXPECT_THAT(logits(merged.model), testing::Pointwise(testing::FloatNear(1e-4f), expected));
  EXPECT_THAT(logits(applied), testing::Pointwise(testing::FloatNear(1e-4f), expected));
  const auto base = onward::MergeAdapters(trained, onward::AdapterMerge::kRemove).value();
  EXPECT_EQ(base.model.Initializers().value(), plain.Initializers().value());
  EXPECT_FALSE(onward::ExtractAdapters(plain).ok());
  options.init = "nothing";
  EXPECT_THAT(onward::MakeTrainable(plain, options).status().message(), HasSubstr("nothing"));
}

TEST_F(Api, GradientsAreModels) {
  const Model plain = onward::InferenceModel(Trainable()).value();
  const auto made = onward::MakeGradientModel(plain, "logits", {"fc2.bias", "image"}).value();
  ASSERT_THAT(made.gradients, ElementsAre("fc2.bias__grad", "image__grad"));
  InferenceSession session = InferenceSession::Create(made.model).value();
  const TensorMap out = session.Run({{"image", Batch()["image"]}}).value();
  // d(sum of two rows of logits) / d(bias) is 2 for each class.
  EXPECT_THAT(out.at("fc2.bias__grad").Values<float>().value(), testing::Each(2.0f));
  EXPECT_THAT(out.at("image__grad").shape(), ElementsAre(2, 1, 28, 28));
  EXPECT_FALSE(onward::MakeGradientModel(plain, "logits", {}).ok());
  EXPECT_FALSE(onward::MakeGradientModel(plain, "logits", {"image"}, 0).ok());
  EXPECT_FALSE(onward::MakeGradientModel(plain, "logits", {"image"}, 1000).ok());
  EXPECT_FALSE(onward::MakeGradientModel(plain, "none", {"image"}).ok());
}

TEST_F(Api, SessionsOfSeveralThreadsAreIndependent) {
  const Model plain = onward::InferenceModel(Trainable()).value();
  const auto train = [&plain](std::vector<float>* losses) {
    const Model model = onward::MakeTrainable(plain).value().model;
    TrainingSession training = TrainingSession::Create(model).value();
    for (int i = 0; i < 5; ++i) losses->push_back(Loss(training));
  };
  std::vector<float> expected;
  train(&expected);
  std::vector<std::vector<float>> losses(3);
  std::vector<std::thread> threads;
  for (std::vector<float>& mine : losses) threads.emplace_back(train, &mine);
  for (std::thread& t : threads) t.join();
  EXPECT_THAT(losses, testing::Each(expected));
}

TEST(Device, ThisMachineServes) {
  EXPECT_TRUE(onward::CheckCpu().ok());
  EXPECT_STREQ(onward::Version(), ONWARD_VERSION);
}

}  // namespace
