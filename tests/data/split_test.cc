// SPDX-License-Identifier: Apache-2.0
#include "data/split.h"

#include <gmock/gmock.h>

#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "data/arrays/npy.h"
#include "data/batch.h"
#include "tests/data/spec_fixture.h"

namespace onward::split_test {

using ::testing::AllOf;
using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;

class SplitTest : public SpecTest {
 protected:
  // Example i is the number i; its class is labels[i].
  std::string Labelled(const std::vector<int64_t>& labels) {
    Tensor x(DType::kFloat, {static_cast<int64_t>(labels.size()), 1});
    for (size_t i = 0; i < labels.size(); ++i) x.data<float>()[i] = static_cast<float>(i);
    EXPECT_TRUE(WriteNpy(scratch_.Path("x.npy"), x).ok());
    EXPECT_TRUE(WriteNpy(scratch_.Path("y.npy"),
                         Tensor::FromValues<int64_t>({static_cast<int64_t>(labels.size())}, labels))
                    .ok());
    return absl::StrCat("npy:", scratch_.Path("x.npy"), ",", scratch_.Path("y.npy"));
  }
  std::vector<double> All(const Dataset& data) {
    std::vector<int64_t> indices(data.size());
    for (int64_t i = 0; i < data.size(); ++i) indices[i] = i;
    return Values(Take(data, indices)[0]);
  }
};

std::vector<int64_t> Repeated(std::initializer_list<std::pair<int64_t, int>> classes) {
  std::vector<int64_t> labels;
  for (const auto& [label, times] : classes) labels.insert(labels.end(), times, label);
  return labels;
}

TEST_F(SplitTest, TakesTheSameShareOfEveryClass) {
  const std::string spec = Labelled(Repeated({{0, 50}, {1, 30}, {2, 20}}));
  const auto train = Open(spec + "?split=0.8");
  const auto rest = Open(spec + "?split=0.8", Split::kTest);
  EXPECT_THAT(ClassCounts(*train), ElementsAre(40, 24, 16));
  EXPECT_THAT(ClassCounts(*rest), ElementsAre(10, 6, 4));
  std::set<double> seen;
  for (const Dataset* part : {train.get(), rest.get()}) {
    const std::vector<double> values = All(*part);
    EXPECT_TRUE(std::is_sorted(values.begin(), values.end()));
    seen.insert(values.begin(), values.end());
  }
  EXPECT_EQ(seen.size(), 100u);
  // A label and its example stay together.
  EXPECT_EQ(train->class_labels().data<int64_t>()[45], Values(Take(*train, {45})[1])[0]);
  EXPECT_EQ(rest->place(0), Open(spec)->place(static_cast<int64_t>(All(*rest)[0])));
}

TEST_F(SplitTest, IsAFunctionOfTheSeed) {
  const std::string spec = Labelled(Repeated({{0, 40}, {1, 40}}));
  EXPECT_EQ(All(*Open(spec + "?split=0.5")), All(*Open(spec + "?split=0.5")));
  EXPECT_NE(All(*Open(spec + "?split=0.5")), All(*Open(spec + "?split=0.5&split_seed=1")));
  EXPECT_EQ(All(*Open(spec + "?part=rest&split=0.5")),
            All(*Open(spec + "?split=0.5", Split::kTest)));
  EXPECT_EQ(All(*Open(spec + "?split=0.5&part=train", Split::kTest)),
            All(*Open(spec + "?split=0.5")));
}

TEST_F(SplitTest, WorksWithoutClasses) {
  ASSERT_TRUE(WriteNpy(scratch_.Path("x.npy"), Tensor::Zeros(DType::kFloat, {10, 3})).ok());
  const std::string spec = "npy:" + scratch_.Path("x.npy");
  EXPECT_EQ(Open(spec + "?split=0.75")->size(), 8);
  EXPECT_EQ(Open(spec + "?split=0.75", Split::kTest)->size(), 2);
  EXPECT_THAT(ErrorOf(spec + "?split=0.75&limit=1"), HasSubstr("leaves a part empty"));
  EXPECT_THAT(ErrorOf(spec + "?split=1"), HasSubstr("share between 0 and 1"));
  EXPECT_THAT(ErrorOf(spec + "?part=rest"), HasSubstr("needs split=SHARE"));
  EXPECT_TRUE(IsSplitSpec(spec + "?split=0.75"));
  EXPECT_FALSE(IsSplitSpec(spec));
  EXPECT_FALSE(IsSplitSpec("mnist:d?split=train"));
}

// Whole numbers cannot be exact for classes of one and two, but the total is.
TEST_F(SplitTest, RoundsToTheShareOfAll) {
  const std::string spec = Labelled(Repeated({{0, 1}, {1, 2}, {2, 3}, {3, 4}}));
  EXPECT_EQ(Open(spec + "?split=0.6")->size(), 6);
  EXPECT_EQ(Open(spec + "?split=0.6", Split::kTest)->size(), 4);
}

TEST_F(SplitTest, FoldsDivideEveryClass) {
  const std::string spec = Labelled(Repeated({{0, 13}, {1, 7}, {2, 4}}));
  std::multiset<double> judged;
  for (int fold = 1; fold <= 4; ++fold) {
    const std::string folded = absl::StrCat(spec, "?fold=", fold, "/4");
    const auto train = Open(folded), rest = Open(folded, Split::kTest);
    EXPECT_EQ(train->size(), 18);
    EXPECT_EQ(rest->size(), 6);
    const std::vector<int64_t> counts = ClassCounts(*rest);
    EXPECT_THAT(counts, ElementsAre(AllOf(Ge(3), Le(4)), AllOf(Ge(1), Le(2)), 1));
    for (double example : All(*rest)) judged.insert(example);
    std::set<double> both;
    for (const Dataset* part : {train.get(), rest.get()}) {
      for (double example : All(*part)) both.insert(example);
    }
    EXPECT_EQ(both.size(), 24u);
  }
  EXPECT_EQ(judged.size(), 24u);
  EXPECT_EQ(std::set<double>(judged.begin(), judged.end()).size(), 24u);
  EXPECT_NE(All(*Open(spec + "?fold=1/4&part=rest")),
            All(*Open(spec + "?fold=1/4&part=rest&split_seed=1")));
  EXPECT_TRUE(IsSplitSpec(spec + "?fold=1/4"));
  for (const char* wrong : {"0/4", "5/4", "1/1", "1", "a/b", "1/2/3"}) {
    EXPECT_THAT(ErrorOf(absl::StrCat(spec, "?fold=", wrong)), HasSubstr("which of how many"));
  }
  EXPECT_THAT(ErrorOf(spec + "?fold=1/25"), HasSubstr("leaves a part empty"));
  EXPECT_THAT(ErrorOf(spec + "?fold=1/4&split=0.5"), HasSubstr("choose one"));
}

TEST_F(SplitTest, ClassWeightsMakeClassesCountTheSame) {
  const auto data = Open(Labelled(Repeated({{0, 6}, {1, 3}, {3, 1}})));
  EXPECT_THAT(*ClassWeights(*data),
              ElementsAre(DoubleEq(10.0 / 18), DoubleEq(10.0 / 9), 0, DoubleEq(10.0 / 3)));
  ASSERT_TRUE(WriteNpy(scratch_.Path("x.npy"), Tensor::Zeros(DType::kFloat, {10, 3})).ok());
  EXPECT_THAT(std::string(ClassWeights(*Open("npy:" + scratch_.Path("x.npy"))).status().message()),
              HasSubstr("one class for each example"));
}

TEST(BalancedOrder, TakesClassesEquallyOften) {
  const std::vector<int64_t> labels = Repeated({{0, 90}, {1, 9}, {4, 2}, {-1, 1}});
  for (int64_t epoch = 0; epoch < 20; ++epoch) {
    const std::vector<int64_t> order = BalancedOrder(labels, 5, epoch);
    ASSERT_EQ(order.size(), labels.size());
    std::map<int64_t, int> counts;
    std::map<int64_t, int> taken;
    for (int64_t example : order) {
      ++counts[labels[example]];
      ++taken[example];
    }
    EXPECT_EQ(counts.size(), 3u);
    EXPECT_FALSE(counts.contains(-1));
    for (const auto& [label, count] : counts) {
      EXPECT_EQ(count, 34) << label;  // 102 = 3 * 34
    }
    // Every example of a rare class before one comes again.
    EXPECT_EQ(taken[99], 17);
    EXPECT_EQ(taken[100], 17);
    for (int64_t example = 90; example < 99; ++example) {
      EXPECT_GE(taken[example], 3);
      EXPECT_LE(taken[example], 4);
    }
    EXPECT_EQ(order, BalancedOrder(labels, 5, epoch));
    EXPECT_NE(order, BalancedOrder(labels, 5, epoch + 1));
  }
}

TEST_F(SplitTest, BatchesCanBeBalanced) {
  const std::string spec = Labelled(Repeated({{0, 18}, {1, 2}}));
  const std::shared_ptr<const Dataset> data = Open(spec + "?balance=1");
  auto source = BatchSource::Create(data, {.batch_size = 20, .seed = 3});
  ASSERT_TRUE(source.ok()) << source.status();
  Batch batch;
  ASSERT_TRUE(source->Next(&batch).ok());
  double ones = 0;
  for (double label : Values(batch.tensors[1])) ones += label;
  EXPECT_EQ(ones, 10);
  EXPECT_EQ(source->position(), (BatchPosition{1, 0}));
  const std::shared_ptr<const Dataset> plain = Open("npy:" + scratch_.Path("x.npy"));
  EXPECT_THAT(
      std::string(
          BatchSource::Create(plain, {.batch_size = 2, .balance = true}).status().message()),
      HasSubstr("one class for each example"));
  EXPECT_THAT(
      std::string(
          BatchSource::Create(data, {.batch_size = 2, .shuffle = false}).status().message()),
      HasSubstr("random order"));
}

}  // namespace onward::split_test
