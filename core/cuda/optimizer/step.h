// SPDX-License-Identifier: Apache-2.0
// One optimizer step of many tensors, in as few launches as their pointers fit into.
#ifndef ONWARD_CORE_CUDA_OPTIMIZER_STEP_H_
#define ONWARD_CORE_CUDA_OPTIMIZER_STEP_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "core/base/dtype.h"

namespace onward::cuda {

enum class StepRule { kSgd, kAdagrad, kMomentum, kAdam, kAdamW };

// No padding between or behind the members: kernels get these bytes as a parameter.
struct StepParameters {
  StepRule rule;
  DType rate_type;
  // The attributes of the rule, in the order in which core/device/plan/optimizer.h lists them.
  double attributes[5];
  const void* rate;      // R
  const int64_t* step;   // T; null for rules without it
  const uint32_t* stop;  // where it is set nothing is written; may be null
};

// Where one variable is, and where its new values go (null: not wanted).
struct StepTensor {
  const void *x, *g, *state[2];
  void *new_x, *new_state[2];
  int64_t elements;
  int64_t index;  // among all tensors of the step
};

// Tensors of one element type. Writes the new values; where `flags` is given it writes nothing but
// that: flags[kind * flag_kinds + index] becomes 1 where a new value of x (kind 0) or of a state
// would not be finite.
cudaError_t RunStep(const StepParameters& parameters, DType dtype, const StepTensor* tensors,
                    int count, uint32_t* flags, int flag_kinds, cudaStream_t stream);

}  // namespace onward::cuda

#endif  // ONWARD_CORE_CUDA_OPTIMIZER_STEP_H_
