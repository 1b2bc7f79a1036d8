// SPDX-License-Identifier: Apache-2.0
// Gradient rules of operators that write elements to places given by indices.
#ifndef ONWARD_AUTOGRAD_RULES_SCATTER_H_
#define ONWARD_AUTOGRAD_RULES_SCATTER_H_

#include "autograd/rule.h"

namespace onward {

Grads ScatterElementsVjp(const Vjp& v);
Grads ScatterNDVjp(const Vjp& v);
Grads TensorScatterVjp(const Vjp& v);

}  // namespace onward

#endif  // ONWARD_AUTOGRAD_RULES_SCATTER_H_
