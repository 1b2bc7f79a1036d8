// SPDX-License-Identifier: Apache-2.0
// Gradients at kinks and ties, at zeros and bounds, as literals. They are PyTorch's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/ops/cases.h"

namespace onward::subgradient_test {

using testing::ElementsAre;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// The gradients of an operator by all its real inputs at given numbers (none: not a real
// input), where ones arrive.
std::vector<std::vector<double>> Slopes(OpCase c, const std::vector<std::vector<double>>& xs) {
  CaseRun run(c, DType::kDouble, CaseRun::Of::kGradients);
  for (size_t i = 0; i < xs.size(); ++i) {
    if (!xs[i].empty()) run.Set(absl::StrCat("x", i), xs[i]);
  }
  for (const auto& [name, elements] : run.reals()) {
    run.Set(name, std::vector<double>(elements, 1));
  }
  std::vector<std::vector<double>> slopes;
  for (const Tensor& t : run.Results()) slopes.push_back(*ToDoubles(t));
  return slopes;
}

// The first of them.
std::vector<double> Slope(OpCase c, const std::vector<std::vector<double>>& xs) {
  return Slopes(std::move(c), xs)[0];
}

// As PyTorch has them.
TEST(Subgradients, OfBends) {
  const auto one = [](const char* op, Attributes attributes = {}) {
    return Case(op, {Real({3})}, std::move(attributes));
  };
  EXPECT_THAT(Slope(one("Relu"), {{-1, 0, 1}}), ElementsAre(0, 0, 1));
  EXPECT_THAT(Slope(one("LeakyRelu", {{"alpha", 0.5f}}), {{-1, 0, 1}}), ElementsAre(0.5, 0.5, 1));
  EXPECT_THAT(Slope(one("Abs"), {{-1, 0, 1}}), ElementsAre(-1, 0, 1));
  EXPECT_THAT(Slope(one("Elu"), {{0, 0, 1}}), ElementsAre(1, 1, 1));
  EXPECT_THAT(Slope(one("ThresholdedRelu"), {{0.5, 1, 1.5}}), ElementsAre(0, 0, 1));
  EXPECT_THAT(Slope(one("HardSigmoid", {{"alpha", 0.5f}, {"beta", 0.5f}}), {{-1, 0, 1}}),
              ElementsAre(0, 0.5, 0));
  EXPECT_THAT(Slope(Case("Clip", {Real({3}), Number(-1), Number(1)}), {{-1, 0, 1}}),
              ElementsAre(1, 1, 1));
  EXPECT_THAT(Slope(Case("PRelu", {Real({3}), Number(0.5)}), {{-1, 0, 1}}),
              ElementsAre(0.5, 0.5, 1));
}

TEST(Subgradients, OfTies) {
  using List = std::vector<int64_t>;
  EXPECT_THAT(Slope(Case("Max", {Real({3}), Real({3})}), {{1, 2, 3}, {2, 2, 2}}),
              ElementsAre(0, 0.5, 1));
  EXPECT_THAT(Slope(Case("Min", {Real({3}), Real({3})}), {{1, 2, 3}, {2, 2, 2}}),
              ElementsAre(1, 0.5, 0));
  EXPECT_THAT(Slope(Case("ReduceMax", {Real({4})}), {{1, 3, 3, 2}}), ElementsAre(0, 0.5, 0.5, 0));
  EXPECT_THAT(Slope(Case("ReduceMin", {Real({4})}), {{1, 3, 1, 2}}), ElementsAre(0.5, 0, 0.5, 0));
  EXPECT_THAT(Slope(Case("ReduceL1", {Real({3})}), {{-1, 0, 1}}), ElementsAre(-1, 0, 1));
  EXPECT_THAT(
      Slope(Case("MaxPool", {Real({1, 1, 4})}, {{"kernel_shape", List{4}}}), {{1, 3, 3, 2}}),
      ElementsAre(0, 1, 0, 0));
}

TEST(Subgradients, OfMoreBends) {
  const auto one = [](const char* op, Attributes attributes = {}) {
    return Case(op, {Real({3})}, std::move(attributes));
  };
  EXPECT_THAT(Slope(one("Elu", {{"alpha", 0.5f}}), {{0, -0.0, 1}}), ElementsAre(0.5, 0.5, 1));
  EXPECT_THAT(Slope(one("Celu", {{"alpha", 2.0f}}), {{0, -0.0, 1}}), ElementsAre(1, 1, 1));
  const std::vector<double> selu = Slope(one("Selu"), {{0, -0.0, 1}});
  EXPECT_NEAR(selu[0], 1.7580993408473766, 1e-6);
  EXPECT_NEAR(selu[2], 1.0507009873554805, 1e-6);
  EXPECT_THAT(Slope(one("HardSwish"), {{-3, 0, 3}}), ElementsAre(0, 0.5, 1));
  EXPECT_THAT(Slope(one("Shrink"), {{-0.5, 0.5, 0.75}}), ElementsAre(0, 0, 1));
  EXPECT_THAT(Slope(one("Shrink", {{"bias", 0.5f}}), {{-0.5, 0.5, 0.75}}), ElementsAre(0, 0, 1));
  EXPECT_THAT(Slope(one("Sign"), {{-1, 0, 1}}), ElementsAre(0, 0, 0));
  EXPECT_THAT(Slope(one("Floor"), {{-1, 0, 0.5}}), ElementsAre(0, 0, 0));
  EXPECT_THAT(Slope(one("Softsign"), {{0, 1, -1}}), ElementsAre(1, 0.25, 0.25));
  EXPECT_THAT(Slopes(Case("PRelu", {Real({3}), Real({1})}), {{-1, 0, 1}, {0.5}}),
              ElementsAre(ElementsAre(0.5, 0.5, 1), ElementsAre(-1)));
}

TEST(Subgradients, AtZero) {
  const auto one = [](const char* op) { return Case(op, {Real({1})}); };
  EXPECT_THAT(Slope(one("Sqrt"), {{0}}), ElementsAre(kInf));
  EXPECT_THAT(Slope(one("Log"), {{0}}), ElementsAre(kInf));
  EXPECT_THAT(Slope(one("Reciprocal"), {{0}}), ElementsAre(-kInf));
  EXPECT_THAT(Slope(one("Asin"), {{1}}), ElementsAre(kInf));
  EXPECT_THAT(Slope(Case("ReduceL2", {Real({2})}), {{0, 0}}), ElementsAre(0, 0));
  EXPECT_THAT(Slope(Case("ReduceProd", {Real({3})}), {{2, 0, 3}}), ElementsAre(0, 6, 0));
  EXPECT_THAT(Slope(Case("ReduceProd", {Real({3})}), {{0, 0, 3}}), ElementsAre(0, 0, 0));
  EXPECT_THAT(Slope(Case("ReduceLogSumExp", {Real({2})}), {{-kInf, 0}}), ElementsAre(0, 1));
  for (const auto& [power, slope] :
       std::vector<std::pair<double, double>>{{0, 0}, {0.5, kInf}, {1, 1}, {1.5, 0}, {2, 0}}) {
    EXPECT_THAT(Slope(Case("Pow", {Real({1}), Number(power)}), {{0}}), ElementsAre(slope)) << power;
  }
  EXPECT_THAT(Slopes(Case("Pow", {Real({4}), Real({4})}), {{0, 0, 0, 1}, {0, 1, 2, 3}}),
              ElementsAre(ElementsAre(0, 1, 0, 3), ElementsAre(0, 0, 0, 0)));
  const auto products = [](Attributes attributes = {}) {
    return Case("CumProd", {Real({5}), Int(0)}, std::move(attributes));
  };
  EXPECT_THAT(Slope(products(), {{2, 0, 3, 0, 5}}), ElementsAre(1, 8, 0, 0, 0));
  EXPECT_THAT(Slope(products(), {{0, 2, 3, 1, 1}}), ElementsAre(21, 0, 0, 0, 0));
  EXPECT_THAT(Slope(products({{"reverse", 1}}), {{5, 0, 3, 0, 2}}), ElementsAre(0, 0, 0, 8, 1));
  EXPECT_THAT(Slope(products({{"exclusive", 1}}), {{2, 0, 3, 0, 5}}), ElementsAre(1, 8, 0, 0, 0));
}

TEST(Subgradients, OfBounds) {
  const auto bounded = Case("Clip", {Real({5}), Real({}), Real({})});
  // Below the lower bound it is the bound that moves the result, above the upper one that one.
  EXPECT_THAT(Slopes(bounded, {{-3, -2, 0, 2, 3}, {-1}, {1}}),
              ElementsAre(ElementsAre(0, 0, 1, 0, 0), ElementsAre(2), ElementsAre(2)));
  // The upper bound wins where they cross.
  EXPECT_THAT(Slopes(bounded, {{0, 1, 1.5, 2, 3}, {2}, {1}}),
              ElementsAre(ElementsAre(0, 0, 0, 0, 0), ElementsAre(0), ElementsAre(5)));
  EXPECT_THAT(Slope(Case("Clip", {Real({3}), Number(2), Number(1)}), {{1, 1.5, 2}}),
              ElementsAre(0, 0, 0));
  EXPECT_THAT(Slopes(bounded, {{0, 1, 1, 1, 2}, {1}, {1}}),
              ElementsAre(ElementsAre(0, 1, 1, 1, 0), ElementsAre(0), ElementsAre(1)));
  EXPECT_THAT(Slope(Case("Clip", {Real({3}), Omitted(), Number(1)}), {{-1, 0, 2}}),
              ElementsAre(1, 1, 0));
}

// No comparison with NaN holds.
TEST(Subgradients, OfNaN) {
  for (const char* op : {"Max", "Min"}) {
    EXPECT_THAT(Slopes(Case(op, {Real({3}), Real({3})}), {{kNaN, 1, kNaN}, {1, kNaN, kNaN}}),
                testing::Each(ElementsAre(1, 1, 1)));
    EXPECT_THAT(Slopes(Case(op, {Real({2}), Real({2}), Real({2})}), {{kNaN, 1}, {1, 1}, {2, kNaN}}),
                ElementsAre(ElementsAre(1, 0.5), ElementsAre(1, 0.5), ElementsAre(1, 1)));
  }
  EXPECT_THAT(Slopes(Case("Clip", {Real({2}), Real({}), Real({})}), {{kNaN, 0}, {-1}, {1}}),
              ElementsAre(ElementsAre(0, 1), ElementsAre(0), ElementsAre(0)));
  EXPECT_THAT(Slopes(Case("Clip", {Real({2}), Real({}), Real({})}), {{-2, 2}, {kNaN}, {1}}),
              ElementsAre(ElementsAre(0, 0), ElementsAre(0), ElementsAre(1)));
  EXPECT_THAT(Slope(Case("Clip", {Real({2}), Number(-1), Number(1)}), {{kNaN, 0}}),
              ElementsAre(0, 1));
}

TEST(Subgradients, OfPowers) {
  const OpCase power = Case("Pow", {Real({5}), Real({5})});
  EXPECT_THAT(Slopes(power, {{0, 0, 0, 0, -0.0}, {0, 0.5, 1, 2, 3}}),
              ElementsAre(ElementsAre(0, kInf, 1, 0, 0), testing::Each(0)));
  EXPECT_THAT(
      Slopes(power, {{0, -2, -2, -1, 1}, {-1, 2, -1, 0, 0}}),
      ElementsAre(ElementsAre(-kInf, -4, -0.25, 0, 0),
                  ElementsAre(-kInf, testing::IsNan(), testing::IsNan(), testing::IsNan(), 0)));
  EXPECT_THAT(
      Slopes(power, {{kInf, kNaN, kNaN, 1, kInf}, {0, 0, 1, kNaN, -1}}),
      ElementsAre(ElementsAre(0, 0, 1, testing::IsNan(), 0),
                  ElementsAre(kInf, testing::IsNan(), testing::IsNan(), 0, testing::IsNan())));
  for (const double base : {-2.0, 0.0, 3.0, kInf, kNaN}) {
    EXPECT_THAT(Slope(Case("Pow", {Real({1}), Number(0)}), {{base}}), ElementsAre(0)) << base;
  }
}

TEST(Subgradients, OfMoreTies) {
  // As maxima of two, from the left.
  for (const char* op : {"Max", "Min"}) {
    EXPECT_THAT(Slopes(Case(op, {Real({1}), Real({1}), Real({1})}), {{1}, {1}, {1}}),
                ElementsAre(ElementsAre(0.25), ElementsAre(0.25), ElementsAre(0.5)));
  }
  EXPECT_THAT(Slopes(Case("Max", {Real({2}), Real({2}), Real({2}), Real({2})}),
                     {{2, 1}, {2, 3}, {1, 3}, {2, 3}}),
              ElementsAre(ElementsAre(0.25, 0), ElementsAre(0.25, 0.25), ElementsAre(0, 0.25),
                          ElementsAre(0.5, 0.5)));
  EXPECT_THAT(Slopes(Case("Min", {Real({2}), Real({2}), Real({2})}), {{1, 3}, {2, 3}, {1, 4}}),
              ElementsAre(ElementsAre(0.5, 0.5), ElementsAre(0, 0.5), ElementsAre(0.5, 0)));
  EXPECT_THAT(Slope(Case("GlobalMaxPool", {Real({1, 1, 3})}), {{1, 3, 3}}), ElementsAre(0, 1, 0));
  // The standard takes the lower index where PyTorch leaves open which.
  EXPECT_THAT(Slope(Case("TopK", {Real({4}), Ints({2})}).Outputs(2, {0}), {{1, 3, 3, 3}}),
              ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(Slopes(Case("Mod", {Real({2}), Real({2})}, {{"fmod", 1}}), {{4, 5}, {2, 3}}),
              ElementsAre(ElementsAre(1, 1), ElementsAre(-2, -1)));
}

// As scatter_reduce has them.
TEST(Subgradients, OfScatters) {
  const auto scatter = [](const std::string& op, const char* reduction) {
    const Shape indices = op == "ScatterND" ? Shape{4, 1} : Shape{4};
    return Case(op, {Real({4}), Fed(indices, {0, 0, 1, 3}), Real({4})}, {{"reduction", reduction}});
  };
  const double third = 1.0 / 3;
  for (const std::string op : {"ScatterElements", "ScatterND"}) {
    EXPECT_THAT(Slopes(scatter(op, "mul"), {{2, 5, 7, 1}, {}, {2, 2, 5, 0}}),
                ElementsAre(ElementsAre(4, 5, 1, 0), ElementsAre(4, 4, 5, 1)));
    EXPECT_THAT(Slopes(scatter(op, "mul"), {{0, 5, 7, 2}, {}, {3, 0, 0, 4}}),
                ElementsAre(ElementsAre(0, 0, 1, 4), ElementsAre(0, 0, 5, 2)));
    EXPECT_THAT(Slopes(scatter(op, "mul"), {{3, 5, 7, 2}, {}, {0, 0, 0, 4}}),
                ElementsAre(ElementsAre(0, 0, 1, 4), ElementsAre(0, 0, 5, 2)));
    EXPECT_THAT(Slopes(scatter(op, "max"), {{2, 5, 7, 1}, {}, {2, 2, 5, 0}}),
                ElementsAre(ElementsAre(third, 0.5, 1, 1), ElementsAre(third, third, 0.5, 0)));
    EXPECT_THAT(Slopes(scatter(op, "min"), {{2, 5, 7, 1}, {}, {2, 2, 5, 0}}),
                ElementsAre(ElementsAre(third, 0.5, 1, 0), ElementsAre(third, third, 0.5, 1)));
  }
}

// A determinant is a polynomial: its gradient is that of the cofactors everywhere.
TEST(Subgradients, OfSingularMatrices) {
  const auto det = [](int64_t n) { return Case("Det", {Real({n, n})}); };
  EXPECT_THAT(Slope(det(2), {{1, 2, 2, 4}}), ElementsAre(4, -2, -2, 1));
  EXPECT_THAT(Slope(det(2), {{0, 0, 0, 0}}), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(Slope(det(3), {{1, 2, 4, 2, 4, 8, 4, 8, 16}}), testing::Each(0));
  EXPECT_THAT(Slope(det(3), {{1, 0, 0, 0, 1, 0, 0, 0, 0}}), ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 1));
  EXPECT_THAT(Slope(det(3), {{2, 0, 0, 0, 0, 4, 0, 0, 0}}),
              ElementsAre(0, 0, 0, 0, 0, 0, 0, -8, 0));
}

}  // namespace onward::subgradient_test
