// SPDX-License-Identifier: Apache-2.0
// Products of matrices: fused with transpositions and what follows, and of quantized ones.
#include <numeric>
#include <utility>

#include "contrib/microsoft/families.h"

namespace onward::microsoft {
namespace {

// The matrices of operand i as the product takes them: with `batch` its first axis stands
// before the last one, then `turned` exchanges the last two. One axis alone has neither.
Expr Arranged(const Call& call, size_t i, bool turned, bool batch) {
  const Expr x = call.in(i);
  if (!turned && !batch) return x;
  const int rank = x.rank();
  if (rank < 0) {
    return call.Fail("the ranks of the operands are not known; declare their shapes");
  }
  if (rank < 2) return x;
  std::vector<int64_t> perm(rank);
  std::iota(perm.begin(), perm.end(), 0);
  if (batch) {
    perm.erase(perm.begin());
    perm.insert(perm.end() - 1, 0);
  }
  if (turned) std::swap(perm[rank - 1], perm[rank - 2]);
  return Transpose(x, std::move(perm));
}

// Y = activation(alpha * A B)
std::vector<Expr> FusedMatMul(const Call& call) {
  const Expr a = Arranged(call, 0, call.Flag("transA"), call.Flag("transBatchA"));
  const Expr b = Arranged(call, 1, call.Flag("transB"), call.Flag("transBatchB"));
  if (!call.ok()) return {};
  Expr y = MatMul(a, b);
  if (const float alpha = call.node().Float("alpha", 1); alpha != 1) {
    y = y * static_cast<double>(alpha);
  }
  return {Activated(call, y)};
}

// Y = activation(alpha * A B + beta * C)
std::vector<Expr> FusedGemm(const Call& call) {
  return {Activated(call, call.b().Op("Gemm", {call.in(0), call.in(1), call.in(2)},
                                      call.Pick({"alpha", "beta", "transA", "transB"})))};
}

// Y = (A - a_zero_point) * a_scale  (B - b_zero_point) * b_scale + bias
std::vector<Expr> MatMulIntegerToFloat(const Call& call) {
  const Expr scale = call.in(2);
  Expr y = MatMul(Dequantized(call.in(0), scale, call.in(4), scale),
                  Dequantized(call.in(1), call.in(3), call.in(5), scale));
  if (call.in(6).defined()) y = y + call.in(6);
  return {y};
}

// The same with A brought to eight bits first, so that a gradient passes straight through.
std::vector<Expr> DynamicQuantizeMatMul(const Call& call) {
  const std::vector<Expr> a = call.b().Ops("DynamicQuantizeLinear", {call.in(0)}, 3);
  Expr y = MatMul(DequantizeTensor(a[0], a[1], a[2]),
                  Dequantized(call.in(1), call.in(2), call.in(3), call.in(0)));
  if (call.in(4).defined()) y = y + call.in(4);
  return {y};
}

// Y = alpha * A B + C, where C counts in a_scale * b_scale; quantized where y_scale is given
std::vector<Expr> QGemm(const Call& call) {
  if (!call.HasRank(0, {2}) || !call.HasRank(3, {2})) return {};
  const Expr a_scale = call.in(1), b_scale = call.in(4);
  const auto turned = [&](const Expr& x, const char* flag) {
    return call.Flag(flag) ? Transpose(x, {1, 0}) : x;
  };
  const Expr a = Dequantized(turned(call.in(0), "transA"), a_scale, call.in(2), a_scale);
  const Expr b = Dequantized(turned(call.in(3), "transB"), b_scale, call.in(5), a_scale);
  Expr y = MatMul(a, b);
  if (call.in(6).defined()) y = y + CastLike(call.in(6), a_scale) * (a_scale * b_scale);
  if (const float alpha = call.node().Float("alpha", 1); alpha != 1) {
    y = y * static_cast<double>(alpha);
  }
  if (!call.in(7).defined()) return {y};
  return {QuantizeTensor(y, call.in(7), call.in(8), call.in(0).dtype())};
}

// C = the distance of each row of A from each row of B
std::vector<Expr> CDist(const Call& call) {
  const Expr apart = Unsqueeze(call.in(0), {1}) - Unsqueeze(call.in(1), {0});
  const Expr squares = ReduceSum(apart * apart, {-1}, false);
  const std::string metric = call.node().String("metric", "sqeuclidean");
  if (metric == "sqeuclidean") return {squares};
  if (metric == "euclidean") return {Sqrt(squares)};
  return call.Refuse("metric is '" + metric + "', expected euclidean or sqeuclidean");
}

}  // namespace

Expr Dequantized(const Expr& q, const Expr& scale, const Expr& zero, const Expr& like) {
  Expr x = CastLike(q, like);
  if (zero.defined()) x = x - CastLike(zero, like);
  return x * scale;
}

void RegisterMatMuls(FunctionLibrary& library) {
  library.Add("FusedMatMul", Define(FusedMatMul, 2, "T"), kDomain);
  library.Add("TransposeMatMul", Define(FusedMatMul, 2, "T"), kDomain);
  library.Add("FusedMatMulActivation", Define(FusedMatMul, 2, "T"), kDomain);
  library.Add("FusedGemm", Define(FusedGemm, 2, "T"), kDomain);
  library.Add("MatMulIntegerToFloat", Define(MatMulIntegerToFloat, 4, "IITTIIT"), kDomain);
  library.Add("DynamicQuantizeMatMul", Define(DynamicQuantizeMatMul, 3, "TITIT"), kDomain);
  library.Add("QGemm", Define(QGemm, 6, "ITIITIITI"), kDomain);
  library.Add("CDist", Define(CDist, 2, "T"), kDomain);
}

}  // namespace onward::microsoft
