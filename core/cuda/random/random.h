// SPDX-License-Identifier: Apache-2.0
// Launches of what draws random numbers: the same draws as on the CPU.
#ifndef ONWARD_CORE_CUDA_RANDOM_RANDOM_H_
#define ONWARD_CORE_CUDA_RANDOM_RANDOM_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "core/base/dtype.h"
#include "core/device/run_state.h"

namespace onward::cuda {

// Draws in [0, 1), one per element: those of `key`, or stored ones. Where `state` is given they
// follow from what it holds when the kernel runs: stored ones are those of step 0. No padding:
// kernels get these bytes as a parameter.
struct RandomDraws {
  uint64_t key = 0;
  const double* stored = nullptr;
  const RandomState* state = nullptr;
  uint64_t has_seed = 0, seed = 0, stream = 0;  // of the node
};

// n draws, and one more where n is odd, of numpy's RandomState(seed); where `state` is given, at
// step 0 alone.
size_t NumpyDrawsBytes(int64_t n);
cudaError_t StoreNumpyDraws(uint32_t seed, int64_t n, const RandomState* state, double* draws,
                            cudaStream_t stream);

// A number that is known when the kernel is made, or else lies on the device.
struct LaterNumber {
  double value = 0;
  const void* data = nullptr;
  DType dtype = DType::kFloat;
};

// mask = u >= ratio, y = x * mask / (1 - ratio). y or mask may be null, y may be x.
struct DropoutCall {
  int64_t elements = 0;
  DType dtype = DType::kFloat;
  LaterNumber ratio;
  const bool* training = nullptr;  // null: it is on
  const void* x = nullptr;
  void* y = nullptr;
  bool* mask = nullptr;
};
cudaError_t Dropout(const DropoutCall& call, const RandomDraws& draws, cudaStream_t stream);

// low + (high - low) * u, or mean + scale * normal.
struct RandomFill {
  bool normal = false;
  double shift = 0, scale = 1;
};
cudaError_t FillRandom(const RandomFill& fill, DType dtype, int64_t n, void* result,
                       const RandomDraws& draws, cudaStream_t stream);

bool ServesBernoulli(DType to);
// 1 where u is below the element's probability.
cudaError_t Bernoulli(DType from, DType to, int64_t n, const void* probabilities, void* result,
                      const RandomDraws& draws, cudaStream_t stream);

}  // namespace onward::cuda

#endif  // ONWARD_CORE_CUDA_RANDOM_RANDOM_H_
