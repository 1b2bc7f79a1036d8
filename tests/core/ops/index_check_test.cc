// SPDX-License-Identifier: Apache-2.0
// Indices outside their bounds are found wherever they stand, and the first one is named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/ops/index/index.h"

namespace onward::index_check_test {

using testing::HasSubstr;

template <typename I>
absl::Status CheckWith(int64_t n, std::vector<std::pair<int64_t, I>> set, int64_t bound) {
  std::vector<I> index(n);
  for (int64_t i = 0; i < n; ++i) index[i] = static_cast<I>(i % (2 * bound) - bound);
  for (const auto& [at, value] : set) index[at] = value;
  return CheckIndices(Node(), Tensor::FromValues<I>({n}, index), bound);
}

template <typename I>
class IndexCheckTest : public testing::Test {};
using Types = testing::Types<int32_t, int64_t>;
TYPED_TEST_SUITE(IndexCheckTest, Types);

TYPED_TEST(IndexCheckTest, NamesTheFirst) {
  using Limits = std::numeric_limits<TypeParam>;
  constexpr int64_t kBound = 7;
  for (const int64_t n : {1, 5, 511, 512, 513, 1300, 70000}) {
    EXPECT_TRUE(CheckWith<TypeParam>(n, {}, kBound).ok()) << n;
    for (const int64_t at : {int64_t{0}, n / 2, n - 1}) {
      for (const TypeParam bad : {TypeParam(7), TypeParam(-8), Limits::max(), Limits::min()}) {
        const absl::Status status = CheckWith<TypeParam>(n, {{n - 1, bad}, {at, bad}}, kBound);
        EXPECT_THAT(std::string(status.message()),
                    HasSubstr(absl::StrCat("index ", bad, " at position ", at, " is outside")));
      }
    }
  }
}

TYPED_TEST(IndexCheckTest, NothingIsInsideAnEmptyAxis) {
  const Tensor zero = Tensor::FromValues<TypeParam>({1}, {0});
  EXPECT_FALSE(CheckIndices(Node(), zero, 0).ok());
  EXPECT_TRUE(CheckIndices(Node(), Tensor::FromValues<TypeParam>({0}, {}), 0).ok());
}

}  // namespace onward::index_check_test
