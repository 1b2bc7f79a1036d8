// SPDX-License-Identifier: Apache-2.0
// Matrix products for the fakes: plain loops, column-major.
#pragma once

#include "tests/cuda_emu/library.h"

namespace onward::cuda_emu {

struct Matrix {
  void* data = nullptr;
  Element element = Element::kFloat;
  int64_t stride = 1;  // from one column to the next (the leading dimension)
  bool transposed = false;
};

// C = alpha op(A) op(B) + beta C, where op(A) is m x k. Where beta is 0, C is not read; where alpha
// is 0, neither A nor B. Sums are made in float (double for double). `tf32` rounds what is
// multiplied to 10 bits, as tensor cores do.
struct Product {
  int64_t m, n, k;
  double alpha, beta;
  Matrix a, b, c;
  bool tf32 = false;
};

void Multiply(const Product& product);

}  // namespace onward::cuda_emu
