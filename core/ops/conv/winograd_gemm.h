// SPDX-License-Identifier: Apache-2.0
// The products of Winograd's convolutions: small matrices of at most 6 rows by
// 16 columns, held in registers while the sum runs over packed operands.
#ifndef ONWARD_CORE_OPS_CONV_WINOGRAD_GEMM_H_
#define ONWARD_CORE_OPS_CONV_WINOGRAD_GEMM_H_

#include <immintrin.h>

#include <cstdint>

#include "core/ops/conv/winograd_transform.h"
#include "core/ops/cpu/vec.h"

namespace onward::winograd {

inline constexpr int kColumns = 16;
// Rows of a product lie this far apart: [row][position][16].
inline constexpr int64_t kProductRow = kPositions * kColumns;

template <int R>
inline void AddOuter(const float* v, int64_t v_step, Vec<float> u0, Vec<float> u1,
                     Vec<float> sum[R][2]) {
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
    const Vec<float> value = _mm256_broadcast_ss(v + r * v_step);
    sum[r][0] = _mm256_fmadd_ps(value, u0, sum[r][0]);
    sum[r][1] = _mm256_fmadd_ps(value, u1, sum[r][1]);
  }
}

// m[r][j] = sum over channels c of v[c/8][r][c%8] * u[c][j], for c < 8*blocks.
template <int R>
inline void MultiplyChannels(const float* v, const float* u, int64_t blocks, float* m) {
  Vec<float> sum[R][2] = {};
  for (int64_t b = 0; b < blocks; ++b) {
#pragma GCC unroll 4
    for (int c = 0; c < kLane; ++c) {
      AddOuter<R>(v + c, kLane, Load(u + c * kColumns), Load(u + c * kColumns + kLane), sum);
    }
    v += R * kLane;
    u += kLane * kColumns;
  }
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
    Store(m + r * kProductRow, sum[r][0]);
    Store(m + r * kProductRow + kLane, sum[r][1]);
  }
}

inline void MultiplyChannels(int rows, const float* v, const float* u, int64_t blocks, float* m) {
  switch (rows) {
    case 1: return MultiplyChannels<1>(v, u, blocks, m);
    case 2: return MultiplyChannels<2>(v, u, blocks, m);
    case 3: return MultiplyChannels<3>(v, u, blocks, m);
    case 4: return MultiplyChannels<4>(v, u, blocks, m);
    case 5: return MultiplyChannels<5>(v, u, blocks, m);
    default: return MultiplyChannels<6>(v, u, blocks, m);
  }
}

// m[r][j] (+)= sum over tiles t of v[t][r] * z[t][j], where rows of v are
// `v_row` apart; added to what m holds if kAdd.
template <int R, bool kAdd>
inline void MultiplyTiles(const float* v, int64_t v_row, const float* z, int64_t tiles, float* m) {
  Vec<float> sum[R][2] = {};
  if (kAdd) {
    for (int r = 0; r < R; ++r) _mm_prefetch(m + r * kProductRow, _MM_HINT_T0);
  }
#pragma GCC unroll 4
  for (int64_t t = 0; t < tiles; ++t) {
    AddOuter<R>(v, 1, Load(z), Load(z + kLane), sum);
    v += v_row;
    z += kColumns;
  }
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
    float* row = m + r * kProductRow;
    Store(row, kAdd ? Load(row) + sum[r][0] : sum[r][0]);
    Store(row + kLane, kAdd ? Load(row + kLane) + sum[r][1] : sum[r][1]);
  }
}

template <bool kAdd>
inline void MultiplyTiles(int rows, const float* v, int64_t v_row, const float* z, int64_t tiles,
                          float* m) {
  switch (rows) {
    case 1: return MultiplyTiles<1, kAdd>(v, v_row, z, tiles, m);
    case 2: return MultiplyTiles<2, kAdd>(v, v_row, z, tiles, m);
    case 3: return MultiplyTiles<3, kAdd>(v, v_row, z, tiles, m);
    case 4: return MultiplyTiles<4, kAdd>(v, v_row, z, tiles, m);
    case 5: return MultiplyTiles<5, kAdd>(v, v_row, z, tiles, m);
    default: return MultiplyTiles<6, kAdd>(v, v_row, z, tiles, m);
  }
}

}  // namespace onward::winograd

#endif  // ONWARD_CORE_OPS_CONV_WINOGRAD_GEMM_H_
