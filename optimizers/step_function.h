// SPDX-License-Identifier: Apache-2.0
// Optimizer steps as functions of ai.onward. Each takes R, T, X, G and its states, gives the
// new X and the new states, and is written as formulas over these.
#ifndef ONWARD_OPTIMIZERS_STEP_FUNCTION_H_
#define ONWARD_OPTIMIZERS_STEP_FUNCTION_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "optimizers/definition.h"

namespace onward {

using StepAttributes = std::vector<std::pair<std::string, float>>;  // with defaults

// What the formulas of one step see. Everything but `t` has the type of X, 16-bit floats
// being widened.
struct StepBody {
  GraphBuilder& b;
  const Node& call;
  const StepAttributes& attributes;
  Expr r;  // a scalar
  Expr t;  // a scalar double
  Expr x, g;
  std::vector<Expr> states;

  // An attribute as a scalar double, and in the type of X.
  Expr Number(const char* name) const;
  Expr Value(const char* name) const { return In(Number(name)); }
  Expr In(const Expr& e) const { return CastLike(e, x); }
  // A scalar double.
  Expr Real(double value) const { return b.Constant(ScalarOf(DType::kDouble, value)); }
  // The rate as a double, for products with bias corrections.
  Expr Rate() const { return Cast(r, DType::kDouble); }
  // old + (new - old)*(1 - rate), rate being an attribute.
  Expr Average(const Expr& old, const Expr& now, const char* rate) const;
  // G + weight_decay*X
  Expr Regularized() const { return g + x * Value("weight_decay"); }
  // X * (1 - R*attribute)
  Expr Decayed(const char* attribute) const { return x * (1 - r * Value(attribute)); }
};

// The new X, then the new states.
using StepRule = std::function<std::vector<Expr>(const StepBody& in)>;

void AddStepFunction(const std::string& name, StepAttributes attributes, int states, StepRule rule,
                     FunctionLibrary* library);

// One call of such a function for each variable.
absl::Status StepUpdate(GraphBuilder& b, std::string_view function, const Attributes& attributes,
                        const Expr& lr, const Expr& step, absl::Span<const Variable> variables,
                        Updated* updated);

// weight_decay goes into the gradient, or with the option decoupled_weight_decay straight to
// the variable: as the attributes of these names.
void AddDecay(const OptimizerSpec& spec, bool decoupled, Attributes* attributes);

// The Euclidean norm of all elements.
Expr Norm(const Expr& x);

}  // namespace onward

#endif  // ONWARD_OPTIMIZERS_STEP_FUNCTION_H_
