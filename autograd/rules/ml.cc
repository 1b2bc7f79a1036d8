// SPDX-License-Identifier: Apache-2.0
// Gradient rules: Operators of ai.onnx.ml.
#include "autograd/rule.h"

namespace onward {

void RegisterMlRules(RuleTable& table) { static_cast<void>(table); }

}  // namespace onward
