// SPDX-License-Identifier: Apache-2.0
// Moves and sums of rows around the recurrences.
#ifndef ONWARD_CORE_CUDA_RNN_ROWS_H_
#define ONWARD_CORE_CUDA_RNN_ROWS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "core/base/dtype.h"
#include "core/cuda/fault.h"
#include "core/cuda/rnn/cells.h"

namespace onward::cuda {

// Reports a length outside [0, steps].
cudaError_t CheckLengths(const int32_t* lengths, int64_t batch, int64_t steps,
                         const FaultPlace& fault, cudaStream_t stream);

// to[row b] = from[row b], or zero where `from` is omitted.
cudaError_t CopyRows(DType dtype, int64_t batch, int64_t hidden, const CellRows& from,
                     const CellRows& to, cudaStream_t stream);

// [first, second, n] -> [second, first, n]
cudaError_t SwapFirstAxes(DType dtype, const void* from, int64_t first, int64_t second, int64_t n,
                          void* to, cudaStream_t stream);

// The states before each step, [steps, batch, hidden]: y of the step before, or the first state.
struct LastStates {
  int64_t steps, batch, hidden;
  int64_t back;  // the step before t is t + back
  const int32_t* lengths;
  const void* y;  // of the direction, at step 0 of sequence 0
  int64_t y_time, y_batch;
  CellRows first;
};
cudaError_t GatherLastStates(DType dtype, const LastStates& states, void* to, cudaStream_t stream);

// sums[j] = sum over rows of from[row * stride + j].
cudaError_t SumRows(DType dtype, const void* from, int64_t rows, int64_t stride, int64_t columns,
                    void* sums, cudaStream_t stream);

// dPi = sum di*Cp, dPo = sum do*C, dPf = sum df*Cp, over steps and batch; rows of an ended sequence
// have zero derivatives.
struct PeepholeSums {
  LastStates last;  // with the cells for y
  const void* cells;
  const void* dgates;
  int64_t stride;  // of a row of dgates
};
cudaError_t SumPeepholes(DType dtype, const PeepholeSums& sums, void* dp, cudaStream_t stream);

}  // namespace onward::cuda

#endif  // ONWARD_CORE_CUDA_RNN_ROWS_H_
