// SPDX-License-Identifier: Apache-2.0
// The matrix products of recurrent networks against plain ones in double.
#include "core/ops/rnn/rnn_gemm.h"

#include <gtest/gtest.h>

#include <cstring>
#include <ostream>
#include <random>
#include <vector>

#include "core/base/parallel.h"

namespace onward::rnn_gemm_test {

constexpr CpuFeatures kNarrow = {.avx2 = true, .fma = true};

struct Product {
  int64_t m, k, n;
  bool a_transposed = false, b_transposed = false;
};

std::ostream& operator<<(std::ostream& out, const Product& p) {
  return out << p.m << "x" << p.k << (p.a_transposed ? "t" : "") << " by " << p.k << "x" << p.n
             << (p.b_transposed ? "t" : "");
}

class RecurrentProduct : public testing::TestWithParam<Product> {
 protected:
  RecurrentProduct() : a_(Normal(p_.m * p_.k)), b_(Normal(p_.k * p_.n)), c_(Normal(p_.m * p_.n)) {}

  std::vector<float> Normal(int64_t count) {
    std::normal_distribution<float> normal;
    std::vector<float> values(count);
    for (float& v : values) v = normal(generator_);
    return values;
  }

  GemmOperand<float> A() const { return Operand(a_, p_.m, p_.k, p_.a_transposed); }
  GemmOperand<float> B() const { return Operand(b_, p_.k, p_.n, p_.b_transposed); }

  // c + a * b
  std::vector<double> Expected() const {
    std::vector<double> sums(c_.begin(), c_.end());
    for (int64_t i = 0; i < p_.m * p_.n; ++i) {
      const int64_t row = i / p_.n, column = i % p_.n;
      for (int64_t k = 0; k < p_.k; ++k) {
        sums[i] += static_cast<double>(At(A(), row, k)) * At(B(), k, column);
      }
    }
    return sums;
  }

  std::vector<float> Run(const CpuFeatures& cpu) const {
    std::vector<float> packed(PackedMatrix<float>::Elements(p_.k, p_.n)), c = c_;
    const ProductPart<float> part = {Pack(B(), p_.k, p_.n, packed.data(), cpu), c.data(), p_.n};
    LargeProduct(A(), p_.m, absl::MakeConstSpan(&part, 1), /*accumulate=*/true);
    return c;
  }

  const Product p_ = GetParam();
  std::mt19937 generator_{1};
  std::vector<float> a_, b_, c_;

 private:
  static GemmOperand<float> Operand(const std::vector<float>& values, int64_t rows, int64_t columns,
                                    bool transposed) {
    return {values.data(), transposed ? rows : columns, transposed};
  }
  static float At(const GemmOperand<float>& m, int64_t row, int64_t column) {
    return m.transposed ? m.data[column * m.stride + row] : m.data[row * m.stride + column];
  }
};

TEST_P(RecurrentProduct, IsThatOfDoubles) {
  const std::vector<double> expected = Expected();
  for (const CpuFeatures& cpu : {ThisCpu(), kNarrow}) {
    const std::vector<float> got = Run(cpu);
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 1e-4) << i;
  }
}

TEST_P(RecurrentProduct, IsTheSameWithoutWideRegisters) {
  if (!ThisCpu().avx512f) GTEST_SKIP() << "this CPU has no AVX-512";
  const std::vector<float> wide = Run(ThisCpu()), narrow = Run(kNarrow);
  EXPECT_EQ(std::memcmp(wide.data(), narrow.data(), wide.size() * sizeof(float)), 0);
}

INSTANTIATE_TEST_SUITE_P(Shapes, RecurrentProduct,
                         testing::Values(Product{1, 1, 1}, Product{1, 300, 64}, Product{7, 40, 32},
                                         Product{7, 40, 33}, Product{16, 5, 100, true, true},
                                         Product{61, 257, 48, false, true},
                                         Product{100, 513, 80, true, false}));

}  // namespace onward::rnn_gemm_test
