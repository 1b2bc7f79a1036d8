// SPDX-License-Identifier: Apache-2.0
// Gradient rules of matrix products. Products of two matrices become Gemm with
// transposition flags, so nothing is transposed in memory.
#include <numeric>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "autograd/rule.h"
#include "autograd/rules/einsum.h"
#include "autograd/shape_expr.h"

namespace onward {
namespace {

enum class Turn { kNo, kYes };

// alpha * a' @ b' for matrices, each transposed where its flag says so.
Expr Product(const Expr& a, Turn turn_a, const Expr& b, Turn turn_b, float alpha = 1) {
  Attributes attributes;
  if (alpha != 1) attributes["alpha"] = alpha;
  if (turn_a == Turn::kYes) attributes["transA"] = 1;
  if (turn_b == Turn::kYes) attributes["transB"] = 1;
  return a.builder().Op("Gemm", {a, b}, std::move(attributes));
}

// Stacked matrices with their last two axes exchanged.
Expr TurnLastTwo(const Expr& e) {
  std::vector<int64_t> perm(e.rank());
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return Transpose(e, std::move(perm));
}

// All but the last dimension joined: [..., k] as [m, k].
Expr AsRows(const Expr& e) {
  if (e.rank() == 2) return e;
  return Reshape(e, JoinVectors(e.builder(), {e.builder().Ints({-1}), DimVector(e, -1)}));
}

// A is 1-D, B is [..., K, N], Y is [..., N].
//   dA[k] = sum over n, ... of B[..., k, n] dY[..., n];  dB = A[k] dY[..., n]
Grads VectorTimesMatrix(const Vjp& v) {
  Grads grads(2);
  if (v.needs(0)) grads[0] = Squeeze(MatMul(v.x(1), Unsqueeze(v.dy(), {-1})), {-1});
  if (v.needs(1)) {
    grads[1] = WithShapeOf(Unsqueeze(v.x(0), {1}) * Unsqueeze(v.dy(), {-2}), v.x(1));
  }
  return grads;
}

// A is [..., M, K], B is 1-D, Y is [..., M].
//   dA = dY[..., m] B[k];  dB[k] = sum over m, ... of A[..., m, k] dY[..., m]
Grads MatrixTimesVector(const Vjp& v) {
  Grads grads(2);
  if (v.needs(0)) grads[0] = WithShapeOf(Unsqueeze(v.dy(), {-1}) * v.x(1), v.x(0));
  if (v.needs(1)) {
    Expr column = Product(AsRows(v.x(0)), Turn::kYes, Reshape(v.dy(), {-1, 1}), Turn::kNo);
    grads[1] = WithShapeOf(ReshapeLike(column, v.x(1)), v.x(1));
  }
  return grads;
}

// A is [..., M, K], B is [K, N]: one product of matrices with all rows of A.
//   dA = dY B^T;  dB = A^T dY
Grads RowsTimesMatrix(const Vjp& v) {
  Grads grads(2);
  Expr dy = AsRows(v.dy());
  if (v.needs(0)) {
    Expr rows = Product(dy, Turn::kNo, v.x(1), Turn::kYes);
    grads[0] = WithShapeOf(v.x(0).rank() == 2 ? rows : ReshapeLike(rows, v.x(0)), v.x(0));
  }
  if (v.needs(1)) grads[1] = Product(AsRows(v.x(0)), Turn::kYes, dy, Turn::kNo);
  return grads;
}

// Y = A B;  dA = dY B^T, dB = A^T dY; broadcast batch dimensions are summed by
// the engine
Grads MatMulVjp(const Vjp& v) {
  const int a = v.x(0).rank(), b = v.x(1).rank();
  if (a < 1 || b < 1) {
    return {v.b().Fail(absl::UnimplementedError(
        absl::StrCat("the gradient of MatMul needs the ranks of '", v.x(0).name(), "' and '",
                     v.x(1).name(), "'; declare the shapes of the model's inputs")))};
  }
  if (a == 1 && b == 1) return {v.dy() * v.x(1), v.dy() * v.x(0)};
  if (a == 1) return VectorTimesMatrix(v);
  if (b == 1) return MatrixTimesVector(v);
  if (b == 2) return RowsTimesMatrix(v);
  Grads grads(2);
  if (v.needs(0)) grads[0] = MatMul(v.dy(), TurnLastTwo(v.x(1)));
  if (v.needs(1)) grads[1] = MatMul(TurnLastTwo(v.x(0)), v.dy());
  return grads;
}

// Y = alpha * A' B' + beta * C, A' being A or A^T (transA), B' likewise
//   dA' = alpha * dY B'^T, dB' = alpha * A'^T dY, dC = beta * dY
Grads GemmVjp(const Vjp& v) {
  const bool trans_a = v.attr("transA", 0) != 0, trans_b = v.attr("transB", 0) != 0;
  const Turn same_b = trans_b ? Turn::kYes : Turn::kNo, other_b = trans_b ? Turn::kNo : Turn::kYes;
  const Turn same_a = trans_a ? Turn::kYes : Turn::kNo, other_a = trans_a ? Turn::kNo : Turn::kYes;
  const float alpha = v.attr_float("alpha", 1), beta = v.attr_float("beta", 1);
  Grads grads(v.inputs());
  if (v.needs(0)) {
    grads[0] = trans_a ? Product(v.x(1), same_b, v.dy(), Turn::kYes, alpha)
                       : Product(v.dy(), Turn::kNo, v.x(1), other_b, alpha);
  }
  if (v.needs(1)) {
    grads[1] = trans_b ? Product(v.dy(), Turn::kYes, v.x(0), same_a, alpha)
                       : Product(v.x(0), other_a, v.dy(), Turn::kNo, alpha);
  }
  if (v.has_x(2) && v.needs(2)) grads[2] = beta == 1 ? v.dy() : v.dy() * beta;
  return grads;
}

// y = det(x);  dx = dy * cofactors(x), that is dy * y * x^-T where x can be inverted
Grads DetVjp(const Vjp& v) { return {v.b().Op("DetGrad", {v.dy(), v.x()}, {}, kOnwardDomain)}; }

}  // namespace

void RegisterMatMulRules(RuleTable& table) {
  table.Add("MatMul", MatMulVjp);
  table.Add("Gemm", GemmVjp);
  table.Add("Einsum", EinsumVjp);
  table.Add("Det", DetVjp);
}

}  // namespace onward
