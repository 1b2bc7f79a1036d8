// SPDX-License-Identifier: Apache-2.0
// Launches of the reductions, of ArgMax and ArgMin, and of cumulative sums and products.
#ifndef ONWARD_CORE_CUDA_REDUCE_REDUCE_H_
#define ONWARD_CORE_CUDA_REDUCE_REDUCE_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "core/base/dtype.h"
#include "core/cuda/strided.h"

namespace onward::cuda {

enum class ReduceOp { kSum, kMean, kMax, kMin, kProd, kL1, kL2, kLogSum, kLogSumExp, kSumSquare };

// How a reduction is dealt out. A block works on `columns` neighbouring results with `rows`
// threads each (powers of two); the elements of a result are cut into `pieces`, whose totals
// are joined in order by a second launch.
struct ReduceWork {
  StridedGrid kept, reduced;
  int64_t outputs = 1;
  int64_t count = 1;  // elements per result
  int columns = 1, rows = 1;
  int64_t pieces = 1;

  // `run_reduced`: neighbouring elements belong to one result.
  void DealOut(bool run_reduced);
  // Totals of the pieces, and the largest elements for kLogSumExp.
  size_t workspace_bytes(ReduceOp op) const;
};

cudaError_t Reduce(ReduceOp op, DType dtype, const ReduceWork& work, const void* data, void* result,
                   void* workspace, cudaStream_t stream);

struct ArgOptions {
  bool largest, last;
};
cudaError_t ArgReduce(DType dtype, const AxisRows& rows, ArgOptions options, const void* data,
                      int64_t* result, cudaStream_t stream);

struct CumulateOptions {
  bool product, exclusive, reverse;
};
cudaError_t Cumulate(DType dtype, const AxisRows& rows, CumulateOptions options, const void* data,
                     void* result, cudaStream_t stream);

}  // namespace onward::cuda

#endif  // ONWARD_CORE_CUDA_REDUCE_REDUCE_H_
