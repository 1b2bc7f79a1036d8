// SPDX-License-Identifier: Apache-2.0
// Activations, alone and fused with a bias.
#include <map>

#include "absl/strings/str_cat.h"
#include "contrib/microsoft/families.h"

namespace onward::microsoft {
namespace {

// Y = gelu(X)
std::vector<Expr> GeluBody(const Call& call) { return {Gelu(call.in(0))}; }

// C = gelu(A + B)
std::vector<Expr> BiasGelu(const Call& call) { return {Gelu(call.in(0) + call.in(1))}; }

// Y = gelu(X + bias), by tanh
std::vector<Expr> FastGelu(const Call& call) {
  const Expr x = call.in(1).defined() ? call.in(0) + call.in(1) : call.in(0);
  return {Gelu(x, true)};
}

// Y = gelu(X W + bias), by tanh
std::vector<Expr> GemmFastGelu(const Call& call) {
  Expr x = MatMul(call.in(0), call.in(1));
  if (call.in(2).defined()) x = x + call.in(2);
  return {Gelu(x, true)};
}

// Y = X sigmoid(alpha X)
std::vector<Expr> QuickGelu(const Call& call) {
  const Expr x = call.in(0);
  return {x * Sigmoid(x * static_cast<double>(call.node().Float("alpha", 1.702f)))};
}

// Y = left gelu(right), the halves of X + bias along the last axis
std::vector<Expr> BiasSplitGelu(const Call& call) {
  std::vector<Expr> halves =
      call.b().Ops("Split", {call.in(0) + call.in(1)}, 2, {{"axis", -1}, {"num_outputs", 2}});
  return {halves[0] * Gelu(halves[1])};
}

// Y = X + bias + skip
std::vector<Expr> BiasAdd(const Call& call) { return {call.in(0) + call.in(1) + call.in(2)}; }

// output = softmax(data + bias) over all axes from `axis` on
std::vector<Expr> BiasSoftmax(const Call& call) {
  const Expr x = call.in(0) + call.in(1);
  if (x.rank() < 1) return call.Refuse("the rank of input 0 is not known; declare its shape");
  const int64_t axis = call.IntIn("axis", 1, -x.rank(), x.rank() - 1);
  if (axis == -1 || axis == x.rank() - 1) return {call.b().Op("Softmax", {x}, {{"axis", -1}})};
  const Expr flat = call.b().Op("Flatten", {x}, {{"axis", axis}});
  return {ReshapeLike(call.b().Op("Softmax", {flat}, {{"axis", -1}}), x)};
}

// output = dropout(data + bias) + residual
std::vector<Expr> BiasDropout(const Call& call) {
  const Expr x = call.in(0) + call.in(1);
  std::vector<Expr> dropped = call.b().Ops("Dropout", {x, call.in(3), call.in(4)},
                                           call.wants(1) ? 2 : 1, call.Pick({"seed"}));
  if (call.in(2).defined()) dropped[0] = dropped[0] + call.in(2);
  return dropped;
}

// Activations of the standard, with their parameters in the order of activation_params.
const std::map<std::string, std::vector<std::string>>& KnownActivations() {
  static const auto* const known = new std::map<std::string, std::vector<std::string>>{
      {"Elu", {"alpha"}},
      {"HardSigmoid", {"alpha", "beta"}},
      {"LeakyRelu", {"alpha"}},
      {"LogSoftmax", {"axis"}},
      {"Relu", {}},
      {"Selu", {"alpha", "gamma"}},
      {"Sigmoid", {}},
      {"Softmax", {"axis"}},
      {"Softplus", {}},
      {"Softsign", {}},
      {"Tanh", {}},
      {"ThresholdedRelu", {"alpha"}},
  };
  return *known;
}

}  // namespace

Expr Gelu(const Expr& x, bool by_tanh) {
  GraphBuilder& b = x.builder();
  if (b.graph().opset() >= 20) {
    return b.Op("Gelu", {x}, {{"approximate", by_tanh ? "tanh" : "none"}});
  }
  constexpr double kInverseRoot2 = 0.7071067811865476, kRoot2OverPi = 0.7978845608028654;
  const Expr s = by_tanh ? Tanh((x + x * x * x * 0.044715) * kRoot2OverPi) : Erf(x * kInverseRoot2);
  return x * 0.5 * (s + 1);
}

Expr Activated(const Call& call, const Expr& x) {
  const std::string activation = call.node().String("activation", "");
  if (activation.empty() && !call.node().Has("activation")) return x;
  GraphBuilder& b = call.b();
  const std::vector<float> listed = call.Floats("activation_params");
  if (activation == "Clip") {
    if (listed.size() != 2) return call.Fail("activation Clip needs two activation_params");
    return b.Op("Clip", {x, b.Scalar(listed[0], x), b.Scalar(listed[1], x)});
  }
  auto known = KnownActivations().find(activation);
  if (known == KnownActivations().end()) {
    return call.Fail(absl::StrCat("activation '", activation, "' is not known"));
  }
  const std::vector<std::string>& names = known->second;
  if (listed.size() > names.size()) {
    return call.Fail(absl::StrCat("activation ", activation, " has ", names.size(),
                                  " parameters, not ", listed.size()));
  }
  Attributes attributes;
  for (size_t i = 0; i < names.size(); ++i) {
    auto single = call.node().attributes.find("activation_" + names[i]);
    if (single != call.node().attributes.end()) attributes[names[i]] = single->second;
    if (i < listed.size()) attributes[names[i]] = listed[i];
  }
  return b.Op(activation, {x}, std::move(attributes));
}

void RegisterActivations(FunctionLibrary& library) {
  library.Add("Gelu", Define(GeluBody, 1, "T"), kDomain);
  library.Add("BiasGelu", Define(BiasGelu, 2, "T"), kDomain);
  library.Add("FastGelu", Define(FastGelu, 1, "T"), kDomain);
  library.Add("GemmFastGelu", Define(GemmFastGelu, 2, "T"), kDomain);
  library.Add("QuickGelu", Define(QuickGelu, 1, "T"), kDomain);
  library.Add("BiasSplitGelu", Define(BiasSplitGelu, 2, "T"), kDomain);
  library.Add("BiasAdd", Define(BiasAdd, 3, "T"), kDomain);
  library.Add("BiasSoftmax", Define(BiasSoftmax, 2, "T"), kDomain);
  library.Add("BiasDropout", Define(BiasDropout, 2, "TTTF."), kDomain);
}

}  // namespace onward::microsoft
