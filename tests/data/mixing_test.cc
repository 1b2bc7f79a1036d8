// SPDX-License-Identifier: Apache-2.0
#include "data/mixing.h"

#include <gmock/gmock.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "data/arrays/npy.h"
#include "data/batch.h"
#include "data/padded.h"
#include "tests/data/spec_fixture.h"

namespace onward::mixing_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;

TEST(Mixing, MixesRowsFromBothEnds) {
  Tensor t = Tensor::FromValues<float>({3, 2}, {0, 1, 5, 5, 10, 3});
  MixRows(0.75, &t);
  EXPECT_THAT(t.values<float>(), ElementsAre(2.5, 1.5, 5, 5, 7.5, 2.5));
}

TEST(Mixing, SwapsPatches) {
  Tensor planes = Tensor::FromValues<float>({2, 1, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  SwapPatches({0, 1, 2, 1}, &planes);
  EXPECT_THAT(planes.values<float>(), ElementsAre(1, 6, 3, 8, 5, 2, 7, 4));
  Tensor last = Tensor::FromValues<float>({2, 2, 1, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  SwapPatches({1, 0, 1, 1}, &last);
  EXPECT_THAT(last.values<float>(), ElementsAre(1, 2, 3, 10, 11, 12, 7, 8, 9, 4, 5, 6));
}

TEST(Mixing, BetaHasItsMeanAndSpread) {
  for (double alpha : {0.2, 1.0, 4.0}) {
    Random random(3, 1);
    double sum = 0, squares = 0;
    constexpr int kDraws = 20000;
    for (int i = 0; i < kDraws; ++i) {
      const double v = DrawBeta(alpha, random);
      ASSERT_GE(v, 0);
      ASSERT_LE(v, 1);
      sum += v;
      squares += (v - 0.5) * (v - 0.5);
    }
    const double variance = 1 / (4 * (2 * alpha + 1));
    EXPECT_NEAR(sum / kDraws, 0.5, 5 * std::sqrt(variance / kDraws)) << alpha;
    EXPECT_NEAR(squares / kDraws, variance, 0.05 * variance) << alpha;
  }
}

class MixingTest : public SpecTest {
 protected:
  // Example i is a picture of 4 x 4 times the number i, of class i.
  std::string Pictures(int64_t count) {
    Tensor x(DType::kFloat, {count, 1, 4, 4}), y(DType::kInt64, {count});
    for (int64_t i = 0; i < count; ++i) {
      std::fill_n(x.data<float>() + 16 * i, 16, static_cast<float>(i));
      y.data<int64_t>()[i] = i;
    }
    EXPECT_TRUE(WriteNpy(scratch_.Path("x.npy"), x).ok());
    EXPECT_TRUE(WriteNpy(scratch_.Path("y.npy"), y).ok());
    return absl::StrCat("npy:", scratch_.Path("x.npy"), ",", scratch_.Path("y.npy"));
  }
  std::shared_ptr<const Dataset> Soft(const std::string& spec, int64_t classes) {
    auto soft = WithSoftLabels(Open(spec), classes);
    EXPECT_TRUE(soft.ok()) << soft.status();
    return soft.ok() ? std::shared_ptr<const Dataset>(*std::move(soft)) : nullptr;
  }
};

TEST_F(MixingTest, LabelsBecomeProbabilities) {
  const auto data = Soft(Pictures(2), 3);
  EXPECT_EQ(Describe(*data), "2 examples, x float [1, 4, 4], y float [3], 3 classes");
  EXPECT_THAT(Values(Take(*data, {1, 0})[1]), ElementsAre(0, 1, 0, 1, 0, 0));
  EXPECT_TRUE(data->rows_are_independent());
  EXPECT_EQ(data->class_labels().data<int64_t>()[1], 1);
}

TEST_F(MixingTest, MixupWeighsLabelsLikeInputs) {
  const auto data = Soft(Pictures(4) + "?mixup=1", 4);
  EXPECT_FALSE(data->rows_are_independent());
  EXPECT_THAT(Values(Take(*data, {2})[1]), ElementsAre(0, 0, 1, 0));
  bool mixed = false;
  for (uint64_t key = 1; key < 9; ++key) {
    const auto batch = TakeVaried(*data, {0, 1, 2, 3}, {key, 2, 3, 4});
    const auto labels = batch[1].values<float>();
    for (int64_t i = 0; i < 4; ++i) {
      const float weight = labels[i * 4 + i];
      mixed |= weight > 0.01f && weight < 0.99f;
      EXPECT_NEAR(labels[i * 4 + (3 - i)], 1 - weight, 1e-6);
      const float expected =
          weight * static_cast<float>(i) + (1 - weight) * static_cast<float>(3 - i);
      EXPECT_NEAR(batch[0].data<float>()[16 * i], expected, 1e-5);
    }
    EXPECT_TRUE(Identical(batch[0], TakeVaried(*data, {0, 1, 2, 3}, {key, 2, 3, 4})[0]));
  }
  EXPECT_TRUE(mixed);
}

TEST_F(MixingTest, CutmixWeighsLabelsByArea) {
  const auto data = Soft(Pictures(2) + "?cutmix=1", 2);
  std::set<float> weights;
  for (uint64_t key = 1; key < 30; ++key) {
    const auto batch = TakeVaried(*data, {0, 1}, {key, 2});
    float ones = 0;
    for (int i = 0; i < 16; ++i) ones += batch[0].data<float>()[i];
    EXPECT_THAT(batch[1].values<float>(),
                ElementsAre(FloatNear(1 - ones / 16, 1e-6f), FloatNear(ones / 16, 1e-6f),
                            FloatNear(ones / 16, 1e-6f), FloatNear(1 - ones / 16, 1e-6f)));
    weights.insert(ones);
  }
  EXPECT_GT(weights.size(), 3u);
}

TEST_F(MixingTest, BatchesAreTheSameForAnyNumberOfThreads) {
  const std::string spec = Pictures(9) + "?cutmix=1&mixup=0.4";
  std::vector<std::vector<Tensor>> runs;
  for (int workers : {0, 1, 4}) {
    auto source =
        BatchSource::Create(Soft(spec, 9), {.batch_size = 4, .seed = 2, .workers = workers});
    ASSERT_TRUE(source.ok());
    auto& run = runs.emplace_back();
    for (int i = 0; i < 6; ++i) {
      Batch batch;
      ASSERT_TRUE(source->Next(&batch).ok());
      run.insert(run.end(), batch.tensors.begin(), batch.tensors.end());
    }
  }
  for (const auto& run : runs) {
    for (size_t i = 0; i < run.size(); ++i) EXPECT_TRUE(Identical(run[i], runs[0][i])) << i;
  }
}

TEST_F(MixingTest, SaysWhatCannotBeMixed) {
  Pictures(3);
  const std::string x = scratch_.Path("x.npy"), y = scratch_.Path("y.npy");
  const auto error = [&](const std::string& spec, int64_t classes = 3) {
    return std::string(WithSoftLabels(Open(spec), classes).status().message());
  };
  EXPECT_THAT(error("npy:" + x), HasSubstr("one class for each example"));
  EXPECT_THAT(error("npy:" + y + "," + y + "?mixup=1"), HasSubstr("inputs that are floats"));
  EXPECT_THAT(error("npy:" + x + "," + y + "?cutmix=1&shape=16"),
              HasSubstr("cutmix needs pictures"));
  EXPECT_THAT(ErrorOf("npy:" + x + "," + y + "?mixup=0"), HasSubstr("a number above 0"));
  std::vector<Tensor> batch;
  EXPECT_THAT(std::string(Soft("npy:" + x + "," + y, 2)->Fill({2}, &batch).message()),
              HasSubstr("label 2 is outside the 2 classes"));
}

TEST(Padded, BatchesAreAsLongAsTheyNeed) {
  const std::vector<std::vector<int64_t>> texts = {{1}, {2, 3, 4}, {5, 6, 7, 8, 9, 10, 11}};
  const auto read = [&](int64_t shift) {
    return [&, shift](int64_t i) -> absl::StatusOr<Tensor> {
      Tensor t = Tensor::FromValues<int64_t>({static_cast<int64_t>(texts[i].size())}, texts[i]);
      for (int64_t k = 0; k < t.elements(); ++k) t.data<int64_t>()[k] += shift;
      return t;
    };
  };
  const auto data =
      MakePaddedDataset({{.name = "label", .padding = -100, .is_label = true, .read = read(1)},
                         {.name = "tokens", .read = read(0)}},
                        {.source = "texts", .size = 3, .longest = 6, .multiple = 2});
  ASSERT_TRUE(data.ok()) << data.status();
  const std::vector<FieldInfo> fields = (*data)->fields();
  EXPECT_EQ(fields[0].name, "tokens");  // labels come last
  EXPECT_EQ(fields[1].shape, Shape{6});
  EXPECT_TRUE(fields[1].varies);
  std::vector<Tensor> batch;
  ASSERT_TRUE((*data)->Fill({1, 0}, &batch).ok());
  EXPECT_EQ(batch[0].shape(), (Shape{2, 4}));
  EXPECT_THAT(batch[0].values<int64_t>(), ElementsAre(2, 3, 4, 0, 1, 0, 0, 0));
  EXPECT_THAT(batch[1].values<int64_t>(), ElementsAre(3, 4, 5, -100, 2, -100, -100, -100));
  ASSERT_TRUE((*data)->Fill({2}, &batch).ok());
  EXPECT_THAT(batch[0].values<int64_t>(), ElementsAre(5, 6, 7, 8, 9, 10));  // cut
  EXPECT_FALSE((*data)->Fill({3}, &batch).ok());
}

TEST(Padded, NamesFieldsThatDisagree) {
  const auto of = [](int64_t length) {
    return [length](int64_t) -> absl::StatusOr<Tensor> {
      return Tensor::Zeros(DType::kInt64, {length});
    };
  };
  const auto data = MakePaddedDataset({{.name = "a", .read = of(2)}, {.name = "b", .read = of(3)}},
                                      {.source = "texts", .size = 1, .longest = 6});
  std::vector<Tensor> batch;
  EXPECT_THAT(
      std::string((*data)->Fill({0}, &batch).message()),
      AllOf(HasSubstr("example 0 of texts"), HasSubstr("'b' is int64 [3], expected int64 [2]")));
  EXPECT_FALSE(MakePaddedDataset({}, {.source = "t", .size = 1, .longest = 1}).ok());
}

}  // namespace onward::mixing_test
