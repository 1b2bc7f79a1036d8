// SPDX-License-Identifier: Apache-2.0
// Launches of SoftmaxCrossEntropyLoss, NegativeLogLikelihoodLoss and their gradients.
#ifndef ONWARD_CORE_CUDA_LOSS_LOSS_H_
#define ONWARD_CORE_CUDA_LOSS_LOSS_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "core/base/dtype.h"
#include "core/cuda/fault.h"

namespace onward::cuda {

enum class LossReduction { kNone, kSum, kMean };

// Scores [batch, classes, inner]; a position is one (batch, inner) pair and has one label. A label
// that is neither a class nor ignored is reported, and makes its position NaN.
struct LossShape {
  int64_t batch = 0, classes = 0, inner = 1;
  LossReduction reduction = LossReduction::kMean;
  bool softmax = true;
  bool ignores = false;
  int64_t ignore_index = 0;
  bool narrow_labels = false;  // int32
  DType dtype = DType::kFloat;
};

struct LossInputs {
  const void* scores = nullptr;
  const void* labels = nullptr;
  const void* weights = nullptr;  // one per class, or null
  FaultPlace fault = {};
};

size_t LossWorkspace(const LossShape& shape);
// `log_prob` may be null, `loss` too.
cudaError_t Loss(const LossShape& shape, const LossInputs& inputs, void* loss, void* log_prob,
                 void* workspace, cudaStream_t stream);
cudaError_t LossGrad(const LossShape& shape, const LossInputs& inputs, const void* dl, void* dx,
                     void* workspace, cudaStream_t stream);

}  // namespace onward::cuda

#endif  // ONWARD_CORE_CUDA_LOSS_LOSS_H_
