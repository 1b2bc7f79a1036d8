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
  std::string summary;
  std::vector<NumberOption> options;  // `maximize` is added to those of every optimizer
  std::vector<ListOption> lists = {};
  int first_step = 0;
  // Conditions between options; null: none.
  absl::Status (*check)(const OptimizerSpec& spec) = nullptr;
  std::vector<StateTensor> (*states)(const OptimizerSpec& spec, const Shape& variable) = nullptr;
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
OptimizerDef AmsgradOptimizer();
OptimizerDef AdamaxOptimizer();
OptimizerDef NadamOptimizer();
OptimizerDef RadamOptimizer();
OptimizerDef RmsPropOptimizer();
OptimizerDef AdadeltaOptimizer();
OptimizerDef RpropOptimizer();
OptimizerDef LionOptimizer();
OptimizerDef LambOptimizer();
OptimizerDef LarsOptimizer();
OptimizerDef AdafactorOptimizer();
OptimizerDef MuonOptimizer();

FunctionDef SgdStepFunction();
FunctionDef AdamWStepFunction();
void RegisterStandardOptimizerBodies(FunctionLibrary& library);  // standard_bodies.cc
void RegisterAdamFamilySteps(FunctionLibrary& library);
void RegisterRmsPropSteps(FunctionLibrary& library);
void RegisterRateSteps(FunctionLibrary& library);
void RegisterLayerwiseSteps(FunctionLibrary& library);

inline ListOption BetasOption() { return {"betas", {"beta1", "beta2"}}; }

// Means of the gradients and of their squares.
std::vector<StateTensor> MomentStates();
std::vector<StateTensor> AmsgradStates();
absl::Status AmsgradUpdate(GraphBuilder& b, const OptimizerSpec& spec, bool decoupled,
                           const Expr& lr, const Expr& step, absl::Span<const Variable> variables,
                           Updated* updated);

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
std::vector<StateTensor> MomentumStates(const OptimizerSpec& spec, const Shape& variable);

}  // namespace onward

#endif  // ONWARD_OPTIMIZERS_DEFINITION_H_
