// SPDX-License-Identifier: Apache-2.0
// Operators on numbers of eight bits, element by element: real numbers from them, the
// operator, eight bits again.
#include "absl/strings/str_cat.h"
#include "contrib/microsoft/families.h"

namespace onward::microsoft {
namespace {

// Operands `at`, at + 1 and at + 2 of a call: numbers, scale and zero point.
Expr Real(const Call& call, size_t at) {
  return DequantizeTensor(call.in(at), call.in(at + 1), call.in(at + 2));
}

// The result in the type of operand `like`, by the scale and zero point at `at`.
std::vector<Expr> Quantized(const Call& call, const Expr& y, size_t at, size_t like = 0) {
  return {QuantizeTensor(y, call.in(at), call.in(at + 1), call.in(like).dtype())};
}

// Tensors of one element serve as scalars here.
Expr OneNumber(const Expr& x) {
  return !x.defined() || x.rank() == 0 ? x : Reshape(x, std::vector<int64_t>{});
}

// C = A op B
std::vector<Expr> Arithmetic(const Call& call, const char* op) {
  if (!call.Given({3, 4, 6})) return {};
  return Quantized(call, call.b().Op(op, {Real(call, 0), Real(call, 3)}), 6);
}
std::vector<Expr> QLinearAdd(const Call& call) { return Arithmetic(call, "Add"); }
std::vector<Expr> QLinearMul(const Call& call) { return Arithmetic(call, "Mul"); }

// Y = op(X)
std::vector<Expr> Applied(const Call& call, const char* op, Attributes attributes) {
  if (!call.Given({3})) return {};
  return Quantized(call, call.b().Op(op, {Real(call, 0)}, std::move(attributes)), 3);
}
std::vector<Expr> QLinearSigmoid(const Call& call) { return Applied(call, "Sigmoid", {}); }
std::vector<Expr> QLinearLeakyRelu(const Call& call) {
  return Applied(call, "LeakyRelu", call.Pick({"alpha"}));
}

// Over one axis from opset 13 on, over all axes from it before
std::vector<Expr> QLinearSoftmax(const Call& call) {
  const int rank = call.in(0).rank();
  if (!call.HasRank(0, {1, 2, 3, 4, 5, 6})) return {};
  const int64_t axis = call.IntIn("axis", -1, -rank, rank - 1);
  const int64_t opset = call.RequiredInt("opset", 1, kCanonicalOpset);
  if (!call.ok()) return {};
  if (opset >= 13 || axis == -1 || axis == rank - 1) {
    return Applied(call, "Softmax", {{"axis", axis}});
  }
  if (!call.Given({3})) return {};
  const Expr x = Real(call, 0);
  const Expr flat = call.b().Op("Flatten", {x}, {{"axis", axis}});
  return Quantized(call, ReshapeLike(call.b().Op("Softmax", {flat}, {{"axis", -1}}), x), 3);
}

std::vector<Expr> QLinearReduceMean(const Call& call) {
  if (!call.Given({3})) return {};
  const std::vector<int64_t> axes = call.node().Ints("axes");
  const bool keep = call.Flag("keepdims", true);
  const Expr x = Real(call, 0);
  const Expr mean = axes.empty() ? call.b().Op("ReduceMean", {x}, {{"keepdims", keep ? 1 : 0}})
                                 : ReduceMean(x, axes, keep);
  return Quantized(call, mean, 3);
}

// Y_scale, Y_zero_point, then for each part its numbers, scale and zero point
std::vector<Expr> QLinearConcat(const Call& call) {
  if (!call.node().Has("axis")) return call.Refuse("attribute axis is missing");
  std::vector<Expr> parts;
  for (size_t at = 2; at < call.inputs(); at += 3) {
    const int i = static_cast<int>(at);
    if (!call.Given({i, i + 1, i + 2})) return {};
    parts.push_back(Real(call, at));
  }
  return Quantized(call, Concat(std::move(parts), call.node().Int("axis", 0)), 0, 2);
}

std::vector<Expr> QLinearWhere(const Call& call) {
  return Quantized(call, Where(call.in(0), Real(call, 1), Real(call, 4)), 7, 1);
}

// As the standard has them, without an axis per tensor.
std::vector<Expr> QuantizeLinear(const Call& call) {
  return {call.b().Op("QuantizeLinear", {call.in(0), call.in(1), call.in(2)}, call.Pick({"axis"}))};
}
std::vector<Expr> DequantizeLinear(const Call& call) {
  return {
      call.b().Op("DequantizeLinear", {call.in(0), call.in(1), call.in(2)}, call.Pick({"axis"}))};
}

}  // namespace

Expr DequantizeTensor(const Expr& q, const Expr& scale, const Expr& zero) {
  return q.builder().Op("DequantizeLinear", {q, OneNumber(scale), OneNumber(zero)});
}

Expr QuantizeTensor(const Expr& x, const Expr& scale, const Expr& zero, DType otherwise) {
  GraphBuilder& b = x.builder();
  Expr point = OneNumber(zero);
  // Where there is none the standard gives uint8.
  if (!point.defined() && otherwise == DType::kInt8) {
    point = b.Constant(Tensor::Scalar<int8_t>(0));
  }
  return b.Op("QuantizeLinear", {x, OneNumber(scale), point});
}

void RegisterQuantized(FunctionLibrary& library) {
  library.Add("QLinearAdd", Define(QLinearAdd, 2, "ITIITITI"), kDomain);
  library.Add("QLinearMul", Define(QLinearMul, 2, "ITIITITI"), kDomain);
  library.Add("QLinearSigmoid", Define(QLinearSigmoid, 2, "ITITI"), kDomain);
  library.Add("QLinearLeakyRelu", Define(QLinearLeakyRelu, 2, "ITITI"), kDomain);
  library.Add("QLinearSoftmax", Define(QLinearSoftmax, 2, "ITITI"), kDomain);
  library.Add("QLinearReduceMean", Define(QLinearReduceMean, 2, "ITITI"), kDomain);
  library.Add("QLinearConcat", Define(QLinearConcat, 5), kDomain);
  library.Add("QLinearWhere", Define(QLinearWhere, 9, ".ITIITITI"), kDomain);
  library.Add("QuantizeLinear", Define(QuantizeLinear, 2, "TTI"), kDomain);
  library.Add("DequantizeLinear", Define(DequantizeLinear, 2, "ITI"), kDomain);
}

}  // namespace onward::microsoft
