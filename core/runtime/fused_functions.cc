// SPDX-License-Identifier: Apache-2.0
// Bodies of the fused operators: what they replaced.
#include "core/runtime/fuse.h"

namespace onward {
namespace {

Expr Activated(GraphBuilder& b, const Node& call, const Expr& y) {
  const std::string activation = call.String("activation", "");
  if (activation == "Relu") return b.Op("Relu", {y});
  if (activation != "Clip") return y;
  return b.Op("Clip", {y, b.Scalar(call.Float("activation_low", 0), y),
                       b.Scalar(call.Float("activation_high", 0), y)});
}

Attributes Without(const Node& call, std::initializer_list<const char*> names) {
  Attributes attributes = call.attributes;
  for (const char* name : names) attributes.erase(name);
  return attributes;
}

FunctionDef::Body BodyOf(std::string op) {
  return [op = std::move(op)](GraphBuilder& b, const Node& call, const std::vector<Expr>& in) {
    const Attributes attributes =
        Without(call, {"activation", "activation_low", "activation_high"});
    const auto given = [&](size_t i) { return i < in.size() && in[i].defined(); };
    std::vector<Expr> operands = {in[0], in[1]};
    if (given(2) && op != "MatMul") operands.push_back(in[2]);
    Expr y = b.Op(op, operands, attributes);
    if (given(2) && op == "MatMul") y = y + in[2];
    if (given(3)) y = y + in[3];
    return std::vector<Expr>{Activated(b, call, y)};
  };
}

}  // namespace

void RegisterFusedFunctions(FunctionLibrary& library) {
  for (const char* op : {"Conv", "MatMul", "Gemm"}) {
    library.Add(
        std::string("Fused") + op,
        {.body = BodyOf(op), .output_like = {}, .shape_only = {}, .attributes = {}, .required = 2});
  }
}

}  // namespace onward
