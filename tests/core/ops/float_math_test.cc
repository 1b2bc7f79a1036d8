// SPDX-License-Identifier: Apache-2.0
// The functions of whole arrays against the C library's in double, by bit patterns drawn from
// all floats; and that neither the place of a number nor the CPU changes a result.
#include "core/ops/cpu/float_math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <ostream>
#include <vector>

namespace onward::float_math_test {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

const FloatMath& Narrow() { return FloatMathOf({.avx2 = true, .fma = true}); }

struct Row {
  const char* name;
  FloatMath::Map FloatMath::*map;
  double (*exact)(double);
  double ulps;  // the error that is allowed
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

class FloatMathTest : public testing::TestWithParam<Row> {
 protected:
  std::vector<float> Map(const FloatMath& math, const std::vector<float>& x) const {
    std::vector<float> y(x.size());
    (math.*GetParam().map)(x.data(), y.data(), static_cast<int64_t>(x.size()));
    return y;
  }
};

// Every so many floats of all 2^32, and what is special.
std::vector<float> Samples() {
  constexpr uint64_t kStep = 40009;
  std::vector<float> x = {0.0f,    -0.0f,  kNan,    kInfinity, -kInfinity, 1e-45f,
                          -1e-45f, 88.72f, 88.73f,  -87.34f,   -103.97f,   -104.0f,
                          1e30f,   -1e30f, 1.0e-7f, -1.0e-7f,  131072.0f,  131073.0f};
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += kStep) {
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  return x;
}

double Ulp(double value) {
  constexpr double kSmallest = std::numeric_limits<float>::denorm_min();
  return value == 0 ? kSmallest : std::max(std::ldexp(1.0, std::ilogb(value) - 23), kSmallest);
}

TEST_P(FloatMathTest, IsWithinItsErrorEverywhere) {
  const std::vector<float> x = Samples(), y = Map(FloatMathHere(), x);
  double worst = 0;
  float where = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double exact = GetParam().exact(x[i]);
    const auto rounded = static_cast<float>(exact);
    if (!std::isfinite(rounded)) {
      ASSERT_EQ(std::isnan(y[i]), std::isnan(rounded)) << x[i];
      ASSERT_TRUE(std::isnan(rounded) || y[i] == rounded) << x[i];
      continue;
    }
    const double error = std::abs(y[i] - exact) / Ulp(exact);
    ASSERT_FALSE(std::isnan(error)) << x[i];
    if (error > worst) {
      worst = error;
      where = x[i];
    }
  }
  EXPECT_LE(worst, GetParam().ulps) << "at " << where;
}

TEST_P(FloatMathTest, KeepsTheSignOfZero) {
  const std::vector<float> y = Map(FloatMathHere(), {0.0f, -0.0f});
  const bool odd = GetParam().exact(-0.5) == -GetParam().exact(0.5);
  EXPECT_FALSE(std::signbit(y[0]));
  EXPECT_EQ(std::signbit(y[1]), odd);
}

void ExpectSame(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    ASSERT_EQ(std::bit_cast<uint32_t>(a[i]), std::bit_cast<uint32_t>(b[i])) << i;
  }
}

TEST_P(FloatMathTest, IsTheSameWithoutWideRegisters) {
  if (!ThisCpu().avx512f) GTEST_SKIP() << "this CPU has no AVX-512";
  const std::vector<float> x = Samples();
  ExpectSame(Map(FloatMathHere(), x), Map(Narrow(), x));
}

// Arrays of every length up to three vectors and beyond a piece, at every place, and in place.
TEST_P(FloatMathTest, DoesNotDependOnWhereANumberStands) {
  std::vector<float> x(400);
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = i == 290 ? 1e9f : std::sin(static_cast<float>(i)) * 9;
  }
  const std::vector<float> whole = Map(FloatMathHere(), x);
  for (const FloatMath* math : {&FloatMathHere(), &Narrow()}) {
    for (int64_t n = 0; n < 360; n += n < 50 ? 1 : 31) {
      for (const int64_t at : {0, 1, 7, 40}) {
        std::vector<float> y(x);
        (math->*GetParam().map)(y.data() + at, y.data() + at, n);
        std::vector<float> expected(x);
        std::copy_n(whole.begin() + at, n, expected.begin() + at);
        ExpectSame(y, expected);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, FloatMathTest,
    testing::Values(Row{"exp", &FloatMath::exp, [](double x) { return std::exp(x); }, 1},
                    Row{"tanh", &FloatMath::tanh, [](double x) { return std::tanh(x); }, 2.5},
                    Row{"sigmoid", &FloatMath::sigmoid, Sigmoid, 2.5},
                    Row{"erf", &FloatMath::erf, [](double x) { return std::erf(x); }, 1.6},
                    Row{"sin", &FloatMath::sin, [](double x) { return std::sin(x); }, 1.6},
                    Row{"cos", &FloatMath::cos, [](double x) { return std::cos(x); }, 1.6}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(FloatMath, SumsAndMaximaOfEveryLength) {
  std::vector<float> x(200);
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::cos(static_cast<float>(i * i)) * 4;
  for (int64_t n = 0; n <= 140; ++n) {
    const float* from = x.data() + n % 5;
    float largest = -kInfinity;
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) {
      largest = std::max(largest, from[i]);
      sum += std::exp(double{from[i]} - 1.5);
    }
    std::vector<float> y(n), terms(n);
    for (int64_t i = 0; i < n; ++i) terms[i] = from[i] - 1.5f;
    FloatMathHere().exp(terms.data(), terms.data(), n);
    const float got = FloatMathHere().exp_and_sum(from, 1.5f, y.data(), n);
    EXPECT_NEAR(got, sum, 1e-6 * sum) << n;
    ExpectSame(y, terms);
    for (const FloatMath* math : {&FloatMathHere(), &Narrow()}) {
      EXPECT_EQ(math->max(from, n), largest) << n;
      EXPECT_EQ(math->sum_of_exp(from, 1.5f, n), got) << n;
      EXPECT_EQ(math->exp_and_sum(from, 1.5f, y.data(), n), got) << n;
    }
  }
}

TEST(FloatMath, AMaximumPassesOverNanAndASumDoesNot) {
  for (const FloatMath* math : {&FloatMathHere(), &Narrow()}) {
    for (int64_t n : {3, 8, 37, 64}) {
      std::vector<float> x(n, -2.0f);
      x[n - 1] = kNan;
      EXPECT_EQ(math->max(x.data(), n), -2.0f);
      EXPECT_TRUE(std::isnan(math->sum_of_exp(x.data(), 0, n)));
    }
  }
}

}  // namespace onward::float_math_test
