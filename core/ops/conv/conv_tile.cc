// SPDX-License-Identifier: Apache-2.0
#include "core/ops/conv/conv_tile.h"

#include <immintrin.h>

#include <array>
#include <utility>

namespace onward::direct {
namespace {

// Pixels of a tile by its width: 12 sums, where that is possible.
constexpr int kMaxRows[kMaxWidth + 1] = {0, 8, 6, 4};
// Of a tile of two blocks in AVX-512, which a register holds together.
constexpr int kMaxWideRows = 12;

template <bool kFollow, int R, int W>
inline void StoreAs(const Vec<float> (&sum)[R][W], const Target& t) {
  const Vec<float> low = Splat(t.bounds.low), high = Splat(t.bounds.high);
#pragma GCC unroll 3
  for (int j = 0; j < W; ++j) {
    const Vec<float> bias = Load(t.bias + j * kLane);
    const int lanes = j == W - 1 ? t.lanes : kLane;
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
      const int64_t at = j * t.block_step + r * kLane;
      Vec<float> v = kFollow ? sum[r][j] + bias : sum[r][j];
      if (t.base != nullptr) v += Load(t.base + at);
      if (kFollow) v = Keep<float>(Within(low, v, high), lanes);
      Store(t.y + at, v);
    }
  }
}

template <int R, int W>
inline void StoreGroup(const Vec<float> (&sum)[R][W], Target& t) {
  t.follow ? StoreAs<true>(sum, t) : StoreAs<false>(sum, t);
  t.Skip(R);
}

// The next pixels of this block, where no other tap has read them.
template <int R, int S>
inline void PrefetchNext(const TileInput& in, const float* x) {
  if (in.taps > 1) return;
  for (int i = 0; i < R * S * kLane; i += 16) _mm_prefetch(x + R * S * kLane + i, _MM_HINT_T0);
}

// `groups` times R pixels, S apart, by W blocks of output channels.
template <int R, int W, int S>
void MultiplyGroups(int64_t groups, TileInput& in, const float* u, Target& t) {
  for (int64_t g = 0; g < groups; ++g, in.x += R * S * kLane) {
    Vec<float> sum[R][W] = {};
    const float* block = in.x;
    const float* weight = u;
    for (int64_t b = 0; b < in.blocks; ++b, block += in.block_step) {
      PrefetchNext<R, S>(in, block);
      for (int64_t tap = 0; tap < in.taps; ++tap, weight += kLane * kLane * W) {
        const float* from = block + in.offsets[tap];
#pragma GCC unroll 8
        for (int c = 0; c < kLane; ++c) {
          Vec<float> weights[W];
#pragma GCC unroll 3
          for (int j = 0; j < W; ++j) weights[j] = Load(weight + (c * W + j) * kLane);
#pragma GCC unroll 8
          for (int r = 0; r < R; ++r) {
            const Vec<float> value = _mm256_broadcast_ss(from + r * S * kLane + c);
#pragma GCC unroll 3
            for (int j = 0; j < W; ++j) sum[r][j] = _mm256_fmadd_ps(value, weights[j], sum[r][j]);
          }
        }
      }
    }
    StoreGroup(sum, t);
  }
}

// The same for two blocks of output channels, in AVX-512: sums in the same order.
template <int R, int S>
[[gnu::target("avx512f")]] void MultiplyGroupsWide(int64_t groups, TileInput& in, const float* u,
                                                   Target& t) {
  for (int64_t g = 0; g < groups; ++g, in.x += R * S * kLane) {
    __m512 sum[R] = {};
    const float* block = in.x;
    const float* weight = u;
    for (int64_t b = 0; b < in.blocks; ++b, block += in.block_step) {
      PrefetchNext<R, S>(in, block);
      for (int64_t tap = 0; tap < in.taps; ++tap, weight += kLane * kLane * 2) {
        const float* from = block + in.offsets[tap];
#pragma GCC unroll 8
        for (int c = 0; c < kLane; ++c) {
          const __m512 weights = _mm512_loadu_ps(weight + c * 2 * kLane);
#pragma GCC unroll 12
          for (int r = 0; r < R; ++r) {
            sum[r] = _mm512_fmadd_ps(_mm512_set1_ps(from[r * S * kLane + c]), weights, sum[r]);
          }
        }
      }
    }
    Vec<float> halves[R][2];
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
      halves[r][0] = _mm512_castps512_ps256(sum[r]);
      halves[r][1] = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(sum[r]), 1));
    }
    StoreGroup(halves, t);
  }
}

using GroupsFunction = void (*)(int64_t, TileInput&, const float*, Target&);
using ByRows = std::array<GroupsFunction, kMaxWideRows + 1>;

template <int W, int S, int... R>
constexpr ByRows MakeByRows(std::integer_sequence<int, R...>) {
  return {nullptr, MultiplyGroups<R + 1, W, S>...};
}
template <int W, int S>
constexpr ByRows kByRows = MakeByRows<W, S>(std::make_integer_sequence<int, kMaxRows[W]>());
template <int S, int... R>
constexpr ByRows MakeWideByRows(std::integer_sequence<int, R...>) {
  return {nullptr, MultiplyGroupsWide<R + 1, S>...};
}
template <int S>
constexpr ByRows kWideByRows = MakeWideByRows<S>(std::make_integer_sequence<int, kMaxWideRows>());

// By stride and width.
constexpr ByRows kGroups[3][kMaxWidth + 1] = {{},
                                              {{}, kByRows<1, 1>, kByRows<2, 1>, kByRows<3, 1>},
                                              {{}, kByRows<1, 2>, kByRows<2, 2>, kByRows<3, 2>}};
constexpr ByRows kWideGroups[3] = {{}, kWideByRows<1>, kWideByRows<2>};

}  // namespace

void MultiplyRow(int64_t pixels, int width, bool wide, TileInput in, const float* u, Target t) {
  wide = wide && width == 2;
  const ByRows& multiply = wide ? kWideGroups[in.stride] : kGroups[in.stride][width];
  // Groups of nearly equal size.
  const int64_t groups = CeilDiv(pixels, wide ? kMaxWideRows : kMaxRows[width]);
  const int64_t rows = pixels / groups, longer = pixels % groups;
  if (longer > 0) multiply[rows + 1](longer, in, u, t);
  multiply[rows](groups - longer, in, u, t);
}

}  // namespace onward::direct
