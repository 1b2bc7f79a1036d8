// SPDX-License-Identifier: Apache-2.0
// The table behind optimizer.h: what each optimizer takes, keeps and emits. A new
// optimizer is a function that returns its OptimizerDef, and a line in optimizer.cc.
#ifndef ONWARD_OPTIMIZERS_DEFINITION_H_
#define ONWARD_OPTIMIZERS_DEFINITION_H_

#include <string>
#include <vector>

#include "core/base/spec.h"
#include "optimizers/optimizer.h"

namespace onward {

using Updated = std::vector<std::vector<Expr>>;

struct OptimizerDef {
  std::string name;
  std::vector<NumberOption> options;
  int first_step = 0;
  // Conditions between options; null: none.
  absl::Status (*check)(const OptimizerSpec& spec) = nullptr;
  std::vector<StateTensor> (*states)(const OptimizerSpec& spec) = nullptr;
  // Options are valid and every variable has its states when this is called.
  absl::Status (*update)(GraphBuilder& b, const OptimizerSpec& spec, const Expr& lr,
                         const Expr& step, absl::Span<const Variable> variables,
                         Updated* updated) = nullptr;
};

OptimizerDef SgdOptimizer();
OptimizerDef MomentumOptimizer();
OptimizerDef NesterovOptimizer();
OptimizerDef AdagradOptimizer();
OptimizerDef AdamOptimizer();
OptimizerDef AdamWOptimizer();

FunctionDef SgdStepFunction();
FunctionDef AdamWStepFunction();
void RegisterStandardOptimizerBodies(FunctionLibrary& library);  // standard_bodies.cc

// row_steps.cc
RowUpdate SgdRowUpdate();
RowUpdate AdagradRowUpdate();
void RegisterRowSteps(FunctionLibrary& library);

// 1 - beta^T, both doubles: in float, beta^T is too close to 1 for the difference to keep
// its digits.
Expr BiasCorrection(GraphBuilder& b, const Expr& beta, const Expr& t);

// One call of an operator of ai.onnx.preview.training for all variables. These take
// R, T, all values, all gradients, then all states kind by kind, and give the new values
// and states in the same order.
absl::Status StandardUpdate(GraphBuilder& b, std::string_view op, Attributes attributes,
                            const Expr& lr, const Expr& step, absl::Span<const Variable> variables,
                            Updated* updated);

// The standard's Momentum operator; `mode` is "standard" or "nesterov".
absl::Status MomentumUpdate(GraphBuilder& b, const OptimizerSpec& spec, const char* mode,
                            const Expr& lr, const Expr& step, absl::Span<const Variable> variables,
                            Updated* updated);
std::vector<StateTensor> MomentumStates(const OptimizerSpec& spec);

}  // namespace onward

#endif  // ONWARD_OPTIMIZERS_DEFINITION_H_
