// SPDX-License-Identifier: Apache-2.0
// The one matrix product of the fakes.
#include "tests/cuda_emu/gemm.h"

#include <algorithm>
#include <bit>
#include <type_traits>
#include <vector>

namespace onward::cuda_emu {
namespace {

float RoundedToTf32(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7f800000u) == 0x7f800000u) return x;
  return std::bit_cast<float>((bits + 0xfffu + ((bits >> 13) & 1)) & ~0x1fffu);
}

// op(matrix), rows x columns, as dense columns of the type that sums are made in.
template <class C>
std::vector<C> Packed(const Matrix& matrix, int64_t rows, int64_t columns, bool tf32) {
  std::vector<C> packed(rows * columns);
  WithType(matrix.element, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    const T* data = static_cast<const T*>(matrix.data);
    const int64_t row_step = matrix.transposed ? matrix.stride : 1;
    const int64_t column_step = matrix.transposed ? 1 : matrix.stride;
    for (int64_t column = 0; column < columns; ++column) {
      for (int64_t row = 0; row < rows; ++row) {
        packed[column * rows + row] = static_cast<C>(data[row * row_step + column * column_step]);
      }
    }
  });
  if constexpr (std::is_same_v<C, float>) {
    if (tf32) std::transform(packed.begin(), packed.end(), packed.begin(), RoundedToTf32);
  }
  return packed;
}

template <class C>
void MultiplyIn(const Product& product) {
  const auto& [m, n, k, alpha, beta, a, b, c, tf32] = product;
  std::vector<C> sums(m * n, C(0));
  if (alpha != 0 && k > 0) {
    const std::vector<C> left = Packed<C>(a, m, k, tf32), right = Packed<C>(b, k, n, tf32);
    constexpr int64_t kRows = 512;  // of the sums that stay in the cache
    for (int64_t first = 0; first < m; first += kRows) {
      const int64_t rows = std::min(kRows, m - first);
      for (int64_t column = 0; column < n; ++column) {
        C* __restrict__ sum = sums.data() + column * m + first;
        for (int64_t i = 0; i < k; ++i) {
          const C factor = right[column * k + i];
          const C* __restrict__ values = left.data() + i * m + first;
          for (int64_t row = 0; row < rows; ++row) sum[row] += values[row] * factor;
        }
      }
    }
  }
  WithType(c.element, [&, m = m, n = n](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    T* data = static_cast<T*>(product.c.data);
    for (int64_t column = 0; column < n; ++column) {
      for (int64_t row = 0; row < m; ++row) {
        T& out = data[column * product.c.stride + row];
        C value = static_cast<C>(product.alpha) * sums[column * m + row];
        if (product.beta != 0) value += static_cast<C>(product.beta) * static_cast<C>(out);
        out = static_cast<T>(value);
      }
    }
  });
}

}  // namespace

void Multiply(const Product& product) {
  if (product.a.element == Element::kDouble) return MultiplyIn<double>(product);
  MultiplyIn<float>(product);
}

}  // namespace onward::cuda_emu
