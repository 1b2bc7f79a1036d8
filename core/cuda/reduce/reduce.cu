// SPDX-License-Identifier: Apache-2.0
// How a reduction is dealt out, and its sums.
#include <algorithm>

#include "core/cuda/reduce/fold.cuh"
#include "core/cuda/reduce/reduce.h"

namespace onward::cuda {

void ReduceWork::DealOut(bool run_reduced) {
  constexpr int64_t kBlocks = 512;      // enough to keep a device busy
  constexpr int64_t kPieceSize = 4096;  // elements of a result worth a block
  constexpr int64_t kMostPieces = 256;  // joined by one thread
  constexpr int kRowsOfColumns = 8;     // where neighbours belong to different results
  const int most = run_reduced ? kReduceThreads : kRowsOfColumns;
  rows = 1;
  if (count > 4) rows = 4;
  while (rows > 1 && rows < most && rows * 4 <= count) rows *= 2;
  columns = kReduceThreads / rows;
  while (columns > 1 && columns / 2 >= outputs && columns * rows > 32) columns /= 2;
  const int64_t blocks = (outputs + columns - 1) / columns;
  const int64_t wanted =
      std::min((kBlocks + blocks - 1) / std::max<int64_t>(blocks, 1), kMostPieces);
  pieces = std::clamp<int64_t>(count / kPieceSize, 1, std::max<int64_t>(wanted, 1));
}

size_t ReduceWork::workspace_bytes(ReduceOp op) const {
  const size_t totals = pieces > 1 ? outputs * pieces * sizeof(double) : 0;
  return totals + (op == ReduceOp::kLogSumExp ? outputs * sizeof(double) : 0);
}

cudaError_t ReduceSums(ReduceOp op, DType dtype, const ReduceWork& work, const void* data,
                       const double* shifts, void* result, void* workspace, cudaStream_t stream) {
  const auto run = [&]<class T, class Total>() {
    return RunFold<SumFold<T, Total>>(work, op, data, shifts, static_cast<T*>(result), workspace,
                                      stream);
  };
  if (!IsFloating(dtype)) {
    if (op == ReduceOp::kL2) {
      return DispatchWideInteger(dtype,
                                 [&]<class T>() { return run.template operator()<T, double>(); });
    }
    return DispatchWideInteger(dtype,
                               [&]<class T>() { return run.template operator()<T, Widest<T>>(); });
  }
  return DispatchReal(dtype, [&]<class T>() { return run.template operator()<T, double>(); });
}

cudaError_t Reduce(ReduceOp op, DType dtype, const ReduceWork& work, const void* data, void* result,
                   void* workspace, cudaStream_t stream) {
  if (work.outputs == 0) return cudaSuccess;
  switch (op) {
    case ReduceOp::kProd: return ReduceProducts(dtype, work, data, result, workspace, stream);
    case ReduceOp::kMax:
    case ReduceOp::kMin: return ReduceExtremes(op, dtype, work, data, result, workspace, stream);
    case ReduceOp::kLogSumExp: {
      double* shifts = static_cast<double*>(workspace);
      void* rest = shifts + work.outputs;
      const cudaError_t error = ReduceShifts(dtype, work, data, shifts, rest, stream);
      if (error != cudaSuccess) return error;
      return ReduceSums(op, dtype, work, data, shifts, result, rest, stream);
    }
    default: return ReduceSums(op, dtype, work, data, nullptr, result, workspace, stream);
  }
}

}  // namespace onward::cuda
