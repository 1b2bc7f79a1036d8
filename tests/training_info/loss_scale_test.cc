// SPDX-License-Identifier: Apache-2.0
// A scaled loss: steps that overflow are left out and counted, and the scale finds its size.
#include "training_info/loss_scale.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/precision_network.h"
#include "tests/support/text_model.h"

namespace onward::loss_scale_test {

double Number(const TrainingModel& model, const std::string& name) {
  return ValueOf(model, name)[0];
}

class Scaling : public testing::Test {
 protected:
  static std::unique_ptr<TrainingModel> Model() {
    AuthorOptions options = InPrecision(DType::kFloat16);
    options.ema = 0.9;
    return Open(Reread(MadeSound(Convolutional(DType::kFloat), options).model));
  }
  static void Set(TrainingModel* model, const std::string& name, double value) {
    Tensor& t = model->variables().at(name);
    if (t.dtype() == DType::kFloat) {
      *t.data<float>() = static_cast<float>(value);
    } else {
      *t.data<int64_t>() = static_cast<int64_t>(value);
    }
  }
  static Variables WithoutScale(const TrainingModel& model) {
    Variables copy;
    for (const auto& [name, tensor] : model.variables()) {
      if (name != "onward_loss_scale" && name != "onward_growth_steps" &&
          name != "onward_skipped_steps") {
        copy.emplace(name, tensor.Clone());
      }
    }
    return copy;
  }
};

TEST_F(Scaling, StartsLikeGradScaler) {
  auto model = Model();
  EXPECT_EQ(Number(*model, "onward_loss_scale"), 65536);
  LossOfStep(model.get(), ConvolutionalFeeds(0));
  EXPECT_EQ(Number(*model, "onward_skipped_steps") + Number(*model, "onward_growth_steps"), 1);
}

TEST_F(Scaling, AnOverflowIsSkippedAndCounted) {
  auto model = Model();
  Set(model.get(), "onward_loss_scale", 1024);
  LossOfStep(model.get(), ConvolutionalFeeds(0));
  ASSERT_EQ(Number(*model, "onward_skipped_steps"), 0);
  Set(model.get(), "onward_loss_scale", std::ldexp(1, 100));
  for (const std::vector<std::string>& outputs : {std::vector<std::string>{"loss"}, {}}) {
    const Variables before = WithoutScale(*model);
    const double skipped = Number(*model, "onward_skipped_steps");
    const double scale = Number(*model, "onward_loss_scale");
    const uint64_t draws = model->random().step;
    auto out = model->Step(ConvolutionalFeeds(1), outputs);
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_TRUE(std::isfinite(Values(out->at("loss"))[0]));
    EXPECT_TRUE(SameVariables(before, WithoutScale(*model)));
    EXPECT_EQ(Number(*model, "onward_skipped_steps"), skipped + 1);
    EXPECT_EQ(SkippedSteps(*model), static_cast<int64_t>(skipped) + 1);
    EXPECT_EQ(LossScaleNow(*model), scale / 2);
    EXPECT_EQ(Number(*model, "onward_loss_scale"), scale / 2);
    EXPECT_EQ(Number(*model, "onward_growth_steps"), 0);
    EXPECT_EQ(model->random().step, draws + 1);
  }
}

TEST_F(Scaling, RecoversWithTheSameBytesEveryTime) {
  std::string bytes;
  for (int run = 0; run < 2; ++run) {
    auto model = Model();
    Set(model.get(), "onward_loss_scale", std::ldexp(1, 40));
    const std::vector<double> start = ValueOf(*model, "W");
    for (int i = 0; i < 40; ++i) LossOfStep(model.get(), ConvolutionalFeeds(i));
    EXPECT_GT(Number(*model, "onward_skipped_steps"), 10);
    EXPECT_GT(Number(*model, "onward_growth_steps"), 0);
    EXPECT_NE(ValueOf(*model, "W"), start);
    auto exported = model->Export();
    ASSERT_TRUE(exported.ok());
    if (run == 0) bytes = Bytes(*exported);
    EXPECT_EQ(Bytes(*exported), bytes);
  }
}

// The forward pass overflows, the loss is no number: still no error.
TEST_F(Scaling, ABatchThatOverflowsIsLeftOut) {
  auto model = Model();
  Set(model.get(), "onward_loss_scale", 1024);
  LossOfStep(model.get(), ConvolutionalFeeds(0));
  const Variables before = WithoutScale(*model);
  const double loss = LossOfStep(model.get(), ConvolutionalFeeds(1, DType::kFloat, 1e6f));
  EXPECT_FALSE(std::isfinite(loss));
  EXPECT_TRUE(SameVariables(before, WithoutScale(*model)));
  EXPECT_EQ(Number(*model, "onward_skipped_steps"), 1);
  EXPECT_TRUE(std::isfinite(LossOfStep(model.get(), ConvolutionalFeeds(2))));
  EXPECT_FALSE(SameVariables(before, WithoutScale(*model)));
}

TEST_F(Scaling, GrowsAfterManyGoodSteps) {
  auto model = Model();
  Set(model.get(), "onward_loss_scale", 1024);
  Set(model.get(), "onward_growth_steps", LossScale::kGrowthInterval - 2);
  LossOfStep(model.get(), ConvolutionalFeeds(0));
  EXPECT_EQ(Number(*model, "onward_loss_scale"), 1024);
  LossOfStep(model.get(), ConvolutionalFeeds(1));
  EXPECT_EQ(Number(*model, "onward_loss_scale"), 2048);
  EXPECT_EQ(Number(*model, "onward_growth_steps"), 0);
}

// What no scale can help is an error in the end, as it is in float.
TEST_F(Scaling, NaNInTheDataIsAnErrorAtTheSmallestScale) {
  auto model = Model();
  TensorMap bad = ConvolutionalFeeds(0);
  bad["x"].data<float>()[3] = std::numeric_limits<float>::quiet_NaN();
  int skipped = 0;
  absl::Status status;
  while (status.ok() && skipped < 100) {
    status = model->Step(bad, {"loss"}).status();
    skipped += status.ok() ? 1 : 0;
  }
  EXPECT_EQ(skipped, 30);  // from 2^16 to 2^-14
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(Number(*model, "onward_skipped_steps"), skipped);
}

// A call that overflows adds nothing to the sums and does not count as one of them.
TEST_F(Scaling, AccumulationGoesOnAfterAnOverflow) {
  AuthorOptions options = InPrecision(DType::kFloat16);
  options.accumulate = 2;
  options.clip_norm = 1;
  const class Model made = MadeSound(Convolutional(DType::kFloat), options).model;
  auto disturbed = Open(made), undisturbed = Open(made);
  for (auto* model : {disturbed.get(), undisturbed.get()}) {
    Set(model, "onward_loss_scale", 1024);
    LossOfStep(model, ConvolutionalFeeds(0));
  }
  const double scale = Number(*disturbed, "onward_loss_scale");
  LossOfStep(disturbed.get(), ConvolutionalFeeds(7, DType::kFloat, 1e6f));
  EXPECT_EQ(Number(*disturbed, "onward_skipped_steps"), 1);
  EXPECT_EQ(Number(*disturbed, "onward_accumulated"), 1);
  EXPECT_TRUE(SameVariables(WithoutScale(*disturbed), WithoutScale(*undisturbed)));
  Set(disturbed.get(), "onward_loss_scale", scale);
  for (auto* model : {disturbed.get(), undisturbed.get()}) LossOfStep(model, ConvolutionalFeeds(1));
  EXPECT_EQ(Number(*disturbed, "onward_accumulated"), 0);
  EXPECT_TRUE(SameVariables(WithoutScale(*disturbed), WithoutScale(*undisturbed)));
}

}  // namespace onward::loss_scale_test
