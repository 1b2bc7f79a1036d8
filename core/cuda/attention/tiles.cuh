// SPDX-License-Identifier: Apache-2.0
// What the attention kernels share. A block works on kRows rows of one (batch, head); every warp
// has kWarpRows of them for itself. The other side comes in tiles of one row for each lane: a
// lane has the score of its row, and sums go over the lanes by shuffles.
#pragma once

#include "core/cuda/attention/attention.h"
#include "core/cuda/block.cuh"

namespace onward::cuda {

inline constexpr int kWarps = 4, kWarpRows = 2, kRows = kWarps * kWarpRows;
inline constexpr int kAttentionThreads = kWarps * kWarp;
inline constexpr int kLaneColumns = 8;  // of a row of results, in the registers of a lane

struct AttentionPair {
  int64_t b, h, key_head;

  __device__ AttentionPair(const AttentionShape& shape, int64_t pair)
      : b(pair / shape.heads), h(pair % shape.heads), key_head(h / shape.heads_per_key) {}
};
__device__ inline int64_t HeadAt(const HeadStrides& strides, int64_t b, int64_t h) {
  return b * strides.batch + h * strides.head;
}

// Rows [first, first + count) of a head to shared memory as float, `stride` apart; rows from `end`
// on are zero.
template <class T>
__device__ void LoadRows(const T* from, int64_t row_stride, int64_t first, int64_t end, int count,
                         int columns, int stride, float* shared) {
  for (int i = threadIdx.x; i < count * columns; i += kAttentionThreads) {
    const int row = i / columns, column = i % columns;
    const int64_t at = first + row;
    shared[row * stride + column] = at < end ? Read(from[at * row_stride + column]) : 0.0f;
  }
}

__device__ inline float Dot(const float* a, const float* b, int n) {
  float sum = 0;
  for (int i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// scale * product + mask; minus infinity where the query does not look at the key.
template <class T>
__device__ float ScoreOf(const AttentionShape& shape, const void* mask, const AttentionPair& pair,
                         int64_t query, int64_t key, float product) {
  if (key >= shape.keys || (shape.causal && key > query)) return -Infinity<float>();
  const float score = product * shape.scale;
  if (!shape.masked) return score;
  const int64_t at =
      HeadAt(shape.mask, pair.b, pair.h) + query * shape.mask.row + key * shape.mask.column;
  if (!shape.boolean_mask) return score + Read(static_cast<const T*>(mask)[at]);
  return static_cast<const bool*>(mask)[at] ? score : -Infinity<float>();
}

// exp(score - max); a row that looks at nothing so far has the maximum -infinity and no weights,
// but NaN stays.
__device__ inline float WeightOf(float score, float max) {
  if (max == -Infinity<float>()) return score != score ? score : 0.0f;
  return expf(score - max);
}

template <class Op>
__device__ float FoldLanes(float value) {
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    value = Op::Join(value, __shfl_xor_sync(0xffffffffu, value, distance));
  }
  return value;
}

// A row of results, its columns dealt out to the lanes.
struct LaneRow {
  float columns[kLaneColumns] = {};

  __device__ void Scale(float factor) {
#pragma unroll
    for (int c = 0; c < kLaneColumns; ++c) columns[c] *= factor;
  }
  // += sum over lanes j of weight_j * (row j of the tile).
  __device__ void AddWeighted(float weight, const float* tile, int stride, int width) {
    const int lane = threadIdx.x % kWarp;
    for (int j = 0; j < kWarp; ++j) {
      const float w = __shfl_sync(0xffffffffu, weight, j);
#pragma unroll
      for (int c = 0; c < kLaneColumns; ++c) {
        const int column = lane + c * kWarp;
        if (column < width) columns[c] += w * tile[j * stride + column];
      }
    }
  }
  template <class T>
  __device__ void Store(T* to, int width) const {
    const int lane = threadIdx.x % kWarp;
#pragma unroll
    for (int c = 0; c < kLaneColumns; ++c) {
      const int column = lane + c * kWarp;
      if (column < width) to[column] = Write<T>(columns[c]);
    }
  }
};

// Tiles have an odd stride, so that lanes that read a column each do not meet in a bank.
__host__ __device__ inline int TileStride(int columns) { return columns | 1; }

inline size_t SharedBytes(const AttentionShape& shape) {
  const int tile = TileStride(shape.depth) + TileStride(shape.value_depth);
  return (kWarp * tile + kRows * (shape.depth + shape.value_depth)) * sizeof(float);
}

inline Geometry TileGeometry(const AttentionShape& shape, int64_t rows) {
  const int64_t tiles = shape.batch * shape.heads * ((rows + kRows - 1) / kRows);
  return {dim3(GridFor(tiles)), dim3(kAttentionThreads), SharedBytes(shape)};
}

template <class F>
cudaError_t DispatchAttention(DType dtype, const F& f) {
  switch (dtype) {
    case DType::kFloat: return f.template operator()<float>();
    case DType::kFloat16: return f.template operator()<__half>();
    case DType::kBFloat16: return f.template operator()<__nv_bfloat16>();
    default: return cudaErrorInvalidValue;
  }
}

}  // namespace onward::cuda
