// SPDX-License-Identifier: Apache-2.0
// Gradients of values of any kind. That of a tensor is a tensor, that of a sequence a
// sequence of as many, in which a scalar zero stands for zeros of any shape; that of an
// optional is that of what it holds.
#ifndef ONWARD_AUTOGRAD_VALUES_H_
#define ONWARD_AUTOGRAD_VALUES_H_

#include "absl/functional/function_ref.h"
#include "core/graph/builder.h"

namespace onward {

// Zeros of the shape of `like`: the gradient of a value that nothing depends on.
Expr ZerosOf(const Expr& like);
// The gradient `g` in the shape of its value, and in its type; float where that is quantized.
Expr FitGradient(const Expr& g, const Expr& value);
// The sum of two gradients of `value`.
Expr AddGradients(const Expr& a, const Expr& b, const Expr& value);
// The type that the gradient of a value of this type has.
ValueType GradientType(const ValueType& type);

// The element at a position of the gradient of a sequence: in the shape of `like`.
Expr ElementGradient(const Expr& sequence, const Expr& position, const Expr& like);

// What `each` makes of the elements of sequences of equal length, as a sequence.
Expr MapSequences(const std::vector<Expr>& sequences,
                  absl::FunctionRef<Expr(GraphBuilder&, const std::vector<Expr>&)> each);

}  // namespace onward

#endif  // ONWARD_AUTOGRAD_VALUES_H_
