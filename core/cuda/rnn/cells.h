// SPDX-License-Identifier: Apache-2.0
// The cells of RNN, GRU and LSTM, forward and backward: what happens to one step of one direction
// between the products. A thread works on one unit of one sequence.
#ifndef ONWARD_CORE_CUDA_RNN_CELLS_H_
#define ONWARD_CORE_CUDA_RNN_CELLS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "core/base/dtype.h"

namespace onward::cuda {

struct CellActivation {
  int kind = 0;  // RnnActivation::Kind
  float alpha = 0, beta = 0;
};

// Rows of one unit each: sequence b's row begins `step` elements after that of sequence b - 1. Null
// data: omitted.
struct CellRows {
  void* data = nullptr;
  int64_t step = 0;
};

// No padding between or behind the members of these: kernels get the bytes as a parameter.
struct CellStep {
  int64_t batch = 0, hidden = 0;
  int64_t t = 0, before = 0;         // the step, and the one that came before it
  const int32_t* lengths = nullptr;  // null: every sequence has every step
  const void* peepholes = nullptr;   // [3 * hidden]
  double clip = 0;
  CellActivation f, g, h;  // in the order of the attribute `activations`
  int input_forget = 0, linear_before_reset = 0;
  int keeps = 0;  // forward: the arguments are an output
};

struct ForwardCell : CellStep {
  const void* bias = nullptr;  // [2 * gates * hidden]
  CellRows gates, y, cells;    // of this step
  CellRows state, cell;        // h and C, updated
  CellRows reset;              // GRU: r * h, or unused with linear_before_reset
};

cudaError_t RnnCell(DType dtype, const ForwardCell& cell, cudaStream_t stream);
cudaError_t LstmCell(DType dtype, const ForwardCell& cell, cudaStream_t stream);
// Before the product with the candidate's part of R (not needed with linear_before_reset), and
// after it.
cudaError_t GruGates(DType dtype, const ForwardCell& cell, cudaStream_t stream);
cudaError_t GruCell(DType dtype, const ForwardCell& cell, cudaStream_t stream);

struct BackwardCell : CellStep {
  CellRows gates, y, cells;          // of this step, as the forward pass left them
  CellRows last_y, last_cells;       // of the step before; null at the border
  CellRows first_state, first_cell;  // h and C before the first step; null: zero
  CellRows dy;                       // null: zero
  CellRows dgates;                   // derivatives of the arguments, `width` pieces a row
  CellRows dstate, dcell;            // updated
  CellRows reset, dreset;            // GRU without linear_before_reset: r * h and its derivative
};

cudaError_t RnnCellGrad(DType dtype, const BackwardCell& cell, cudaStream_t stream);
cudaError_t LstmCellGrad(DType dtype, const BackwardCell& cell, cudaStream_t stream);
cudaError_t GruCellGrad(DType dtype, const BackwardCell& cell, cudaStream_t stream);
// After dreset = dg * R: dr and what reaches the state through r * h.
cudaError_t GruResetGrad(DType dtype, const BackwardCell& cell, cudaStream_t stream);

}  // namespace onward::cuda

#endif  // ONWARD_CORE_CUDA_RNN_CELLS_H_
