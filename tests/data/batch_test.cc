// SPDX-License-Identifier: Apache-2.0
#include "data/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <set>

#include "absl/strings/str_cat.h"
#include "data/random.h"

namespace onward::batch_test {

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

// Example i is two floats, i and its key's last bits; some examples cannot be read.
class Slow : public Dataset {
 public:
  explicit Slow(int64_t size) : size_(size) {}
  int64_t size() const override { return size_; }
  std::vector<FieldInfo> fields() const override {
    return {{"x", DType::kFloat, {2}, false}, {"name", DType::kString, {}, false}};
  }
  absl::Status Fill(absl::Span<const int64_t> indices, std::vector<Tensor>* batch) const override {
    return FillVaried(indices, {}, batch);
  }
  absl::Status FillVaried(absl::Span<const int64_t> indices, absl::Span<const uint64_t> keys,
                          std::vector<Tensor>* batch) const override {
    ++fills_;
    const auto count = static_cast<int64_t>(indices.size());
    batch->resize(2);
    for (size_t k = 0; k < 2; ++k) {
      const Shape shape = k == 0 ? Shape{count, 2} : Shape{count};
      Tensor& t = (*batch)[k];
      if (t.shape() != shape) t = Tensor(k == 0 ? DType::kFloat : DType::kString, shape);
    }
    for (int64_t i = 0; i < count; ++i) {
      if (broken_ >= 0 && indices[i] >= broken_ && indices[i] < broken_ + 3) {
        return absl::DataLossError(absl::StrCat("example ", indices[i], " is broken"));
      }
      (*batch)[0].data<float>()[2 * i] = static_cast<float>(indices[i]);
      (*batch)[0].data<float>()[2 * i + 1] =
          keys.empty() ? -1.0f : static_cast<float>(keys[i] & 0xffff);
      (*batch)[1].data<std::string>()[i] = absl::StrCat("example number ", indices[i]);
    }
    return absl::OkStatus();
  }
  bool reads_slowly() const override { return true; }
  bool rows_are_independent() const override { return independent_; }
  int64_t classes() const override { return 0; }
  std::vector<std::string> class_names() const override { return {}; }
  int fills() const { return fills_; }

  bool independent_ = true;
  int64_t broken_ = -1;  // this one and the two after it

