// SPDX-License-Identifier: Apache-2.0
// The float product against a double one, for all orders of the operands.
#include "core/ops/cpu/sgemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <random>
#include <vector>

namespace onward::sgemm_test {

struct Row {
  int64_t m, n, k;
};
void PrintTo(const Row& r, std::ostream* out) { *out << r.m << "x" << r.n << "x" << r.k; }

std::vector<float> Draw(int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  std::generate(values.begin(), values.end(), [&] { return normal(random); });
  return values;
}

class SgemmTest : public testing::TestWithParam<Row> {};

TEST_P(SgemmTest, AgreesWithDouble) {
  const auto [m, n, k] = GetParam();
  const std::vector<float> a = Draw(m * k, 1), b = Draw(k * n, 2), bias = Draw(n, 3),
                           residual = Draw(m * n, 4);
  const Sgemm gemm(m, n, k);
  std::vector<char> workspace(gemm.workspace_bytes());
  for (const bool a_columns : {false, true}) {
    for (const bool b_columns : {false, true}) {
      for (const bool followed : {false, true}) {
        const StridedMatrix left{a.data(), a_columns ? 1 : k, a_columns ? m : 1};
        const StridedMatrix right{b.data(), b_columns ? 1 : n, b_columns ? k : 1};
        SgemmEpilogue after;
        if (followed) after = {bias.data(), residual.data(), true, -1.0f, 2.0f};
        std::vector<float> c(m * n, NAN), again(m * n, NAN);
        gemm.Run(left, right, c.data(), after, workspace.data());
        gemm.Run(left, right, again.data(), after, workspace.data());
        EXPECT_EQ(c, again);
        gemm.RunPacked(left, gemm.Pack(right), again.data(), after, workspace.data());
        EXPECT_EQ(c, again);
        double worst = 0;
        for (int64_t i = 0; i < m; ++i) {
          for (int64_t j = 0; j < n; ++j) {
            double sum = 0;
            for (int64_t p = 0; p < k; ++p) {
              sum += double{left.data[i * left.row + p * left.column]} *
                     right.data[p * right.row + j * right.column];
            }
            if (followed) sum = std::clamp(sum + bias[j] + residual[i * n + j], -1.0, 2.0);
            worst = std::max(worst, std::abs(sum - c[i * n + j]));
          }
        }
        EXPECT_LT(worst, 2e-6 * static_cast<double>(k) + 1e-6)
            << a_columns << b_columns << followed;
      }
    }
  }
}

TEST_P(SgemmTest, IsTheSameWithoutWideRegisters) {
  if (!ThisCpu().avx512f) GTEST_SKIP() << "this CPU has no AVX-512";
  const auto [m, n, k] = GetParam();
  const std::vector<float> a = Draw(m * k, 1), b = Draw(k * n, 2), bias = Draw(n, 3);
  const Sgemm wide(m, n, k), narrow(m, n, k, 0, {.avx2 = true, .fma = true});
  std::vector<char> workspace(wide.workspace_bytes());
  for (const bool a_columns : {false, true}) {
    for (const float* added : {static_cast<const float*>(nullptr), bias.data()}) {
      const StridedMatrix left{a.data(), a_columns ? 1 : k, a_columns ? m : 1};
      std::vector<float> c(m * n, NAN), expected(m * n, NAN);
      wide.Run(left, {b.data(), n, 1}, c.data(), {.bias = added}, workspace.data());
      narrow.Run(left, {b.data(), n, 1}, expected.data(), {.bias = added}, workspace.data());
      EXPECT_EQ(c, expected);
    }
  }
}

// On one thread, twice onto the same result, in rows that are wider than it.
TEST_P(SgemmTest, AddsInWiderRows) {
  const auto [m, n, k] = GetParam();
  const int64_t row = n + 5;
  const std::vector<float> a = Draw(m * k, 1), b = Draw(k * n, 2);
  std::vector<char> workspace(Sgemm::WorkspaceBound(m, n, k, 1));
  std::vector<float> once(m * n), c(m * row, 7.0f);
  Sgemm(m, n, k, 1).Run({a.data(), k, 1}, {b.data(), n, 1}, once.data(), {}, workspace.data());
  for (const bool add : {false, true}) {
    SgemmEpilogue after;
    after.row = row;
    after.add = add;
    Sgemm(m, n, k, 1).Run({a.data(), k, 1}, {b.data(), n, 1}, c.data(), after, workspace.data());
  }
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < row; ++j) {
      const float expected = j < n ? 2 * once[i * n + j] : 7.0f;
      ASSERT_NEAR(c[i * row + j], expected, 1e-4) << i << " " << j;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, SgemmTest,
                         testing::Values(Row{1, 1, 1}, Row{6, 16, 8}, Row{7, 17, 9}, Row{5, 3, 300},
                                         Row{8, 64, 784}, Row{97, 33, 257}, Row{13, 1040, 31},
                                         Row{200, 40, 600}, Row{25, 100, 801}),
                         [](const auto& info) { return testing::PrintToString(info.param); });

}  // namespace onward::sgemm_test
