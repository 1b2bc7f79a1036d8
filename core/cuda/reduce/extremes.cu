// SPDX-License-Identifier: Apache-2.0
// The reductions that are no sums: largest and smallest elements, products.
#include "core/cuda/reduce/fold.cuh"

namespace onward::cuda {
namespace {

template <class F>
cudaError_t DispatchOrdered(DType dtype, const F& f) {
  switch (dtype) {
    case DType::kInt8: return f.template operator()<int8_t>();
    case DType::kUint8: return f.template operator()<uint8_t>();
    case DType::kBool: return f.template operator()<bool>();
    default: break;
  }
  return IsFloating(dtype) ? DispatchReal(dtype, f) : DispatchWideInteger(dtype, f);
}

}  // namespace

cudaError_t ReduceExtremes(ReduceOp op, DType dtype, const ReduceWork& work, const void* data,
                           void* result, void* workspace, cudaStream_t stream) {
  return DispatchOrdered(dtype, [&]<class T>() {
    T* to = static_cast<T*>(result);
    if (op == ReduceOp::kMax) {
      return RunFold<ExtremeFold<T, true>>(work, op, data, nullptr, to, workspace, stream);
    }
    return RunFold<ExtremeFold<T, false>>(work, op, data, nullptr, to, workspace, stream);
  });
}

cudaError_t ReduceShifts(DType dtype, const ReduceWork& work, const void* data, double* shifts,
                         void* workspace, cudaStream_t stream) {
  return DispatchReal(dtype, [&]<class T>() {
    return RunFold<ExtremeFold<T, true>>(work, ReduceOp::kLogSumExp, data, nullptr, shifts,
                                         workspace, stream);
  });
}

cudaError_t ReduceProducts(DType dtype, const ReduceWork& work, const void* data, void* result,
                           void* workspace, cudaStream_t stream) {
  const auto run = [&]<class T>() {
    return RunFold<ProductFold<T>>(work, ReduceOp::kProd, data, nullptr, static_cast<T*>(result),
                                   workspace, stream);
  };
  return IsFloating(dtype) ? DispatchReal(dtype, run) : DispatchWideInteger(dtype, run);
}

}  // namespace onward::cuda
