// SPDX-License-Identifier: Apache-2.0
// Gradient rules: If, Loop and Scan.
#include "autograd/rule.h"

namespace onward {

void RegisterControlRules(RuleTable& table) { static_cast<void>(table); }

}  // namespace onward
