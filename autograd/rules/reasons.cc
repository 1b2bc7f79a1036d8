// SPDX-License-Identifier: Apache-2.0
// Operators without a gradient, and why: what the error of a gradient and `onward ops` say.
#include "autograd/rule.h"

namespace onward {

void RegisterReasons(RuleTable& table) {
  constexpr char kOptimizer[] = "a step of an optimizer, never inside a loss";
  constexpr char kCompiler[] = "made by the compiler, when gradients are there already";
  table.AddNone("Constant", "has no inputs");
  for (const char* op : {"Adagrad", "Adam", "Momentum"}) {
    table.AddNone(op, kOptimizer, kTrainingDomain);
  }
  for (const char* op : {"MaxPoolWinners", "MaxPoolWinnersGrad"}) {
    table.AddNone(op, kCompiler, kOnwardDomain);
  }
}

}  // namespace onward
