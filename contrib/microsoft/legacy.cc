// SPDX-License-Identifier: Apache-2.0
// Experimental operators that the standard dropped at opset 10 and onnxruntime still runs.
#include <vector>

#include "absl/strings/str_cat.h"
#include "contrib/microsoft/families.h"

namespace onward::microsoft {
namespace {

double Number(const Call& call, const char* attribute, float otherwise) {
  return static_cast<double>(call.node().Float(attribute, otherwise));
}

// Y = alpha X + beta
std::vector<Expr> Affine(const Call& call) {
  return {call.in(0) * Number(call, "alpha", 1) + Number(call, "beta", 0)};
}

// Y = alpha tanh(beta X)
std::vector<Expr> ScaledTanh(const Call& call) {
  return {Tanh(call.in(0) * Number(call, "beta", 0)) * Number(call, "alpha", 0)};
}

// Y = alpha log(1 + exp(beta X))
std::vector<Expr> ParametricSoftplus(const Call& call) {
  return {call.b().Op("Softplus", {call.in(0) * Number(call, "beta", 0)}) *
          Number(call, "alpha", 0)};
}

std::vector<Expr> Scale(const Call& call) { return {call.in(0) * Number(call, "scale", 1)}; }

// Pictures [N, C, H, W] scaled, with a bias per channel
std::vector<Expr> ImageScaler(const Call& call) {
  if (!call.HasRank(0, {4})) return {};
  const std::vector<float> bias = call.Floats("bias");
  const Expr scaled = call.in(0) * Number(call, "scale", 1);
  if (bias.empty()) return {scaled};
  const Expr channels = call.b().Constant(
      Tensor::FromValues<float>(Shape{static_cast<int64_t>(bias.size()), 1, 1}, bias));
  return {scaled + CastLike(channels, scaled)};
}

// Pictures without their border (left, top, right, bottom), or of size `scale` from its corner
std::vector<Expr> Crop(const Call& call) {
  if (!call.HasRank(0, {4})) return {};
  const std::vector<int64_t> border = call.node().Ints("border"), size = call.node().Ints("scale");
  constexpr int64_t kMost = int64_t{1} << 30;
  bool fits = border.size() == 4 && (size.empty() || size.size() == 2);
  for (const int64_t b : border) fits = fits && b >= 0 && b < kMost;
  for (const int64_t s : size) fits = fits && s > 0 && s < kMost;
  if (!fits) return call.Refuse("border takes four numbers, scale two or none");
  const int64_t bottom = border[3] == 0 ? kMost : -border[3];
  const int64_t right = border[2] == 0 ? kMost : -border[2];
  GraphBuilder& b = call.b();
  const Expr ends =
      size.empty() ? b.Ints({bottom, right}) : b.Ints({border[1] + size[0], border[0] + size[1]});
  return {Slice(call.in(0), b.Ints({border[1], border[0]}), ends, b.Ints({2, 3}))};
}

}  // namespace

void RegisterLegacy(FunctionLibrary& library) {
  library.Add("Affine", Define(Affine, 1, "T"), kDomain);
  library.Add("ScaledTanh", Define(ScaledTanh, 1, "T"), kDomain);
  library.Add("ParametricSoftplus", Define(ParametricSoftplus, 1, "T"), kDomain);
  library.Add("Scale", Define(Scale, 1, "T"), kDomain);
  library.Add("ImageScaler", Define(ImageScaler, 1, "T"), kDomain);
  library.Add("Crop", Define(Crop, 1), kDomain);
}

}  // namespace onward::microsoft
