// SPDX-License-Identifier: Apache-2.0
// Optimizer steps in which a row without a gradient stays as it is, and what updates the
// other rows alone: SgdRowsStep (R, X, rows, sums) and AdagradRowsStep (R, T, X, rows, sums, H).
// rows[i] is a row of X or -1, sums[i] its gradient.
#include "optimizers/definition.h"

namespace onward {
namespace {

// The whole gradient: zeros but for the rows; -1 goes with zeros, wherever they go.
Expr Dense(GraphBuilder& b, const Expr& x, const Expr& rows, const Expr& sums) {
  const Expr places = Unsqueeze(Where(Less(rows, b.Int(0)), b.Int(0), rows), {1});
  return b.Op("ScatterND", {ZerosLike(x), places, sums}, {{"reduction", "add"}});
}

std::vector<Expr> SgdRowsStep(GraphBuilder& b, const Node& call, const std::vector<Expr>& in) {
  return {b.Op("SgdStep", {in[0], in[1], Dense(b, in[1], in[2], in[3])}, call.attributes,
               kOnwardDomain)};
}

std::vector<Expr> AdagradRowsStep(GraphBuilder& b, const Node& call, const std::vector<Expr>& in) {
  return b.Ops("Adagrad", {in[0], in[1], in[2], Dense(b, in[2], in[3], in[4]), in[5]}, 2,
               call.attributes, kTrainingDomain);
}

}  // namespace

// Momentum, moments and weight decay move every row; so does 0/0 where nothing bounds the
// divisor.
RowUpdate SgdRowUpdate() {
  return {.x = 1, .function = "SgdRowsStep", .holds = [](const Node& call) {
            return call.inputs.size() == 3 && call.Float("weight_decay", 0) == 0;
          }};
}

RowUpdate AdagradRowUpdate() {
  return {.x = 2, .function = "AdagradRowsStep", .holds = [](const Node& call) {
            return call.inputs.size() == 5 && call.Float("norm_coefficient", 0) == 0 &&
                   call.Float("epsilon", 1e-6f) > 0;
          }};
}

void RegisterRowSteps(FunctionLibrary& library) {
  library.Add("SgdRowsStep", {.body = SgdRowsStep,
                              .output_like = {1},
                              .shape_only = {},
                              .attributes = {},
                              .required = 4,
                              .operands = "FTIT"});
  library.Add("AdagradRowsStep", {.body = AdagradRowsStep,
                                  .output_like = {2, 5},
                                  .shape_only = {},
                                  .attributes = {},
                                  .required = 6,
                                  .operands = "F.TITT"});
}

}  // namespace onward
