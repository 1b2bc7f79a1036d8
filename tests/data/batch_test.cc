// SPDX-License-Identifier: Apache-2.0
#include "data/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace onward {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Example i is the number i.
class Counting : public Dataset {
 public:
  explicit Counting(int64_t size) : size_(size) {}
  int64_t size() const override { return size_; }
  std::vector<FieldInfo> fields() const override { return {{"x", DType::kInt64, {}, false}}; }
  absl::Status Fill(absl::Span<const int64_t> indices, std::vector<Tensor>* batch) const override {
    *batch = {Tensor::FromValues<int64_t>({static_cast<int64_t>(indices.size())}, indices)};
    return absl::OkStatus();
  }
  int64_t classes() const override { return 0; }
  std::vector<std::string> class_names() const override { return {}; }

 private:
  int64_t size_;
};

BatchSource Source(int64_t size, BatchOptions options) {
  auto source = BatchSource::Create(std::make_shared<Counting>(size), options);
  EXPECT_TRUE(source.ok()) << source.status();
  return *std::move(source);
}

std::vector<int64_t> Take(BatchSource* source) {
  Batch batch;
  EXPECT_TRUE(source->Next(&batch).ok());
  const auto values = batch.tensors[0].values<int64_t>();
  EXPECT_EQ(batch.indices, std::vector<int64_t>(values.begin(), values.end()));
  return batch.indices;
}

// Checkpoints rely on this order: it must never change.
TEST(Permutation, IsTheSameForever) {
  EXPECT_THAT(Permutation(10, 0, 0), ElementsAre(1, 3, 9, 2, 4, 5, 7, 6, 0, 8));
  EXPECT_THAT(Permutation(10, 42, 7), ElementsAre(0, 6, 4, 2, 7, 5, 8, 3, 9, 1));
}

TEST(Permutation, HoldsEveryNumberOnce) {
  for (int64_t n : {0, 1, 2, 3, 1000}) {
    std::vector<int64_t> order = Permutation(n, 3, 1);
    std::sort(order.begin(), order.end());
    std::vector<int64_t> all(n);
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(order, all);
  }
}

TEST(Permutation, DependsOnSeedAndEpoch) {
  EXPECT_NE(Permutation(100, 1, 0), Permutation(100, 2, 0));
  EXPECT_NE(Permutation(100, 1, 0), Permutation(100, 1, 1));
  // Not a function of their sum or exclusive or.
  EXPECT_NE(Permutation(100, 1, 2), Permutation(100, 2, 1));
}

TEST(Permutation, IsUniform) {
  // Each of the 6 orders of 3 about 1000 times in 6000: 5 sigma is 145.
  std::map<std::vector<int64_t>, int> counts;
  for (int64_t epoch = 0; epoch < 6000; ++epoch) ++counts[Permutation(3, 9, epoch)];
  EXPECT_EQ(counts.size(), 6u);
  for (const auto& [order, count] : counts) EXPECT_NEAR(count, 1000, 145);
}

TEST(BatchSource, TakesEveryExampleOncePerEpoch) {
  BatchSource source = Source(12, {.batch_size = 4, .seed = 5});
  EXPECT_EQ(source.batches_per_epoch(), 3);
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    std::set<int64_t> seen;
    for (int i = 0; i < 3; ++i) {
      Batch batch;
      ASSERT_TRUE(source.Next(&batch).ok());
      EXPECT_EQ(batch.position, (BatchPosition{epoch, 4 * i}));
      EXPECT_EQ(batch.last_of_epoch, i == 2);
      seen.insert(batch.indices.begin(), batch.indices.end());
    }
    EXPECT_EQ(seen.size(), 12u);
  }
}

TEST(BatchSource, DropsAShortLastBatchInTraining) {
  BatchSource source = Source(10, {.batch_size = 4, .seed = 5});
  EXPECT_EQ(source.batches_per_epoch(), 2);
  Take(&source);
  Take(&source);
  EXPECT_EQ(source.position(), (BatchPosition{1, 0}));
}

TEST(BatchSource, KeepsAShortLastBatchInEvaluation) {
  BatchSource source = Source(10, {.batch_size = 4, .shuffle = false, .drop_last = false});
  EXPECT_EQ(source.batches_per_epoch(), 3);
  EXPECT_THAT(Take(&source), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Take(&source), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(Take(&source), ElementsAre(8, 9));
  EXPECT_THAT(Take(&source), ElementsAre(0, 1, 2, 3));
}

TEST(BatchSource, ContinuesWhereItWas) {
  const BatchOptions options = {.batch_size = 3, .seed = 11};
  BatchSource whole = Source(20, options);
  std::vector<BatchPosition> positions;
  std::vector<std::vector<int64_t>> batches;
  for (int i = 0; i < 15; ++i) {
    positions.push_back(whole.position());
    batches.push_back(Take(&whole));
  }
  for (size_t i = 0; i < positions.size(); ++i) {
    BatchSource resumed = Source(20, options);
    ASSERT_TRUE(resumed.SetPosition(positions[i]).ok());
    for (size_t k = i; k < batches.size(); ++k) EXPECT_EQ(Take(&resumed), batches[k]);
  }
}

TEST(BatchSource, RefusesWhatCannotWork) {
  const auto data = std::make_shared<Counting>(5);
  EXPECT_THAT(std::string(BatchSource::Create(data, {.batch_size = 8}).status().message()),
              HasSubstr("has 5 examples, fewer than one batch of 8"));
  EXPECT_TRUE(BatchSource::Create(data, {.batch_size = 8, .drop_last = false}).ok());
  EXPECT_FALSE(BatchSource::Create(data, {.batch_size = 0}).ok());
  EXPECT_FALSE(BatchSource::Create(std::make_shared<Counting>(0), {.drop_last = false}).ok());
  BatchSource source = Source(5, {.batch_size = 2});
  EXPECT_FALSE(source.SetPosition({0, 6}).ok());
  EXPECT_FALSE(source.SetPosition({-1, 0}).ok());
  // A position from a larger batch size may leave less than one batch.
  EXPECT_TRUE(source.SetPosition({0, 4}).ok());
  EXPECT_EQ(source.position(), (BatchPosition{1, 0}));
}

}  // namespace
}  // namespace onward
