// SPDX-License-Identifier: Apache-2.0
// The gradient rule of Einsum.
#ifndef ONWARD_AUTOGRAD_RULES_EINSUM_H_
#define ONWARD_AUTOGRAD_RULES_EINSUM_H_

#include "autograd/rule.h"

namespace onward {

// y = einsum("s_0,s_1,...->o", x_0, x_1, ...)
// dx_i = einsum("o,s_0,..(without s_i)..->s_i", dy, x_0, ..(without x_i)..),
// repeated along the letters that occur in s_i alone. A letter that stands twice in s_i, which
// reads a diagonal, gets another name and an identity matrix as operand: "ii" is "ij" with
// delta_ij.
Grads EinsumVjp(const Vjp& v);

}  // namespace onward

#endif  // ONWARD_AUTOGRAD_RULES_EINSUM_H_
