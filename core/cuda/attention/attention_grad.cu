// SPDX-License-Identifier: Apache-2.0
// The gradient of attention. P is computed again from Q and K; then, with dP = dY V^T and
// dS = P * (dP - sum over keys of P * dP), the gradient of softmax's argument,
//   dQ = scale * dS K,  dK = scale * dS^T Q,  dV = P^T dY.
// The first kernel works on rows of Q, and notes of each the maximum, the sum and the sum of P * dP
// for the second one, which works on rows of K and V: so no sum is shared between blocks.
#include "core/cuda/attention/tiles.cuh"

namespace onward::cuda {
namespace {

// Of each row of Q, in three arrays.
struct RowNotes {
  float* max;
  float* sum;
  float* product;
};

RowNotes NotesAt(void* workspace, const AttentionShape& shape) {
  float* at = static_cast<float*>(workspace);
  const int64_t rows = shape.batch * shape.heads * shape.queries;
  return {at, at + rows, at + 2 * rows};
}

// P and dS of one score.
struct Slope {
  float probability, slope;
};
__device__ Slope SlopeOf(float score, float product, float max, float sum, float mean) {
  const float probability = WeightOf(score, max) / sum;
  return {probability, probability * (product - mean)};
}

template <class T>
__global__ void GradOfQueries(AttentionShape shape, AttentionInputs inputs, AttentionGrads grads,
                              RowNotes notes) {
  ONWARD_DYNAMIC_SHARED(float, shared);
  const int k_stride = TileStride(shape.depth), v_stride = TileStride(shape.value_depth);
  float* k_tile = shared;
  float* v_tile = k_tile + kWarp * k_stride;
  float* q_rows = v_tile + kWarp * v_stride;
  float* dy_rows = q_rows + kRows * shape.depth;
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const int64_t tiles = (shape.queries + kRows - 1) / kRows;
  for (int64_t task = blockIdx.x; task < shape.batch * shape.heads * tiles; task += gridDim.x) {
    const AttentionPair pair(shape, task / tiles);
    const int64_t first = task % tiles * kRows;
    const T* q = static_cast<const T*>(inputs.q) + HeadAt(shape.q, pair.b, pair.h);
    const T* k = static_cast<const T*>(inputs.k) + HeadAt(shape.k, pair.b, pair.h);
    const T* v = static_cast<const T*>(inputs.v) + HeadAt(shape.v, pair.b, pair.h);
    const T* dy = static_cast<const T*>(grads.dy) + HeadAt(shape.y, pair.b, pair.h);
    LoadRows(q, shape.q.row, first, shape.queries, kRows, shape.depth, shape.depth, q_rows);
    LoadRows(dy, shape.y.row, first, shape.queries, kRows, shape.value_depth, shape.value_depth,
             dy_rows);
    float max[kWarpRows], sum[kWarpRows], mean[kWarpRows];
    LaneRow result[kWarpRows];
#pragma unroll
    for (int r = 0; r < kWarpRows; ++r) {
      max[r] = -Infinity<float>();
      sum[r] = 0;
      mean[r] = 0;
    }
    // Once over the keys for the sums of each row, once more for its gradient.
    for (int pass = 0; pass < 2; ++pass) {
      for (int64_t begin = 0; begin < shape.keys; begin += kWarp) {
        LoadRows(k, shape.k.row, begin, shape.keys, kWarp, shape.depth, k_stride, k_tile);
        LoadRows(v, shape.v.row, begin, shape.keys, kWarp, shape.value_depth, v_stride, v_tile);
        __syncthreads();
#pragma unroll
        for (int r = 0; r < kWarpRows; ++r) {
          const int row = warp * kWarpRows + r;
          const int64_t query = first + row, key = begin + lane;
          if (query >= shape.queries) continue;
          const float score =
              ScoreOf<T>(shape, inputs.mask, pair, query, key,
                         Dot(q_rows + row * shape.depth, k_tile + lane * k_stride, shape.depth));
          const float product =
              Dot(dy_rows + row * shape.value_depth, v_tile + lane * v_stride, shape.value_depth);
          if (pass == 0) {
            const float larger = LargestOp::Join(max[r], FoldLanes<LargestOp>(score));
            const float weight = WeightOf(score, larger);
            const float before = max[r] == larger ? 1.0f : expf(max[r] - larger);
            sum[r] = sum[r] * before + FoldLanes<PlusOp>(weight);
            mean[r] = mean[r] * before + FoldLanes<PlusOp>(weight * product);
            max[r] = larger;
            continue;
          }
          const Slope s = SlopeOf(score, product, max[r], sum[r], mean[r]);
          if (key < shape.keys && grads.dscores != nullptr) {
            const int64_t at = (task / tiles * shape.queries + query) * shape.keys + key;
            static_cast<T*>(grads.dscores)[at] = Write<T>(s.slope);
          }
          result[r].AddWeighted(s.slope * shape.scale, k_tile, k_stride, shape.depth);
        }
        __syncthreads();
      }
      if (pass == 1) break;
#pragma unroll
      for (int r = 0; r < kWarpRows; ++r) mean[r] /= sum[r];
    }
#pragma unroll
    for (int r = 0; r < kWarpRows; ++r) {
      const int64_t query = first + warp * kWarpRows + r;
      if (query >= shape.queries) continue;
      const int64_t at = task / tiles * shape.queries + query;
      if (lane == 0) {
        notes.max[at] = max[r];
        notes.sum[at] = sum[r];
        notes.product[at] = mean[r];
      }
      if (grads.dq == nullptr) continue;
      T* dq = static_cast<T*>(grads.dq) + HeadAt(shape.q, pair.b, pair.h);
      result[r].Store(dq + query * shape.q.row, shape.depth);
    }
  }
}

template <class T>
__global__ void GradOfKeys(AttentionShape shape, AttentionInputs inputs, AttentionGrads grads,
                           RowNotes notes) {
  ONWARD_DYNAMIC_SHARED(float, shared);
  const int q_stride = TileStride(shape.depth), dy_stride = TileStride(shape.value_depth);
  float* q_tile = shared;
  float* dy_tile = q_tile + kWarp * q_stride;
  float* k_rows = dy_tile + kWarp * dy_stride;
  float* v_rows = k_rows + kRows * shape.depth;
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const int64_t tiles = (shape.keys + kRows - 1) / kRows;
  for (int64_t task = blockIdx.x; task < shape.batch * shape.heads * tiles; task += gridDim.x) {
    const AttentionPair pair(shape, task / tiles);
    const int64_t first = task % tiles * kRows, row_base = task / tiles * shape.queries;
    const T* q = static_cast<const T*>(inputs.q) + HeadAt(shape.q, pair.b, pair.h);
    const T* k = static_cast<const T*>(inputs.k) + HeadAt(shape.k, pair.b, pair.h);
    const T* v = static_cast<const T*>(inputs.v) + HeadAt(shape.v, pair.b, pair.h);
    const T* dy = static_cast<const T*>(grads.dy) + HeadAt(shape.y, pair.b, pair.h);
    LoadRows(k, shape.k.row, first, shape.keys, kRows, shape.depth, shape.depth, k_rows);
    LoadRows(v, shape.v.row, first, shape.keys, kRows, shape.value_depth, shape.value_depth,
             v_rows);
    LaneRow by_k[kWarpRows], by_v[kWarpRows];
    for (int64_t begin = 0; begin < shape.queries; begin += kWarp) {
      LoadRows(q, shape.q.row, begin, shape.queries, kWarp, shape.depth, q_stride, q_tile);
      LoadRows(dy, shape.y.row, begin, shape.queries, kWarp, shape.value_depth, dy_stride, dy_tile);
      __syncthreads();
#pragma unroll
      for (int r = 0; r < kWarpRows; ++r) {
        const int row = warp * kWarpRows + r;
        const int64_t query = begin + lane, key = first + row;
        if (key >= shape.keys) continue;
        Slope s = {0, 0};
        if (query < shape.queries) {
          const float score =
              ScoreOf<T>(shape, inputs.mask, pair, query, key,
                         Dot(k_rows + row * shape.depth, q_tile + lane * q_stride, shape.depth));
          const float product =
              Dot(v_rows + row * shape.value_depth, dy_tile + lane * dy_stride, shape.value_depth);
          const int64_t at = row_base + query;
          s = SlopeOf(score, product, notes.max[at], notes.sum[at], notes.product[at]);
        }
        by_v[r].AddWeighted(s.probability, dy_tile, dy_stride, shape.value_depth);
        by_k[r].AddWeighted(s.slope * shape.scale, q_tile, q_stride, shape.depth);
      }
      __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < kWarpRows; ++r) {
      const int64_t key = first + warp * kWarpRows + r;
      if (key >= shape.keys) continue;
      T* dk = static_cast<T*>(grads.dk);
      T* dv = static_cast<T*>(grads.dv);
      if (dk != nullptr) {
        by_k[r].Store(dk + HeadAt(shape.k, pair.b, pair.h) + key * shape.k.row, shape.depth);
      }
      if (dv != nullptr) {
        by_v[r].Store(dv + HeadAt(shape.v, pair.b, pair.h) + key * shape.v.row, shape.value_depth);
      }
    }
  }
}

}  // namespace

size_t AttentionGradWorkspace(const AttentionShape& shape) {
  return 3 * shape.batch * shape.heads * shape.queries * sizeof(float);
}

cudaError_t AttentionGrad(const AttentionShape& shape, const AttentionInputs& inputs,
                          const AttentionGrads& grads, void* workspace, cudaStream_t stream) {
  const RowNotes notes = NotesAt(workspace, shape);
  return DispatchAttention(shape.dtype, [&]<class T>() {
    const cudaError_t error = Launch(GradOfQueries<T>, TileGeometry(shape, shape.queries), stream,
                                     shape, inputs, grads, notes);
    if (error != cudaSuccess || (grads.dk == nullptr && grads.dv == nullptr)) return error;
    return Launch(GradOfKeys<T>, TileGeometry(shape, shape.keys), stream, shape, inputs, grads,
                  notes);
  });
}

}  // namespace onward::cuda