 private:
  int64_t size_;
  mutable std::atomic<int> fills_{0};
};

struct Taken {
  std::vector<float> values;
  std::vector<std::string> names;
  BatchPosition position, next;
  bool last = false;
  friend bool operator==(const Taken&, const Taken&) = default;
};

Taken TakeAll(BatchSource* source, Batch* batch) {
  const absl::Status status = source->Next(batch);
  EXPECT_TRUE(status.ok()) << status;
  const auto values = batch->tensors[0].values<float>();
  const auto names = batch->tensors[1].values<std::string>();
  return {{values.begin(), values.end()},
          {names.begin(), names.end()},
          batch->position,
          source->position(),
          batch->last_of_epoch};
}

TEST(Prefetch, ThreadsChangeNothing) {
  for (bool independent : {true, false}) {
    std::vector<std::vector<Taken>> runs;
    for (int workers : {0, 1, 3, 8}) {
      auto data = std::make_shared<Slow>(23);
      data->independent_ = independent;
      auto source = BatchSource::Create(
          data, {.batch_size = 5, .seed = 3, .drop_last = false, .workers = workers});
      ASSERT_TRUE(source.ok());
      Batch batch;
      auto& run = runs.emplace_back();
      for (int i = 0; i < 12; ++i) run.push_back(TakeAll(&*source, &batch));
    }
    for (const auto& run : runs) EXPECT_EQ(run, runs[0]);
  }
}

TEST(Prefetch, ContinuesAtAnyPosition) {
  const BatchOptions options{.batch_size = 4, .seed = 8, .workers = 3};
  auto source = BatchSource::Create(std::make_shared<Slow>(18), options);
  ASSERT_TRUE(source.ok());
  Batch batch;
  std::vector<BatchPosition> positions;
  std::vector<Taken> taken;
  for (int i = 0; i < 11; ++i) {
    positions.push_back(source->position());
    taken.push_back(TakeAll(&*source, &batch));
  }
  for (size_t i = 0; i < positions.size(); i += 3) {  // backwards too, with batches ordered
    ASSERT_TRUE(source->SetPosition(positions[i]).ok());
    EXPECT_EQ(source->position(), positions[i]);
    for (size_t k = i; k < std::min(i + 2, taken.size()); ++k) {
      EXPECT_EQ(TakeAll(&*source, &batch), taken[k]);
    }
  }
}

TEST(Prefetch, ErrorsBelongToTheirBatch) {
  for (int workers : {0, 4}) {
    auto data = std::make_shared<Slow>(20);
    data->broken_ = 11;
    auto source = BatchSource::Create(
        data, {.batch_size = 5, .shuffle = false, .drop_last = false, .workers = workers});
    ASSERT_TRUE(source.ok());
    Batch batch;
    TakeAll(&*source, &batch);
    TakeAll(&*source, &batch);
    for (int i = 0; i < 2; ++i) {  // again and again, and always the first of them
      EXPECT_EQ(source->Next(&batch).message(), "example 11 is broken") << workers;
      EXPECT_EQ(source->position(), (BatchPosition{0, 10}));
    }
    ASSERT_TRUE(source->SetPosition({0, 15}).ok());
    EXPECT_EQ(TakeAll(&*source, &batch).values[0], 15.0f);
  }
}

TEST(Prefetch, EndsCleanlyWhateverIsUnderWay) {
  for (int taken = 0; taken < 4; ++taken) {
    for (int i = 0; i < 20; ++i) {
      auto source = BatchSource::Create(std::make_shared<Slow>(64),
                                        {.batch_size = 16, .seed = 1, .workers = 4});
      ASSERT_TRUE(source.ok());
      Batch batch;
      for (int k = 0; k < taken; ++k) TakeAll(&*source, &batch);
      BatchSource moved = *std::move(source);
      if (taken > 0) TakeAll(&moved, &batch);
    }
  }
}

TEST(Prefetch, ReadsAheadAndReusesMemory) {
  auto data = std::make_shared<Slow>(64);
  auto source = BatchSource::Create(data, {.batch_size = 8, .seed = 1, .workers = 1});
  ASSERT_TRUE(source.ok());
  EXPECT_EQ(data->fills(), 0);  // nothing before the first batch
  Batch batch;
  std::set<const void*> memory;
  for (int i = 0; i < 20; ++i) {
    TakeAll(&*source, &batch);
    memory.insert(batch.tensors[0].raw());
  }
  EXPECT_LE(memory.size(), 3u);
}

TEST(Prefetch, EvaluationHasNoVariations) {
  for (int workers : {0, 2}) {
    auto source =
        BatchSource::Create(std::make_shared<Slow>(8),
                            {.batch_size = 8, .shuffle = false, .vary = false, .workers = workers});
    ASSERT_TRUE(source.ok());
    Batch batch;
    EXPECT_EQ(TakeAll(&*source, &batch).values[1], -1.0f);
  }
}

// Checkpoints rely on it, like the order.
TEST(ExampleKey, IsTheSameForever) {
  EXPECT_EQ(ExampleKey(0, 0, 0, 0), 2391539541053276776u);
  EXPECT_EQ(ExampleKey(1, 2, 3, 0), 1321962074176129191u);
  EXPECT_NE(ExampleKey(1, 2, 3, 0), ExampleKey(2, 1, 3, 0));
  EXPECT_NE(ExampleKey(1, 2, 3, 0), ExampleKey(1, 3, 2, 0));
  EXPECT_NE(ExampleKey(1, 2, 3, 0), ExampleKey(1, 2, 3, 1));
}

}  // namespace onward::batch_test
