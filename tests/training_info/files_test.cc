// SPDX-License-Identifier: Apache-2.0
// docs/training-info.md: optimizers of the standard, random numbers, files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "environment/environment.h"
#include "onnx/onnx_pb.h"
#include "tests/support/scratch.h"
#include "tests/support/text_model.h"
#include "training_info/author.h"

namespace onward::files_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kScale[] = "m (float[2] x) => (float[2] y) <float[2] W = {1, 2}> { y = Mul(x, W) }";

std::string AdamAlgorithm(int t) {
  return R"(a () => (float[2] n, float[2] V1, float[2] H1)
            <float R = {0.5}, int64 T = {)" +
         std::to_string(t) + R"(}, float[2] V = {0, 0}, float[2] H = {0, 0}> {
              n, V1, H1 = ai.onnx.preview.training.Adam <epsilon = 0.0> (R, T, W, x, V, H)
            })";
}

TEST(TrainingInfo, AdamStartsAtOne) {
  // With T = 0 the first move is R*(1-alpha)/sqrt(1-beta) = 3.16*R, with T = 1 it is R.
  const double uncorrected = 0.5 * (1 - 0.9f) / std::sqrt(1 - static_cast<double>(0.999f));
  for (const auto& [t, move] : {std::pair{0, uncorrected}, std::pair{1, 0.5}}) {
    auto model = Open(TextModel(kScale, {{AdamAlgorithm(t), {{"W", "n"}}}}));
    ASSERT_TRUE(model->Step({{"x", Floats({2, -3})}}).ok());
    EXPECT_NEAR(ValueOf(*model, "W")[0], 1 - move, 1e-6);
    EXPECT_NEAR(ValueOf(*model, "W")[1], 2 + move, 1e-6);
  }
  AuthorOptions options;
  options.loss = {"mse", {}};
  options.optimizer = {"adam", {}};
  auto made = MakeTrainable(TextModel(kScale), options, DefaultEnvironment());
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(ValueOf(*Open(made->model), "onward_step"), ElementsAre(1));
}

TEST(TrainingInfo, RefusesUnknownMomentumMode) {
  auto algorithm = [](const std::string& mode) {
    return R"(a () => (float[2] n, float[2] V1) <float R = {0.5}, int64 T = {1}, float[2] V = {0, 0}> {
                n, V1 = ai.onnx.preview.training.Momentum
                  <alpha = 0.9, beta = 1.0, norm_coefficient = 0.0, mode = ")" +
           mode + R"("> (R, T, W, x, V)
              })";
  };
  for (const char* mode : {"standard", "nesterov"}) {
    auto model = Open(TextModel(kScale, {{algorithm(mode), {{"W", "n"}}}}));
    EXPECT_TRUE(model->Step({{"x", Floats({1, 1})}}).ok()) << mode;
  }
  auto model = TrainingModel::Create(TextModel(kScale, {{algorithm("heavy_ball"), {{"W", "n"}}}}),
                                     DefaultEnvironment());
  const absl::Status status =
      model.ok() ? (*model)->Step({{"x", Floats({1, 1})}}).status() : model.status();
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("mode is 'heavy_ball', expected one of standard, nesterov"));
}

// W becomes what the node draws.
Model RandomModel(const std::string& attributes) {
  return TextModel(
      "m (float[1] x) => (float[1] y) <float[4] W = {0, 0, 0, 0}> { s = ReduceSum(W) y = Add(x, s) "
      "}",
      {{"a () => (float[4] n, float[4] k) { n = RandomUniform <shape = [4]" + attributes +
            "> () k = RandomUniform <shape = [4]" + attributes + "> () }",
        {{"W", "n"}}}});
}

std::vector<double> Draw(TrainingModel* model, bool alone = false) {
  const TensorMap feeds = {{"x", Floats({0})}};
  auto out = alone ? model->StepEntry(0, feeds) : model->Step(feeds);
  EXPECT_TRUE(out.ok()) << out.status();
  return ValueOf(*model, "W");
}

