// SPDX-License-Identifier: Apache-2.0
#include "tests/ops/cases.h"

namespace onward {

std::vector<OpCase> MatMulCases() {
  return {
      Case("MatMul", {Real({2, 3}), Real({3, 4})}).Unknown({0}),
      Case("MatMul_vectors", {Real({3}), Real({3})}),
      Case("MatMul_vector_left", {Real({3}), Real({3, 4})}),
      Case("MatMul_vector_right", {Real({2, 3}), Real({3})}),
      Case("MatMul_vector_left_batch", {Real({3}), Real({2, 3, 4})}),
      Case("MatMul_vector_right_batch", {Real({2, 2, 3}), Real({3})}).Unknown({0}),
      Case("MatMul_batch", {Real({2, 2, 3}), Real({2, 3, 2})}).Unknown({0, 1}),
      Case("MatMul_rows", {Real({2, 2, 3}), Real({3, 4})}).Unknown({0}),
      Case("MatMul_right_batch", {Real({2, 3}), Real({2, 3, 2})}),
      Case("MatMul_broadcast", {Real({2, 1, 2, 3}), Real({3, 3, 2})}),
      Case("Gemm", {Real({2, 3}), Real({3, 4}), Real({4})}).Unknown({0}),
      Case("Gemm_no_bias", {Real({2, 3}), Real({3, 4})}),
      Case("Gemm_trans_a", {Real({3, 2}), Real({3, 4}), Real({2, 4})}, {{"transA", 1}}),
      Case("Gemm_trans_b", {Real({2, 3}), Real({4, 3}), Real({4})}, {{"transB", 1}}).Unknown({0}),
      Case("Gemm_both", {Real({3, 2}), Real({4, 3}), Real({2, 1})}, {{"transA", 1}, {"transB", 1}}),
      Case("Gemm_factors", {Real({2, 3}), Real({3, 4}), Real({1, 4})},
           {{"alpha", 0.5}, {"beta", 2.0}}),
      Case("Gemm_all", {Real({3, 2}), Real({4, 3}), Real({})},
           {{"alpha", 0.5}, {"beta", 0.25}, {"transA", 1}, {"transB", 1}}),
      Case("Einsum", {Real({2, 3}), Real({3, 4})}, {{"equation", "ij,jk->ik"}}),
      Case("Einsum_batch", {Real({2, 2, 3}), Real({2, 3, 2})}, {{"equation", "bij,bjk->bik"}}),
      Case("Einsum_sum", {Real({2, 3})}, {{"equation", "ij->i"}}),
      Case("Einsum_transpose", {Real({2, 3})}, {{"equation", "ij->ji"}}),
      Case("Einsum_outer", {Real({2}), Real({3})}, {{"equation", "i,j->ij"}}),
      Case("Einsum_ellipsis", {Real({2, 2, 3}), Real({3, 2})}, {{"equation", "...ij,jk->...ik"}}),
      Case("Einsum_implicit", {Real({2, 3}), Real({3, 4})}, {{"equation", "ij,jk"}}),
      Case("Einsum_three", {Real({2, 3}), Real({3, 2}), Real({2})}, {{"equation", "ij,jk,k->i"}}),
  };
}

}  // namespace onward
