// SPDX-License-Identifier: Apache-2.0
#include "tests/ops/cases.h"

namespace onward {

namespace {

std::vector<OpCase> EinsumCases() {
  const auto row = [](const char* name, const char* equation, std::vector<Arg> args) {
    return Case(name, std::move(args), {{"equation", equation}});
  };
  return {
      row("Einsum", "ij,jk->ik", {Real({2, 3}), Real({3, 4})}).Unknown({0}),
      row("Einsum_batch", "bij,bjk->bik", {Real({2, 2, 3}), Real({2, 3, 2})}).Unknown({0, 1}),
      row("Einsum_rows", "bij,jk->bik", {Real({2, 2, 3}), Real({3, 2})}),
      row("Einsum_heads", "bihd,bjhd->bhij", {Real({1, 2, 2, 3}), Real({1, 3, 2, 3})}),
      row("Einsum_swapped", "ij,jk->ki", {Real({2, 3}), Real({3, 4})}),
      row("Einsum_inner", "i,i->", {Real({3}), Real({3})}),
      row("Einsum_outer", "i,j->ij", {Real({2}), Real({3})}),
      row("Einsum_double_sum", "ij,ij->", {Real({2, 3}), Real({2, 3})}),
      row("Einsum_joined_sum", "aij,jib->ba", {Real({2, 2, 3}), Real({3, 2, 2})}),
      row("Einsum_hadamard", "ij,ji->ij", {Real({2, 3}), Real({3, 2})}),
      row("Einsum_sum", "ij->i", {Real({2, 3})}).Unknown({0}),
      row("Einsum_sum_all", "ij->", {Real({2, 3})}),
      row("Einsum_alone", "ij,kl->ik", {Real({2, 3}), Real({2, 2})}),
      row("Einsum_transpose", "ij->ji", {Real({2, 3})}),
      row("Einsum_same", "ij->ij", {Real({2, 3})}),
      row("Einsum_implicit", "ij,jk", {Real({2, 3}), Real({3, 4})}),
      row("Einsum_implicit_transpose", "ba", {Real({2, 3})}),
      row("Einsum_implicit_case", "bA", {Real({2, 3})}),
      row("Einsum_spaces", " i j , j k -> i k ", {Real({2, 3}), Real({3, 4})}),
      row("Einsum_scalar", ",ij->ij", {Real({}), Real({2, 3})}),
      row("Einsum_three", "ij,jk,k->i", {Real({2, 3}), Real({3, 2}), Real({2})}),
      row("Einsum_four", "ab,bc,cd,da->", {Real({2, 2}), Real({2, 3}), Real({3, 2}), Real({2, 2})}),
      row("Einsum_diagonal", "ii->i", {Real({3, 3})}).Unknown({0}),
      row("Einsum_trace", "ii", {Real({3, 3})}),
      row("Einsum_space_diagonal", "iii->i", {Real({2, 2, 2})}),
      row("Einsum_two_diagonals", "ijij->ji", {Real({2, 3, 2, 3})}),
      row("Einsum_stacked_diagonals", "...ii->...i", {Real({2, 3, 3})}),
      row("Einsum_diagonal_product", "iij,jk->ik", {Real({2, 2, 3}), Real({3, 2})}),
      row("Einsum_ellipsis", "...ij,jk->...ik", {Real({2, 2, 3}), Real({3, 2})}).Unknown({0}),
      row("Einsum_ellipsis_implicit", "...ij,...jk", {Real({2, 2, 3}), Real({2, 3, 2})}),
      row("Einsum_ellipsis_broadcast", "...ij,...jk->...ik",
          {Real({1, 2, 2, 3}), Real({2, 1, 3, 2})})
          .Unknown({0}),
      row("Einsum_ellipsis_inside", "i...j,k...j->...ik", {Real({2, 2, 3}), Real({2, 1, 3})}),
      row("Einsum_ellipsis_empty", "...i,...i->...", {Real({3}), Real({3})}),
      row("Einsum_ellipsis_alone", "...,...", {Real({2, 3}), Real({1, 3})}),
      row("Einsum_ellipsis_unequal", "...ij,...jk->...ik", {Real({2, 2, 3}), Real({3, 2})})
          .Unknown({0}),
      row("Einsum_ellipsis_unequal_broadcast", "...i,...i->...i",
          {Real({2, 1, 3, 2}), Real({2, 1, 2})}),
      row("Einsum_ellipsis_unequal_inside", "i...j,k...j->k...i",
          {Real({2, 2, 3}), Real({2, 2, 1, 3})}),
      row("Einsum_ellipsis_unequal_implicit", "...j,i...", {Real({2, 3}), Real({2, 2, 2})}),
      row("Einsum_ellipsis_unequal_three", "i...,...,...j->j...",
          {Real({2, 2}), Real({}), Real({2, 1, 3})}),
      row("Einsum_ellipsis_unequal_alone", "a...b,...c->c...", {Real({2, 2, 3}), Real({2, 1, 2})}),
      row("Einsum_ellipsis_unequal_diagonal", "i...i,j...->...j",
          {Real({2, 3, 2}), Real({2, 2, 3})}),
      row("Einsum_ellipsis_unequal_summed", "i...,...->i", {Real({2, 2, 3}), Real({3})}),
      row("Einsum_ellipsis_of_one", "i...,j->...ji", {Real({2, 3, 2}), Real({2})}),
  };
}

std::vector<OpCase> DetCases() {
  return {
      Case("Det", {Real({3, 3})}),
      Case("Det_one", {Real({1, 1})}),
      Case("Det_two", {Real({2, 2})}),
      Case("Det_stack", {Real({2, 1, 3, 3})}).Unknown({0}),
      Case("Det_four", {Real({4, 4}, -1, 1)}),
  };
}

}  // namespace

std::vector<OpCase> MatMulCases() {
  std::vector<OpCase> cases = {
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
  };
  for (auto* more : {EinsumCases, DetCases}) {
    for (OpCase& c : more()) cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace onward