TEST(TrainingInfo, RandomDrawsDifferByStep) {
  for (const char* attributes : {"", ", seed = 42.0"}) {
    auto model = Open(RandomModel(attributes));
    auto again = Open(RandomModel(attributes));
    const std::vector<double> first = Draw(model.get()), second = Draw(model.get());
    EXPECT_NE(first, second) << attributes;
    EXPECT_EQ(Draw(again.get()), first) << attributes;
    EXPECT_EQ(Draw(again.get()), second) << attributes;
    // An entry run alone is a step too.
    auto entry = Open(RandomModel(attributes));
    EXPECT_EQ(Draw(entry.get(), true), first);
    EXPECT_NE(Draw(entry.get(), true), first);
  }
  auto one = Open(RandomModel("")), other = Open(RandomModel(""));
  other->set_random({1, 0});
  EXPECT_NE(Draw(one.get()), Draw(other.get()));
  // The node counts, too.
  auto out = one->Step({{"x", Floats({0})}});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_NE(Values(out->at("n")), Values(out->at("k")));
}

TEST(TrainingInfo, DropoutResumesExactly) {
  Model file = TextModel(
      R"(m (float[2, 8] x) => (float[2, 3] y) <float[8, 3] W> { d = Dropout(x) y = MatMul(d, W) })");
  onnx::TensorProto* weight = file.proto().mutable_graph()->add_initializer();
  weight->set_name("W");
  weight->set_data_type(onnx::TensorProto::FLOAT);
  weight->add_dims(8);
  weight->add_dims(3);
  for (int i = 0; i < 24; ++i) weight->add_float_data(0.1f * static_cast<float>(i % 7) - 0.3f);
  AuthorOptions options;
  options.seed = 5;
  auto made = MakeTrainable(file, options, DefaultEnvironment());
  ASSERT_TRUE(made.ok()) << made.status();
  Tensor x(DType::kFloat, {2, 8});
  for (int i = 0; i < 16; ++i) x.data<float>()[i] = 0.25f * static_cast<float>(i) - 1;
  const TensorMap feeds = {{"x", x}, {"label", Int64s({0, 2})}};
  auto through = Open(made->model), first = Open(made->model);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(through->Step(feeds).ok());
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(first->Step(feeds).ok());
  const Model saved = Reread(*first->Export());
  EXPECT_EQ(saved.Metadata(kMetaRandomSeed), "5");
  EXPECT_EQ(saved.Metadata(kMetaRandomStep), "2");
  auto second = Open(saved);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(second->Step(feeds).ok());
  EXPECT_TRUE(SameVariables(through->variables(), second->variables()));
  // Another mask gives another result: the test would notice.
  auto shifted = Open(saved);
  shifted->set_random({5, 0});
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(shifted->Step(feeds).ok());
  EXPECT_FALSE(SameVariables(through->variables(), shifted->variables()));
}

TEST(TrainingInfo, ReadsExternalDataInAlgorithm) {
  const std::string folder = TemporaryFolder();
  const float values[2] = {30, 40};
  std::ofstream(folder + "/state.bin", std::ios::binary)
      .write(reinterpret_cast<const char*>(values), sizeof values);
  Model file = TextModel(kScale, {{"a () => (float[2] n) <float[2] S = {0, 0}> { n = Add(S, x) }",
                                   {{"S", "n"}},
                                   "i () => (float[2] w) <float[2] w = {0, 0}> {}",
                                   {{"W", "w"}}}});
  auto move_out = [](onnx::TensorProto* t) {
    t->clear_float_data();
    t->clear_raw_data();
    t->set_data_location(onnx::TensorProto::EXTERNAL);
    auto* location = t->add_external_data();
    location->set_key("location");
    location->set_value("state.bin");
  };
  move_out(file.proto().mutable_training_info(0)->mutable_algorithm()->mutable_initializer(0));
  move_out(file.proto().mutable_training_info(0)->mutable_initialization()->mutable_initializer(0));
  const std::string path = folder + "/model.onnx";
  std::ofstream(path, std::ios::binary) << Bytes(file);
  auto read = ReadModel(path);
  ASSERT_TRUE(read.ok()) << read.status();
  auto model = Open(*read);
  ASSERT_TRUE(model->Step({{"x", Floats({1, 1})}}).ok());
  EXPECT_THAT(ValueOf(*model, "S"), ElementsAre(31, 41));
  // The new values are written into the file itself.
  auto resumed = Open(Reread(*model->Export()));
  EXPECT_THAT(ValueOf(*resumed, "S"), ElementsAre(31, 41));
  ASSERT_TRUE(model->Initialize().ok());
  EXPECT_THAT(ValueOf(*model, "S"), ElementsAre(30, 40));
  EXPECT_THAT(ValueOf(*model, "W"), ElementsAre(30, 40));
}

}  // namespace onward::files_test
