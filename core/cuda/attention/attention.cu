// SPDX-License-Identifier: Apache-2.0
// Scaled dot-product attention in one kernel: the softmax of a row is made on the way, what was
// added up before being scaled down whenever a larger score turns up.
#include "core/cuda/attention/attention.h"
#include "core/cuda/attention/tiles.cuh"

namespace onward::cuda {
namespace {

template <class T>
__global__ void AttentionKernel(AttentionShape shape, AttentionInputs inputs, T* y) {
  ONWARD_DYNAMIC_SHARED(float, shared);
  const int k_stride = TileStride(shape.depth), v_stride = TileStride(shape.value_depth);
  float* k_tile = shared;
  float* v_tile = k_tile + kWarp * k_stride;
  float* q_rows = v_tile + kWarp * v_stride;
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const int64_t tiles = (shape.queries + kRows - 1) / kRows;
  for (int64_t task = blockIdx.x; task < shape.batch * shape.heads * tiles; task += gridDim.x) {
    const AttentionPair pair(shape, task / tiles);
    const int64_t first = task % tiles * kRows;
    const T* q = static_cast<const T*>(inputs.q) + HeadAt(shape.q, pair.b, pair.h);
    const T* k = static_cast<const T*>(inputs.k) + HeadAt(shape.k, pair.b, pair.key_head);
    const T* v = static_cast<const T*>(inputs.v) + HeadAt(shape.v, pair.b, pair.key_head);
    LoadRows(q, shape.q.row, first, shape.queries, kRows, shape.depth, shape.depth, q_rows);
    float max[kWarpRows], sum[kWarpRows];
    LaneRow result[kWarpRows];
#pragma unroll
    for (int r = 0; r < kWarpRows; ++r) {
      max[r] = -Infinity<float>();
      sum[r] = 0;
    }
    const int64_t seen = shape.causal && first + kRows < shape.keys ? first + kRows : shape.keys;
    for (int64_t begin = 0; begin < seen; begin += kWarp) {
      LoadRows(k, shape.k.row, begin, shape.keys, kWarp, shape.depth, k_stride, k_tile);
      LoadRows(v, shape.v.row, begin, shape.keys, kWarp, shape.value_depth, v_stride, v_tile);
      __syncthreads();
#pragma unroll
      for (int r = 0; r < kWarpRows; ++r) {
        const int row = warp * kWarpRows + r;
        if (first + row >= shape.queries) continue;
        const float product =
            Dot(q_rows + row * shape.depth, k_tile + lane * k_stride, shape.depth);
        const float score =
            ScoreOf<T>(shape, inputs.mask, pair, first + row, begin + lane, product);
        const float larger = LargestOp::Join(max[r], FoldLanes<LargestOp>(score));
        const float weight = WeightOf(score, larger);
        const float before = max[r] == larger ? 1.0f : expf(max[r] - larger);
        sum[r] = sum[r] * before + FoldLanes<PlusOp>(weight);
        result[r].Scale(before);
        result[r].AddWeighted(weight, v_tile, v_stride, shape.value_depth);
        max[r] = larger;
      }
      __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < kWarpRows; ++r) {
      const int64_t query = first + warp * kWarpRows + r;
      if (query >= shape.queries) continue;
      if (sum[r] != 0 || !shape.empty_rows) result[r].Scale(1 / sum[r]);
      result[r].Store(y + HeadAt(shape.y, pair.b, pair.h) + query * shape.y.row, shape.value_depth);
    }
  }
}

}  // namespace

bool ServesAttention(const AttentionShape& shape) {
  constexpr size_t kSharedBytes = 48 << 10;
  const bool type = shape.dtype == DType::kFloat || shape.dtype == DType::kFloat16 ||
                    shape.dtype == DType::kBFloat16;
  const int most = kLaneColumns * kWarp;
  return type && shape.depth <= most && shape.value_depth <= most &&
         SharedBytes(shape) <= kSharedBytes;
}

cudaError_t Attention(const AttentionShape& shape, const AttentionInputs& inputs, void* y,
                      cudaStream_t stream) {
  return DispatchAttention(shape.dtype, [&]<class T>() {
    return Launch(AttentionKernel<T>, TileGeometry(shape, shape.queries), stream, shape, inputs,
                  static_cast<T*>(y));
  });
}

}  // namespace onward::cuda
