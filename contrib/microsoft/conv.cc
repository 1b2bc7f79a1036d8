// SPDX-License-Identifier: Apache-2.0
// Convolutions and pools: fused with what follows, and with the channels last.
#include "contrib/microsoft/families.h"

namespace onward::microsoft {
namespace {

Attributes ConvAttributes(const Call& call) {
  return call.Pick({"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"});
}

// Y = activation(conv(X, W) + B + Z)
std::vector<Expr> FusedConv(const Call& call) {
  Expr y = call.b().Op("Conv", {call.in(0), call.in(1), call.in(2)}, ConvAttributes(call));
  if (call.in(3).defined()) y = y + call.in(3);
  return {Activated(call, y)};
}

// The same of [N, .., C]; the weights stay [M, C, ..].
std::vector<Expr> NhwcConv(const Call& call) {
  if (!call.HasRank(0, {3, 4, 5})) return {};
  Expr y = call.b().Op("Conv", {ChannelsFirst(call.in(0)), call.in(1), call.in(2)},
                       ConvAttributes(call));
  if (!call.ok() || y.rank() < 3) return call.Refuse("the weights have an unknown rank");
  y = ChannelsLast(y);
  if (call.in(3).defined()) y = y + call.in(3);
  return {Activated(call, y)};
}

std::vector<Expr> NhwcMaxPool(const Call& call) {
  if (!call.HasRank(0, {3, 4, 5})) return {};
  const Expr y = call.b().Op(
      "MaxPool", {ChannelsFirst(call.in(0))},
      call.Pick({"auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "strides"}));
  if (!call.ok()) return {};
  return {ChannelsLast(y)};
}

}  // namespace

void RegisterConvolutions(FunctionLibrary& library) {
  library.Add("FusedConv", Define(FusedConv, 2, "T"), kDomain);
  library.Add("NhwcConv", Define(NhwcConv, 2, "T"), kDomain);
  library.Add("NhwcFusedConv", Define(NhwcConv, 2, "T"), kDomain);
  library.Add("NhwcMaxPool", Define(NhwcMaxPool, 1), kDomain);
}

}  // namespace onward::microsoft
