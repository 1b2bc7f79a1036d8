// SPDX-License-Identifier: Apache-2.0
// Optimizers as ONNX graphs. An optimizer is named with options, as in
//
//   adamw:lr=1e-3,weight_decay=0.01
//
// and becomes nodes that compute new variables and new state from the old.
//
// docs/training-recipes.md lists them. Options are PyTorch's by name, default and meaning; a
// pair of them may be given together, as in betas=0.9/0.999. adamw:epsilon=E instead of eps adds E
// before the bias correction, as onnxruntime's AdamW and the standard's Adam do (the latter
// is what adam:eps means). adam, adagrad, momentum, nesterov
// and sgd with momentum call the operators of ai.onnx.preview.training; the others call
// functions of ai.onward (docs/functions.md), muon for matrices excepted. Attributes of ONNX are
// floats, so options are rounded to float also where variables are doubles.
#ifndef ONWARD_OPTIMIZERS_OPTIMIZER_H_
#define ONWARD_OPTIMIZERS_OPTIMIZER_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/spec.h"
#include "core/graph/builder.h"
#include "core/graph/function_library.h"

namespace onward {

struct OptimizerSpec {
  std::string name;
  std::map<std::string, double> options;  // only those given
};

std::vector<std::string> OptimizerNames();

// What docs/training-recipes.md says of each.
std::vector<Description> DescribeOptimizers();

// Refuses unknown names and options, naming the nearest valid one, and values that
// cannot work: negative or non-finite rates, betas outside [0, 1), eps <= 0. A learning
// rate of 0 is allowed: it trains nothing, on purpose.
absl::StatusOr<OptimizerSpec> ParseOptimizer(absl::string_view text);

// What ParseOptimizer reads back.
std::string OptimizerText(const OptimizerSpec& spec);

// The checks of ParseOptimizer for a spec that a program has made.
absl::Status CheckOptimizer(const OptimizerSpec& spec);

// An option of a valid spec: as given, or its default.
double OptionOf(const OptimizerSpec& spec, absl::string_view option);

// A tensor that an optimizer keeps for each variable, of the variable's type.
struct StateTensor {
  std::string suffix;  // its name is the variable's name + suffix
  double initial = 0;
  std::optional<Shape> shape = {};  // in a definition: nullopt is the variable's
};
// Of a variable of this shape; every shape is filled in.
std::vector<StateTensor> States(const OptimizerSpec& spec, const Shape& variable);

// The value of T in the first step; it grows by one with each step.
int FirstStep(const OptimizerSpec& spec);

// One variable during an update; states in the order of States().
struct Variable {
  Expr value;
  Expr gradient;
  std::vector<Expr> states;
};

// Emits one update of all variables. `lr` is a floating-point scalar, `step` the int64
// scalar T of this step. (*updated)[i] is the new value of variables[i], then its new
// states.
absl::Status BuildUpdate(GraphBuilder& b, const OptimizerSpec& spec, const Expr& lr,
                         const Expr& step, absl::Span<const Variable> variables,
                         std::vector<std::vector<Expr>>* updated);

// The bodies of SgdStep and AdamWStep, of the operators of ai.onnx.preview.training, and of
// the steps that update some rows only.
void RegisterOptimizerFunctions(FunctionLibrary& library);

}  // namespace onward

#endif  // ONWARD_OPTIMIZERS_OPTIMIZER_H_
