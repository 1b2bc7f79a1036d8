// SPDX-License-Identifier: Apache-2.0
// Operators on complex numbers, which the numbers of the tables' rows are not: literal
// expectations, as numpy has them.
#include <gtest/gtest.h>

#include <algorithm>
#include <complex>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/str_replace.h"
#include "core/runtime/session.h"
#include "environment/environment.h"
#include "tests/support/test_environment.h"
#include "tests/support/text_model.h"

namespace onward::complex_test {

template <typename T>
constexpr DType kComplexType = std::is_same_v<T, float> ? DType::kComplex64 : DType::kComplex128;

template <typename T>
class Complex : public testing::Test {
 protected:
  using Numbers = std::vector<std::complex<T>>;

  // The results of a graph whose text says TYPE for the type of x.
  static TensorMap Run(const std::string& text, const Shape& shape, const Numbers& x) {
    Tensor input(kComplexType<T>, shape);
    std::copy(x.begin(), x.end(), input.data<std::complex<T>>());
    const Graph graph =
        InferenceGraph(TextModel(absl::StrReplaceAll(text, {{"TYPE", DTypeName(kComplexType<T>)}})))
            .value();
    Session session(graph, TestEnvironment().compile_options());
    Variables none;
    auto found = session.Run({{"x", input}}, &none);
    EXPECT_TRUE(found.ok()) << found.status();
    return found.ok() ? *found : TensorMap();
  }

  static Numbers NumbersOf(const Tensor& t) {
    EXPECT_EQ(t.dtype(), kComplexType<T>);
    const auto* begin = t.data<std::complex<T>>();
    return Numbers(begin, begin + t.elements());
  }
  static std::vector<int64_t> IntsOf(const Tensor& t) { return ToInts(t).value(); }
};

using Parts = testing::Types<float, double>;
TYPED_TEST_SUITE(Complex, Parts);

using Ints = std::vector<int64_t>;

TYPED_TEST(Complex, NonZeroLooksAtBothParts) {
  const TensorMap found =
      this->Run("m (TYPE[2, 3] x) => (int64[2, n] y) { y = NonZero (x) }", {2, 3},
                {{0, 0}, {1, 0}, {0, -2}, {TypeParam(-0.0), 0}, {3, 4}, {0, 0}});
  EXPECT_EQ(found.at("y").shape(), Shape({2, 3}));
  EXPECT_EQ(this->IntsOf(found.at("y")), (Ints{0, 0, 1, 1, 2, 1}));
}

TYPED_TEST(Complex, UniqueIsOrderedByTheRealPartFirst) {
  const TensorMap found = this->Run(
      "m (TYPE[6] x) => (TYPE[k] y, int64[k] i, int64[6] v, int64[k] n) "
      "{ y, i, v, n = Unique (x) }",
      {6}, {{2, 1}, {1, 5}, {2, -1}, {1, 5}, {-3, 0}, {2, 1}});
  EXPECT_EQ(this->NumbersOf(found.at("y")),
            (std::vector<std::complex<TypeParam>>{{-3, 0}, {1, 5}, {2, -1}, {2, 1}}));
  EXPECT_EQ(this->IntsOf(found.at("i")), (Ints{4, 1, 2, 0}));
  EXPECT_EQ(this->IntsOf(found.at("v")), (Ints{3, 1, 2, 1, 0, 3}));
  EXPECT_EQ(this->IntsOf(found.at("n")), (Ints{1, 2, 1, 2}));
}

TYPED_TEST(Complex, UniqueColumns) {
  const TensorMap found = this->Run(
      "m (TYPE[2, 3] x) => (TYPE[2, k] y, int64[k] i) "
      "{ y, i = Unique <axis = 1, sorted = 0> (x) }",
      {2, 3}, {{1, 2}, {1, 1}, {1, 2}, {0, 7}, {0, 7}, {0, 7}});
  EXPECT_EQ(found.at("y").shape(), Shape({2, 2}));
  EXPECT_EQ(this->NumbersOf(found.at("y")),
            (std::vector<std::complex<TypeParam>>{{1, 2}, {1, 1}, {0, 7}, {0, 7}}));
  EXPECT_EQ(this->IntsOf(found.at("i")), (Ints{0, 1}));
}

}  // namespace onward::complex_test
