// SPDX-License-Identifier: Apache-2.0
// What the factories of RNN, GRU and LSTM, forward and backward, have in common.
#ifndef ONWARD_CORE_CUDA_RNN_RNN_H_
#define ONWARD_CORE_CUDA_RNN_RNN_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "core/cuda/libraries.h"
#include "core/cuda/matmul/product.h"
#include "core/cuda/register.h"
#include "core/cuda/rnn/cells.h"
#include "core/cuda/rnn/rows.h"
#include "core/device/kernel.h"
#include "core/device/plan/rnn.h"

namespace onward::cuda {

// The plan of what is served here: float and double, nothing empty, lengths that fit if they are
// known.
absl::StatusOr<RnnPlan> PlanServedRnn(const KernelRequest& request);

// Hands out aligned pieces of a kernel's workspace. The first one is cuBLAS's.
class Scratch {
 public:
  size_t Add(int64_t bytes) {
    const size_t at = bytes_;
    bytes_ += (static_cast<size_t>(bytes) + 255) / 256 * 256;
    return at;
  }
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_ = (Libraries::kBlasBytes + 255) / 256 * 256;
};

// The parts of a step that all steps of a direction share.
CellStep CellOf(const RnnPlan& plan, int64_t direction, int64_t t, const KernelCall& call);

// `elements` further on.
inline void* Offset(DType dtype, void* data, int64_t elements) {
  return data == nullptr ? nullptr : static_cast<char*>(data) + elements * (DTypeBits(dtype) / 8);
}
inline const void* Offset(DType dtype, const void* data, int64_t elements) {
  return Offset(dtype, const_cast<void*>(data), elements);
}

// One row of H elements per sequence. Rows that a kernel only reads are handed over as if it wrote.
CellRows YRows(const RnnPlan& plan, DType dtype, const void* y, int64_t direction, int64_t t);
CellRows StateRows(const RnnPlan& plan, DType dtype, const void* state, int64_t direction);
// Of what is kept, with `width` elements a row.
CellRows KeptRows(const RnnPlan& plan, DType dtype, const void* kept, int64_t width,
                  int64_t direction, int64_t t);

absl::StatusOr<Kernel> MakeRnn(const Context& context, const KernelRequest& request);
absl::StatusOr<Kernel> MakeRnnGrad(const Context& context, const KernelRequest& request);

}  // namespace onward::cuda

#endif  // ONWARD_CORE_CUDA_RNN_RNN_H_
