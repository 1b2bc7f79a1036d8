// SPDX-License-Identifier: Apache-2.0
// Permuted copies against loops, for every width of an element: planes smaller than a unit, with
// edges, cut between threads, with rows at distances of powers of two.
#include "core/ops/cpu/strided_copy.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <ostream>
#include <vector>

#include "absl/strings/str_join.h"
#include "core/base/parallel.h"

namespace onward::strided_copy_test {

struct Row {
  std::vector<int64_t> in;
  std::vector<int> perm;
};
void PrintTo(const Row& row, std::ostream* out) {
  *out << absl::StrJoin(row.in, "x") << " by " << absl::StrJoin(row.perm, "");
}

class StridedCopyTest : public testing::TestWithParam<Row> {
 protected:
  template <typename T>
  void Check(DType dtype) const {
    const auto& [in, perm] = GetParam();
    const Shape shape(in);
    const Shape::Dims strides = shape.Strides();
    Shape::Dims dims, steps;
    for (int axis : perm) {
      dims.push_back(in[axis]);
      steps.push_back(strides[axis]);
    }
    std::vector<T> x(shape.elements()), y(x.size()), expected;
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(i * 2654435761u >> 3);
    std::vector<int64_t> index(dims.size());
    for (size_t i = 0; i < x.size(); ++i) {
      auto rest = static_cast<int64_t>(i);
      int64_t from = 0;
      for (int d = static_cast<int>(dims.size()) - 1; d >= 0; --d) {
        from += rest % dims[d] * steps[d];
        rest /= dims[d];
      }
      expected.push_back(x[from]);
    }
    StridedCopy(dtype, dims, steps).Run(y.data(), x.data());
    EXPECT_EQ(y, expected);
  }
};

TEST_P(StridedCopyTest, MovesEveryElement) {
  for (const int threads : {1, 2}) {
    const ScopedThreads scoped(threads);
    Check<uint8_t>(DType::kUint8);
    Check<uint16_t>(DType::kUint16);
    Check<uint32_t>(DType::kUint32);
    Check<uint64_t>(DType::kUint64);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, StridedCopyTest,
    testing::Values(Row{{1, 1}, {1, 0}}, Row{{0, 5}, {1, 0}}, Row{{7, 9}, {1, 0}},
                    Row{{8, 8}, {1, 0}}, Row{{16, 33}, {1, 0}}, Row{{65, 130}, {1, 0}},
                    Row{{130, 65}, {1, 0}}, Row{{64, 4096}, {1, 0}}, Row{{4096, 64}, {1, 0}},
                    Row{{300, 1001}, {1, 0}}, Row{{3, 50000}, {1, 0}}, Row{{50000, 3}, {1, 0}},
                    Row{{9, 20000}, {1, 0}}, Row{{21, 2, 29}, {2, 0, 1}}, Row{{4, 45}, {1, 0}},
                    Row{{3, 70, 37}, {0, 2, 1}}, Row{{70, 3, 37}, {2, 1, 0}},
                    Row{{5, 17, 4, 19}, {0, 2, 3, 1}}, Row{{6, 5, 7, 8}, {0, 2, 1, 3}}));

TEST(StridedCopy, TellsPlanesThatItTransposes) {
  const int64_t dims[] = {40, 30}, turned[] = {1, 40}, plain[] = {30, 1};
  EXPECT_TRUE(StridedCopy(DType::kFloat, dims, turned).transposes());
  EXPECT_FALSE(StridedCopy(DType::kFloat, dims, plain).transposes());
  const int64_t few[] = {40, 3}, odd[] = {40, 5};
  EXPECT_TRUE(StridedCopy(DType::kFloat, few, turned).transposes());
  EXPECT_FALSE(StridedCopy(DType::kFloat, odd, turned).transposes());
}

}  // namespace onward::strided_copy_test
