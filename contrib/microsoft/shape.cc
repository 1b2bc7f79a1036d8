// SPDX-License-Identifier: Apache-2.0
// Operators that move elements, most of them older forms of the standard's own.
#include "absl/strings/str_cat.h"
#include "contrib/microsoft/families.h"

namespace onward::microsoft {
namespace {

Expr AsInt64(const Expr& x) { return Cast(x, DType::kInt64); }
Expr AsScalar(const Expr& x) { return Reshape(x, std::vector<int64_t>{}); }

std::vector<Expr> ExpandDims(const Call& call) {
  return {call.b().Op("Unsqueeze", {call.in(0), Reshape(AsInt64(call.in(1)), {1})})};
}

std::vector<Expr> Trilu(const Call& call) {
  return {call.b().Op("Trilu", {call.in(0), call.in(1)}, call.Pick({"upper"}))};
}

// In the order of their first appearance: y, where each element of x is in y, how many
std::vector<Expr> Unique(const Call& call) {
  const std::vector<Expr> all = call.b().Ops("Unique", {call.in(0)}, 4, {{"sorted", 0}});
  return {all[0], all[2], all[3]};
}

std::vector<Expr> GatherND(const Call& call) {
  return {call.b().Op("GatherND", {call.in(0), AsInt64(call.in(1))})};
}

std::vector<Expr> Pad(const Call& call) {
  const Expr value = call.in(2).defined() ? AsScalar(call.in(2)) : Expr();
  return {call.b().Op("Pad", {call.in(0), Reshape(call.in(1), {-1}), value}, call.Pick({"mode"}))};
}

std::vector<Expr> Range(const Call& call) {
  const Expr start = AsScalar(call.in(0));
  const Expr step = call.in(2).defined() ? AsScalar(call.in(2)) : call.b().Scalar(1, start);
  return {call.b().Op("Range", {start, AsScalar(call.in(1)), step})};
}

// The rows of `weight`; the other operands are about its gradient in training.
std::vector<Expr> TorchEmbedding(const Call& call) { return {Gather(call.in(0), call.in(1))}; }

std::vector<Expr> GridSample(const Call& call) {
  Attributes attributes = call.Pick({"align_corners", "padding_mode"});
  std::string mode = call.node().String("mode", "bilinear");
  if (call.opset_has(20)) mode = mode == "bilinear" ? "linear" : mode == "bicubic" ? "cubic" : mode;
  attributes["mode"] = mode;
  return {call.b().Op("GridSample", {call.in(0), call.in(1)}, std::move(attributes))};
}

// C = A B (or A conj(B)) of complex numbers, real and imaginary parts along the last axis
std::vector<Expr> ComplexProduct(const Call& call, double sign) {
  const auto part = [](const Expr& x, int64_t i) { return SliceAxis(x, -1, i, i + 1); };
  const Expr ar = part(call.in(0), 0), ai = part(call.in(0), 1);
  const Expr br = part(call.in(1), 0), bi = part(call.in(1), 1) * sign;
  return {Concat({ar * br - ai * bi, ar * bi + ai * br}, -1)};
}
std::vector<Expr> ComplexMul(const Call& call) { return ComplexProduct(call, 1); }
std::vector<Expr> ComplexMulConj(const Call& call) { return ComplexProduct(call, -1); }

}  // namespace

void RegisterShapes(FunctionLibrary& library) {
  library.Add("ExpandDims", Define(ExpandDims, 2, ".I"), kDomain);
  library.Add("Trilu", Define(Trilu, 1, ".I"), kDomain);
  library.Add("Unique", Define(Unique, 1), kDomain);
  library.Add("GatherND", Define(GatherND, 2, ".I"), kDomain);
  library.Add("Pad", Define(Pad, 2, ".I."), kDomain);
  library.Add("Range", Define(Range, 2), kDomain);
  library.Add("TorchEmbedding", Define(TorchEmbedding, 2, ".I.."), kDomain);
  library.Add("GridSample", Define(GridSample, 2, "T"), kDomain);
  library.Add("ComplexMul", Define(ComplexMul, 2, "T"), kDomain);
  library.Add("ComplexMulConj", Define(ComplexMulConj, 2, "T"), kDomain);
}

}  // namespace onward::microsoft
