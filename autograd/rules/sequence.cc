// SPDX-License-Identifier: Apache-2.0
// Gradient rules: sequences and optionals.
#include "autograd/rule.h"

namespace onward {

void RegisterSequenceRules(RuleTable& table) { static_cast<void>(table); }

}  // namespace onward
