// SPDX-License-Identifier: Apache-2.0
// The body of DetGrad.
#include <numeric>
#include <vector>

#include "autograd/functions.h"
#include "autograd/shape_expr.h"

namespace onward {
namespace {

// The gradient where only the data tell the rank or the size: the cofactor of x_ij is the
// determinant with row i replaced by the j-th unit vector, which a matrix of one element has, too.
Expr DetGradOfOpenSize(const Expr& dy, const Expr& any) {
  GraphBuilder& b = any.builder();
  const Expr n = Gather(ShapeOf(any), b.Ints({-1}));
  const Expr shape = Concat({ProductOf(DimsBefore(any, -2)), n, n}, 0);
  const Expr x = b.Op("Reshape", {any, shape}, {{"allowzero", 1}});
  const Expr at = CountTo(Squeeze(n, {0}));
  const Expr same = Equal(Unsqueeze(at, {1}), Unsqueeze(at, {0}));
  // [.., i, j, r, c]
  const Expr rows =
      Where(Unsqueeze(same, {1, 3}), Unsqueeze(CastLike(same, x), {0, 2}), Unsqueeze(x, {1, 2}));
  return ReshapeLike(b.Op("Det", {rows}) * Unsqueeze(Flat(dy), {1, 2}), any);
}

// y = det(x);  dx_ij = dy * (-1)^(i+j) * det(x without row i and column j), which also holds
// where x has no inverse, and can be differentiated again.
std::vector<Expr> DetGrad(GraphBuilder& b, const Node& call, const std::vector<Expr>& in) {
  const Expr &dy = in[0], &x = in[1];
  const int rank = x.rank();
  if (rank >= 0 && rank < 2) {
    FailAt(b, call, "needs stacks of matrices");
    return {};
  }
  if (rank < 0 || x.dim(-1) < 0) return {DetGradOfOpenSize(dy, x)};
  if (x.dim(-1) == 0) return {b.Op("Identity", {x})};
  const Expr per_matrix = Unsqueeze(dy, {-1, -2});
  if (x.dim(-1) == 1) return {ExpandLike(per_matrix, x)};
  Expr n = DimScalar(x, -1);
  Expr i = Unsqueeze(CountTo(n), {1});
  Expr k = Unsqueeze(CountTo(n - b.Int(1)), {0});
  // Row i holds the numbers below n but i.
  Expr others = k + Cast(GreaterOrEqual(k, i), DType::kInt64);
  // [.., i, r, j, c], then [.., i, j, r, c].
  Expr minors = Gather(Gather(x, others, rank - 1), others, rank - 2);
  std::vector<int64_t> perm(rank + 2);
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[rank - 1], perm[rank]);
  Expr dets = b.Op("Det", {Transpose(minors, std::move(perm))});
  Expr odd = b.Op("Mod", {i + Unsqueeze(CountTo(n), {0}), b.Int(2)});
  Expr sign = CastLike(b.Int(1) - odd * b.Int(2), x);
  return {WithShapeOf(per_matrix * sign * dets, x)};
}

}  // namespace

void RegisterDetFunctions(FunctionLibrary& library) {
  library.Add("DetGrad", {.body = DetGrad,
                          .output_like = {1},
                          .shape_only = {},
                          .attributes = {},
                          .required = 2,
                          .operands = "T"});
}

}  // namespace onward
