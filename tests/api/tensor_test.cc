// SPDX-License-Identifier: Apache-2.0
// Status, Result and Tensor of the public interface.
#include "onward/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <sstream>

namespace {

using onward::ElementType;
using onward::Result;
using onward::Status;
using onward::StatusCode;
using onward::Tensor;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Result, HoldsAValueOrAnError) {
  const Result<int> good = 7;
  EXPECT_TRUE(good.ok());
  EXPECT_TRUE(good.status().ok());
  EXPECT_EQ(*good, 7);
  const Result<int> bad = Status(StatusCode::kNotFound, "no such thing");
  EXPECT_FALSE(bad.ok());
  EXPECT_EQ(bad.status().code(), StatusCode::kNotFound);
  std::ostringstream text;
  text << bad.status();
  EXPECT_EQ(text.str(), "no such thing");
  EXPECT_DEATH(bad.value(), "no such thing");
  const Result<int> neither = Status();
  EXPECT_EQ(neither.status().code(), StatusCode::kInternal);
}

TEST(Tensor, CopiesValuesIn) {
  const Tensor t = Tensor::From<float>({2, 2}, {1, 2, 3, 4}).value();
  EXPECT_EQ(t.element_type(), ElementType::kFloat);
  EXPECT_THAT(t.shape(), ElementsAre(2, 2));
  EXPECT_EQ(t.elements(), 4);
  EXPECT_EQ(t.byte_size(), 16u);
  EXPECT_THAT(t.Values<float>().value(), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(t.data<double>(), nullptr);
  EXPECT_THAT(t.Values<double>().status().message(), HasSubstr("float"));
  EXPECT_THAT(Tensor::From<bool>({2}, {true, false})->Values<bool>().value(),
              ElementsAre(true, false));
  EXPECT_THAT(Tensor::From<std::string>({1}, {"word"})->Values<std::string>().value(),
              ElementsAre("word"));
  EXPECT_EQ(*Tensor::Scalar<int64_t>(5)->data<int64_t>(), 5);
}

TEST(Tensor, CopiesShareAndClonesDoNot) {
  Tensor t = Tensor::From<int32_t>({2}, {1, 2}).value();
  const Tensor copy = t, clone = t.Clone().value();
  t.data<int32_t>()[0] = 9;
  EXPECT_EQ(copy.data<int32_t>()[0], 9);
  EXPECT_EQ(clone.data<int32_t>()[0], 1);
}

TEST(Tensor, ViewsTheCallersMemoryAndLetsGoOfItsOwner) {
  auto memory = std::make_shared<std::vector<float>>(std::vector<float>{1, 2, 3});
  const std::weak_ptr<std::vector<float>> watch = memory;
  {
    const Tensor t = Tensor::View(ElementType::kFloat, {3}, memory->data(), 12, memory).value();
    EXPECT_EQ(t.bytes(), memory->data());
    memory.reset();
    EXPECT_EQ(t.data<float>()[2], 3);
  }
  EXPECT_TRUE(watch.expired());
}

TEST(Tensor, RefusesWhatDoesNotFit) {
  float numbers[2] = {};
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(Tensor::From<float>({3}, {1, 2}).status().message(), HasSubstr("given are 2"));
  EXPECT_FALSE(Tensor::Zeros(ElementType::kFloat, {-1}).ok());
  EXPECT_FALSE(Tensor::Zeros(ElementType::kFloat, {kHuge, kHuge}).ok());
  EXPECT_FALSE(Tensor::Zeros(ElementType::kUndefined, {1}).ok());
  EXPECT_FALSE(Tensor::Zeros(static_cast<ElementType>(1000), {1}).ok());
  EXPECT_EQ(Tensor::Zeros(ElementType::kDouble, {int64_t{1} << 47}).status().code(),
            StatusCode::kResourceExhausted);
  EXPECT_THAT(Tensor::View(ElementType::kFloat, {3}, numbers, 8).status().message(),
              HasSubstr("takes 12 bytes, given are 8"));
  EXPECT_FALSE(Tensor::View(ElementType::kFloat, {2}, nullptr, 8).ok());
  EXPECT_FALSE(Tensor::View(ElementType::kString, {2}, numbers, 0).ok());
}

TEST(Tensor, NoTensorIsHarmless) {
  Tensor none;
  EXPECT_FALSE(none.defined());
  EXPECT_EQ(none.elements(), 0);
  EXPECT_EQ(none.bytes(), nullptr);
  EXPECT_EQ(none.data<float>(), nullptr);
  EXPECT_FALSE(none.Values<float>().ok());
  EXPECT_FALSE(none.Clone()->defined());
}

}  // namespace
