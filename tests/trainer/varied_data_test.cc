// SPDX-License-Identifier: Apache-2.0
// Data whose labels are mixed, whose pictures vary or whose sequences differ in length, on its
// way to a model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "data/arrays/npy.h"
#include "data/batch.h"
#include "data/padded.h"
#include "data/pictures/augment.h"
#include "data/pictures/picture.h"
#include "tests/support/scratch.h"
#include "trainer/report/page/augmentation_grid.h"
#include "trainer/run/class_labels.h"
#include "trainer/run/feeding.h"
#include "trainer/run/judging.h"

namespace onward::varied_data_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class VariedDataTest : public ::testing::Test {
 protected:
  std::shared_ptr<const Dataset> Open(const std::string& spec) {
    auto data = ParseDataSpec(spec, Split::kTrain);
    EXPECT_TRUE(data.ok()) << data.status();
    return data.ok() ? std::shared_ptr<const Dataset>(*std::move(data)) : nullptr;
  }
  std::string Words(std::initializer_list<std::string> labels) {
    const auto count = static_cast<int64_t>(labels.size());
    EXPECT_TRUE(WriteNpy(scratch_.Path("x.npy"), Tensor::Zeros(DType::kFloat, {count, 2})).ok());
    EXPECT_TRUE(
        WriteNpy(scratch_.Path("y.npy"), Tensor::FromValues<std::string>({count}, labels)).ok());
    return absl::StrCat("npy:", scratch_.Path("x.npy"), ",", scratch_.Path("y.npy"));
  }

  Scratch scratch_;
};

TEST_F(VariedDataTest, ProbabilitiesStandWhereTheModelHasTheClass) {
  const auto aligned = AlignClasses(
      Open(Words({"cat", "dog"})),
      {.names = {"dog", "fish", "cat"}, .output = "scores", .outputs = 3, .probabilities = true});
  ASSERT_TRUE(aligned.ok()) << aligned.status();
  std::vector<Tensor> batch;
  ASSERT_TRUE(aligned->data->Fill({0, 1}, &batch).ok());
  EXPECT_THAT(batch[1].values<float>(), ElementsAre(0, 0, 1, 1, 0, 0));
}

TEST_F(VariedDataTest, MixingNeedsALossThatTakesProbabilities) {
  const auto data = Open(Words({"cat", "dog"}) + "?mixup=0.2");
  EXPECT_THAT(std::string(BatchSource::Create(data, {.batch_size = 2}).status().message()),
              HasSubstr("--loss cross_entropy:soft_labels=1"));
  EXPECT_TRUE(BatchSource::Create(data, {.batch_size = 2, .vary = false}).ok());
  // Numbers have no classes to mix.
  const std::string x = scratch_.Path("x.npy");
  EXPECT_FALSE(
      BatchSource::Create(Open("npy:" + x + "," + x + "?mixup=0.2"), {.batch_size = 2}).ok());
  const auto aligned = AlignClasses(data, {.outputs = 2, .probabilities = true});
  ASSERT_TRUE(aligned.ok()) << aligned.status();
  EXPECT_TRUE(BatchSource::Create(aligned->data, {.batch_size = 2}).ok());
}

TEST(SoftLabels, AreJudgedByTheLikeliestClass) {
  const LossSpec soft = *ParseLoss("cross_entropy:soft_labels=1");
  EXPECT_TRUE(JudgesClasses(soft));
  EXPECT_TRUE(TakesProbabilities(soft));
  EXPECT_FALSE(TakesProbabilities(*ParseLoss("cross_entropy")));
  const Tensor labels = Tensor::FromValues<float>({3, 2}, {0.3f, 0.7f, 0.6f, 0.4f, 0, 0});
  const auto classes = ClassLabels(labels, ScoringOf(soft));
  ASSERT_TRUE(classes.ok()) << classes.status();
  EXPECT_THAT(classes->values<int64_t>(), ElementsAre(1, 0, -1));
}

TEST_F(VariedDataTest, TheGridShowsWhatTrainingTakes) {
  for (int i = 0; i < 3; ++i) {
    const auto shade = static_cast<uint8_t>(60 * i);
    scratch_.Write(absl::StrCat("p/a/", i, ".png"),
                   *EncodePng({{1, 2, 1}, {shade, static_cast<uint8_t>(shade + 50)}}));
  }
  const auto data = Open("images:" + scratch_.Path("p") + "?augment=flip");
  const auto grid = AugmentationGrid(*data, 4, /*examples=*/2, /*epochs=*/3);
  EXPECT_TRUE(ShownAugmentation(*data, 4).has_value());
  ASSERT_TRUE(grid.ok()) << grid.status();
  EXPECT_EQ(grid->info.height, 1 + 2 + 1);
  EXPECT_EQ(grid->info.width, 4 * 2 + 3 * 2);
  // The second example, then what the first three epochs of a run with this seed make of it.
  auto source = BatchSource::Create(data, {.batch_size = 3, .seed = 4});
  ASSERT_TRUE(source.ok());
  const uint8_t* row = grid->pixels.data() + 3 * grid->info.width;
  EXPECT_EQ(row[0], 60);
  for (int epoch = 0; epoch < 3; ++epoch) {
    Batch batch;
    ASSERT_TRUE(source->Next(&batch).ok());
    for (size_t i = 0; i < 3; ++i) {
      if (batch.indices[i] != 1) continue;
      EXPECT_EQ(row[4 * (epoch + 1)], std::lround(255 * batch.tensors[0].data<float>()[2 * i]));
    }
  }
  EXPECT_FALSE(ShownAugmentation(*Open(Words({"a"})), 1).has_value());
  EXPECT_THAT(std::string(AugmentationGrid(*Open(Words({"a"})), 1, 1, 1).status().message()),
              HasSubstr("no input is a picture"));
}

TEST(VaryingLength, BatchesAreFedAsLongAsTheyAre) {
  const auto data = MakePaddedDataset({{.name = "tokens",
                                        .read = [](int64_t i) -> absl::StatusOr<Tensor> {
                                          return Tensor::Zeros(DType::kInt64, {3 * i + 1});
                                        }}},
                                      {.source = "texts", .size = 3, .longest = 32, .multiple = 4});
  ASSERT_TRUE(data.ok()) << data.status();
  const ValueType tokens{ValueType::Kind::kTensor, DType::kInt32, true, {{-1, "N"}, {-1, "S"}}};
  const std::vector<NamedType> inputs = {{"ids", tokens}};
  const auto feeding = Feeding::Create(**data, inputs, "");
  ASSERT_TRUE(feeding.ok()) << feeding.status();
  std::vector<Tensor> batch;
  for (const auto& [example, length] : {std::pair<int64_t, int64_t>{0, 4}, {2, 8}}) {
    ASSERT_TRUE((*data)->Fill({example}, &batch).ok());
    const auto feeds = feeding->Feeds(batch);
    ASSERT_TRUE(feeds.ok()) << feeds.status();
    EXPECT_EQ(feeds->at("ids").shape(), (Shape{1, length}));
    EXPECT_EQ(feeds->at("ids").dtype(), DType::kInt32);
  }
}

}  // namespace onward::varied_data_test
