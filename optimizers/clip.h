// SPDX-License-Identifier: Apache-2.0
// Gradient clipping as ONNX nodes.
#ifndef ONWARD_OPTIMIZERS_CLIP_H_
#define ONWARD_OPTIMIZERS_CLIP_H_

#include <vector>

#include "core/graph/builder.h"

namespace onward {

// Scales all gradients by min(1, max_norm / (norm + 1e-6)), norm being the Euclidean norm
// of all their elements together (PyTorch's clip_grad_norm_). max_norm has to be > 0.
// 16-bit gradients are measured in float. Errors are the builder's.
std::vector<Expr> ClipByGlobalNorm(GraphBuilder& b, std::vector<Expr> grads, double max_norm);

// Limits every element to [-limit, limit] (PyTorch's clip_grad_value_).
std::vector<Expr> ClipByValue(GraphBuilder& b, std::vector<Expr> grads, double limit);

// Adaptive clipping (Brock et al. 2021): the gradient of a unit of the layer, G, is scaled by
// min(1, factor * max(|W|, 1e-3) / |G|), W being the weights of the unit: a row, or where
// `units_last` a column, of `weight`; vectors are one unit.
Expr ClipByUnitNorm(GraphBuilder& b, const Expr& weight, const Expr& grad, bool units_last,
                    double factor);

}  // namespace onward

#endif  // ONWARD_OPTIMIZERS_CLIP_H_
