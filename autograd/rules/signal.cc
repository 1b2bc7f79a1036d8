// SPDX-License-Identifier: Apache-2.0
// Gradient rules: fourier transforms and what is made of them.
#include "autograd/rule.h"

namespace onward {

void RegisterSignalRules(RuleTable& table) { static_cast<void>(table); }

}  // namespace onward
