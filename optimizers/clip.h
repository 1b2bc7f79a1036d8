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

}  // namespace onward

#endif  // ONWARD_OPTIMIZERS_CLIP_H_
