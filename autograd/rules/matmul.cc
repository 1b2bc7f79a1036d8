// SPDX-License-Identifier: Apache-2.0
// Gradient rules of matrix products. Products of two matrices become Gemm with
// transposition flags, so nothing is transposed in memory.
#include <vector>

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

// A product whose ranks only the data tell. As the standard says, a vector on the left is a row
// and one on the right a column, whose axis the result does not have.
class AnyRank {
 public:
  explicit AnyRank(const Vjp& v)
      : v_(v), b_(v.b()), a_shape_(ShapeVector(v.x(0))), b_shape_(ShapeVector(v.x(1))) {
    a_ = Reshape(v.x(0), Concat({MissingOnes(a_shape_), a_shape_}, 0));
    bs_ = Reshape(v.x(1), Concat({b_shape_, MissingOnes(b_shape_)}, 0));
    const Expr y = ShapeVector(v.dy());
    const Expr batch = Part(y, 0, SizeOf(y) - OwnAxis(a_shape_) - OwnAxis(b_shape_));
    const Expr rows = Last(ShapeVector(a_), 2), columns = Last(ShapeVector(bs_), 1);
    dy_ = Reshape(v.dy(), Concat({batch, rows, columns}, 0));
  }

  Grads Run() const {
    Grads grads(2);
    if (v_.needs(0)) grads[0] = Reshape(FitTo(MatMul(dy_, TurnLastTwo(bs_)), a_), a_shape_);
    if (v_.needs(1)) grads[1] = Reshape(FitTo(MatMul(TurnLastTwo(a_), dy_), bs_), b_shape_);
    return grads;
  }

 private:
  Expr Part(const Expr& vector, int64_t begin, const Expr& end) const {
    return Slice(vector, b_.Ints({begin}), Reshape(end, {1}), b_.Ints({0}));
  }
  // The k-th element from the end.
  Expr Last(const Expr& vector, int64_t k) const { return Gather(vector, b_.Ints({-k})); }
  // As many ones as axes are missing to a matrix.
  Expr MissingOnes(const Expr& shape) const {
    return Expand(b_.Ints({1}), Reshape(Max(b_.Int(2) - SizeOf(shape), b_.Int(0)), {1}));
  }
  // Whether the result has an axis of its own for the operand: 0 or 1.
  Expr OwnAxis(const Expr& shape) const {
    return Cast(Greater(SizeOf(shape), b_.Int(1)), DType::kInt64);
  }

  const Vjp& v_;
  GraphBuilder& b_;
  Expr a_shape_, b_shape_, a_, bs_, dy_;
};

// Y = A B;  dA = dY B^T, dB = A^T dY; broadcast batch dimensions are summed by
// the engine
Grads MatMulVjp(const Vjp& v) {
  const int a = v.x(0).rank(), b = v.x(1).rank();
  if (a < 1 || b < 1) return AnyRank(v).Run();
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
