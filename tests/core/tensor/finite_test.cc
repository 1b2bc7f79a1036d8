// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/finite.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/tensor/dispatch.h"

namespace onward::finite_test {

TEST(AllFinite, LooksAtEveryElementOfEveryFloatingType) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  for (const DType dtype : {DType::kFloat, DType::kDouble, DType::kFloat16, DType::kBFloat16}) {
    DispatchFloating(dtype, [&]<typename T>() {
      Tensor t = Tensor::Zeros(dtype, {150000});
      const double largest = dtype == DType::kFloat16 ? 65504 : 3e38;
      for (const double v : {-largest, largest, -0.0, 1e-40}) {
        t.data<T>()[7] = FromDouble<T>(v);
        EXPECT_TRUE(AllFinite(t)) << DTypeName(dtype) << " " << v;
      }
      for (const int64_t at : {0, 1, 77777, 149998, 149999}) {
        for (const double v : {kInf, -kInf, std::numeric_limits<double>::quiet_NaN()}) {
          t.data<T>()[at] = FromDouble<T>(v);
          EXPECT_FALSE(AllFinite(t)) << DTypeName(dtype) << " " << v << " at " << at;
          t.data<T>()[at] = FromDouble<T>(1);
        }
      }
    });
  }
}

TEST(AllFinite, HoldsForWhatHasNoInfinities) {
  EXPECT_TRUE(AllFinite(Tensor::Scalar<int64_t>(-1)));
  EXPECT_TRUE(AllFinite(Tensor::Scalar<bool>(true)));
  EXPECT_TRUE(AllFinite(Tensor(DType::kFloat, {0})));
}

}  // namespace onward::finite_test
