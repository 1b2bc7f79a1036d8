// SPDX-License-Identifier: Apache-2.0
// The products of Winograd's convolutions: small matrices of at most 6 rows (12 where the CPU
// has AVX-512) by 16 columns, held in registers while the sum runs over packed operands. Each
// result is summed in the same order either way.
#ifndef ONWARD_CORE_OPS_CONV_WINOGRAD_GEMM_H_
#define ONWARD_CORE_OPS_CONV_WINOGRAD_GEMM_H_

#include <immintrin.h>

#include <cstdint>

#include "core/ops/conv/winograd_transform.h"
#include "core/ops/cpu/vec.h"
#include "core/ops/cpu/with_rows.h"

namespace onward::winograd {

inline constexpr int kColumns = 16;
// Rows of a product lie this far apart: [row][position][16].
inline constexpr int64_t kProductRow = kPositions * kColumns;
// Rows that are multiplied together.
inline constexpr int kRows = 6, kWideRows = 12;

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

template <int R>
[[gnu::target("avx512f")]] void MultiplyChannelsWide(const float* v, const float* u, int64_t blocks,
                                                     float* m) {
  __m512 sum[R] = {};
  for (int64_t b = 0; b < blocks; ++b) {
#pragma GCC unroll 4
    for (int c = 0; c < kLane; ++c) {
      const __m512 weights = _mm512_loadu_ps(u + c * kColumns);
#pragma GCC unroll 12
      for (int r = 0; r < R; ++r) {
        sum[r] = _mm512_fmadd_ps(_mm512_set1_ps(v[r * kLane + c]), weights, sum[r]);
      }
    }
    v += R * kLane;
    u += kLane * kColumns;
  }
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) _mm512_storeu_ps(m + r * kProductRow, sum[r]);
}

inline void MultiplyChannels(bool wide, int rows, const float* v, const float* u, int64_t blocks,
                             float* m) {
  if (wide) {
    WithRows<kWideRows>(rows, [&](auto r) { MultiplyChannelsWide<r>(v, u, blocks, m); });
  } else {
    WithRows<kRows>(rows, [&](auto r) { MultiplyChannels<r>(v, u, blocks, m); });
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

template <int R, bool kAdd>
[[gnu::target("avx512f")]] void MultiplyTilesWide(const float* v, int64_t v_row, const float* z,
                                                  int64_t tiles, float* m) {
  __m512 sum[R] = {};
  if (kAdd) {
    for (int r = 0; r < R; ++r) _mm_prefetch(m + r * kProductRow, _MM_HINT_T0);
  }
#pragma GCC unroll 4
  for (int64_t t = 0; t < tiles; ++t) {
    const __m512 gradients = _mm512_loadu_ps(z);
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) sum[r] = _mm512_fmadd_ps(_mm512_set1_ps(v[r]), gradients, sum[r]);
    v += v_row;
    z += kColumns;
  }
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) {
    float* row = m + r * kProductRow;
    _mm512_storeu_ps(row, kAdd ? _mm512_loadu_ps(row) + sum[r] : sum[r]);
  }
}

template <bool kAdd>
inline void MultiplyTiles(bool wide, int rows, const float* v, int64_t v_row, const float* z,
                          int64_t tiles, float* m) {
  if (wide) {
    WithRows<kWideRows>(rows, [&](auto r) { MultiplyTilesWide<r, kAdd>(v, v_row, z, tiles, m); });
  } else {
    WithRows<kRows>(rows, [&](auto r) { MultiplyTiles<r, kAdd>(v, v_row, z, tiles, m); });
  }
}

}  // namespace onward::winograd

#endif  // ONWARD_CORE_OPS_CONV_WINOGRAD_GEMM_H_
