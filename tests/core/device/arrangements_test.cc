// SPDX-License-Identifier: Apache-2.0
#include "core/device/arrangements.h"

#include <gtest/gtest.h>

namespace onward::arrangements_test {

using Numbers = std::vector<float>;

class ArrangementsTest : public testing::Test {
 protected:
  std::shared_ptr<const Numbers> Turned(const Tensor& constant, const std::string& form) {
    const Tensor* one = &constant;
    return arrangements_.Get<Numbers>({&one, 1}, form, [&] {
      ++made_;
      return Numbers(constant.data<float>(), constant.data<float>() + constant.elements());
    });
  }

  Arrangements arrangements_;
  int made_ = 0;
};

TEST_F(ArrangementsTest, IsMadeOnceForAConstantAndAForm) {
  const Tensor a = Tensor::FromValues<float>({2}, {1, 2}), b = a.Clone();
  const auto first = Turned(a, "rows");
  EXPECT_EQ(Turned(a, "rows"), first);
  EXPECT_EQ(made_, 1);
  EXPECT_NE(Turned(a, "columns"), first);
  EXPECT_NE(Turned(b, "rows"), first);
  EXPECT_EQ(made_, 3);
}

TEST_F(ArrangementsTest, KnowsTheSameBytesInAnotherShape) {
  const Tensor a = Tensor::FromValues<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor b(DType::kFloat, Shape{3, 2}, const_cast<void*>(a.raw()),
                 std::make_shared<Tensor>(a));
  const auto first = Turned(a, "turned");
  EXPECT_NE(Turned(b, "turned"), first);
}

TEST_F(ArrangementsTest, GoesWithTheLastWhoHoldsIt) {
  const Tensor a = Tensor::FromValues<float>({2}, {1, 2});
  std::weak_ptr<const Numbers> held = Turned(a, "rows");
  EXPECT_TRUE(held.expired());
  const auto again = Turned(a, "rows");
  EXPECT_EQ(*again, Numbers({1, 2}));
  EXPECT_EQ(made_, 2);
}

// Somebody else's memory may hold other numbers the next time.
TEST_F(ArrangementsTest, KnowsNoBorrowedMemory) {
  float numbers[] = {1, 2};
  const Tensor a(DType::kFloat, Shape{2}, numbers, nullptr);
  const auto first = Turned(a, "rows");
  numbers[0] = 3;
  EXPECT_EQ(*Turned(a, "rows"), Numbers({3, 2}));
  EXPECT_EQ(made_, 2);
}

TEST_F(ArrangementsTest, DropsWhatNobodyHolds) {
  for (int i = 0; i < 1000; ++i) {
    const Tensor passing = Tensor::FromValues<float>({1}, {static_cast<float>(i)});
    EXPECT_EQ(Turned(passing, "rows")->front(), i);
  }
  const Tensor a = Tensor::FromValues<float>({1}, {-1});
  EXPECT_EQ(Turned(a, "rows")->front(), -1);
}

TEST_F(ArrangementsTest, TensorsKeepWhatTheyAreOf) {
  const Tensor a = Tensor::FromValues<float>({2}, {1, 2});
  const Tensor* one = &a;
  const auto copy = [&] {
    return arrangements_.Get<Tensor>({&one, 1}, "copy", [&] {
      ++made_;
      return a.Clone();
    });
  };
  const Tensor part = [&] {
    const auto made = copy();
    return Held(*made, made);
  }();
  EXPECT_TRUE(part.owned());
  EXPECT_EQ(copy()->raw(), part.raw());
  EXPECT_EQ(made_, 1);
}

}  // namespace onward::arrangements_test
