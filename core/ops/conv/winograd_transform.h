// SPDX-License-Identifier: Apache-2.0
// The transforms of Winograd's F(4x4, 3x3), eight channels (lanes) at a time.
//
// A 4x4 tile y of the output of a 3x3 convolution with filter g reads a 6x6
// patch d of the input, and
//
//   y  = A^T [ (G g G^T) . (B^T d B) ] A
//   dg = G^T [ (A dy A^T) . (B^T d B) ] G
//
// where . multiplies the 36 positions one by one. The matrices interpolate at
// the points 0, -a, a, -b, b and infinity:
//
//   B^T  = | a2b2   0   -(a2+b2)   0      1   0 |   G = | 1/a2b2   0      0    |
//          |  0   -ab2     -b2     a      1   0 |       |  1/na   a/na   a2/na |
//          |  0    ab2     -b2    -a      1   0 |       |  1/na  -a/na   a2/na |
//          |  0   -a2b     -a2     b      1   0 |       |  1/nb   b/nb   b2/nb |
//          |  0    a2b     -a2    -b      1   0 |       |  1/nb  -b/nb   b2/nb |
//          |  0   a2b2      0   -(a2+b2)  0   1 |       |   0      0      1    |
//
//   A^T  = | 1   1    1    1    1   0 |   na = 2 a2 (a2 - b2)
//          | 0   a   -a    b   -b   0 |   nb = 2 b2 (b2 - a2)
//          | 0   a2   a2   b2   b2  0 |
//          | 0   a3  -a3   b3  -b3  1 |
//
// With a = 3/4, b = 3/2 every entry of A and B is exact in float, and rounding
// errors are a quarter of those of the usual a = 1, b = 2 at the same cost.
#ifndef ONWARD_CORE_OPS_CONV_WINOGRAD_TRANSFORM_H_
#define ONWARD_CORE_OPS_CONV_WINOGRAD_TRANSFORM_H_

#include <immintrin.h>

#include <algorithm>
#include <cstdint>

#include "core/ops/cpu/vec.h"

namespace onward::winograd {

inline constexpr int kTile = 4;
inline constexpr int kPatch = 6;
inline constexpr int kPositions = kPatch * kPatch;
inline constexpr int kTaps = 9;
inline constexpr int kLane = kLanes<float>;

inline constexpr float kA = 0.75f, kB = 1.5f;
inline constexpr float kA2 = kA * kA, kB2 = kB * kB, kA3 = kA2 * kA, kB3 = kB2 * kB;
inline constexpr float kNa = 1 / (2 * kA2 * (kA2 - kB2)), kNb = 1 / (2 * kB2 * (kB2 - kA2));

// a*b + c and c - a*b, rounded once.
inline Vec<float> MulAdd(float a, Vec<float> b, Vec<float> c) {
  return _mm256_fmadd_ps(_mm256_set1_ps(a), b, c);
}
inline Vec<float> SubMul(float a, Vec<float> b, Vec<float> c) {
  return _mm256_fnmadd_ps(_mm256_set1_ps(a), b, c);
}

// o = B^T d.
inline void InputLine(const Vec<float> d[6], Vec<float> o[6]) {
  const Vec<float> even_a = SubMul(kB2, d[2], d[4]), odd_a = SubMul(kB2, d[1], d[3]);
  const Vec<float> even_b = SubMul(kA2, d[2], d[4]), odd_b = SubMul(kA2, d[1], d[3]);
  o[0] = MulAdd(kA2 * kB2, d[0], SubMul(kA2 + kB2, d[2], d[4]));
  o[1] = MulAdd(kA, odd_a, even_a);
  o[2] = SubMul(kA, odd_a, even_a);
  o[3] = MulAdd(kB, odd_b, even_b);
  o[4] = SubMul(kB, odd_b, even_b);
  o[5] = MulAdd(kA2 * kB2, d[1], SubMul(kA2 + kB2, d[3], d[5]));
}

// o = A^T m.
inline void OutputLine(const Vec<float> m[6], Vec<float> o[4]) {
  const Vec<float> even_a = m[1] + m[2], odd_a = m[1] - m[2];
  const Vec<float> even_b = m[3] + m[4], odd_b = m[3] - m[4];
  o[0] = m[0] + (even_a + even_b);
  o[1] = MulAdd(kA, odd_a, kB * odd_b);
  o[2] = MulAdd(kA2, even_a, kB2 * even_b);
  o[3] = MulAdd(kA3, odd_a, MulAdd(kB3, odd_b, m[5]));
}

// o = A y.
inline void OutputGradLine(const Vec<float> y[4], Vec<float> o[6]) {
  const Vec<float> even_a = MulAdd(kA2, y[2], y[0]), odd_a = MulAdd(kA2, y[3], y[1]);
  const Vec<float> even_b = MulAdd(kB2, y[2], y[0]), odd_b = MulAdd(kB2, y[3], y[1]);
  o[0] = y[0];
  o[1] = MulAdd(kA, odd_a, even_a);
  o[2] = SubMul(kA, odd_a, even_a);
  o[3] = MulAdd(kB, odd_b, even_b);
  o[4] = SubMul(kB, odd_b, even_b);
  o[5] = y[3];
}

// o = G w.
inline void FilterLine(const Vec<float> w[3], Vec<float> o[6]) {
  const Vec<float> even_a = kNa * MulAdd(kA2, w[2], w[0]), odd_a = (kNa * kA) * w[1];
  const Vec<float> even_b = kNb * MulAdd(kB2, w[2], w[0]), odd_b = (kNb * kB) * w[1];
  o[0] = (1 / (kA2 * kB2)) * w[0];
  o[1] = even_a + odd_a;
  o[2] = even_a - odd_a;
  o[3] = even_b + odd_b;
  o[4] = even_b - odd_b;
  o[5] = w[2];
}

// o = G^T m.
inline void FilterGradLine(const Vec<float> m[6], Vec<float> o[3]) {
  const Vec<float> even_a = kNa * (m[1] + m[2]), odd_a = m[1] - m[2];
  const Vec<float> even_b = kNb * (m[3] + m[4]), odd_b = m[3] - m[4];
  o[0] = MulAdd(1 / (kA2 * kB2), m[0], even_a + even_b);
  o[1] = MulAdd(kNa * kA, odd_a, (kNb * kB) * odd_b);
  o[2] = MulAdd(kA2, even_a, MulAdd(kB2, even_b, m[5]));
}

// An N x N piece of a plane [height][width][8] that may reach over its edges,
// where it reads zeros. Columns [first, last) lie inside; row[i] points at
// column `first` of row i.
template <int N>
struct Piece {
  const float* row[N];
  int first, last;

  Piece(const float* plane, int64_t height, int64_t width, int64_t y, int64_t x) {
    static constexpr float kZeros[N * kLane] = {};
    first = static_cast<int>(std::clamp<int64_t>(-x, 0, N));
    last = static_cast<int>(std::clamp<int64_t>(width - x, 0, N));
    const bool some = first < last;
    for (int i = 0; i < N; ++i) {
      const bool inside = some && y + i >= 0 && y + i < height;
      row[i] = inside ? plane + ((y + i) * width + x + first) * kLane : kZeros;
    }
  }
  bool full_width() const { return first == 0 && last == N; }
};

// Asks for floats that are read or written soon. Addresses outside of a buffer
// are harmless, so `at` may be out of bounds.
inline void Prefetch(const float* at, int64_t floats) {
  const char* bytes = reinterpret_cast<const char*>(at);
  for (int64_t i = 0; i < floats * 4; i += 64) _mm_prefetch(bytes + i, _MM_HINT_T0);
}

// The same for 4x4 elements of a plane.
inline void PrefetchTile(const float* at, int64_t width) {
  for (int i = 0; i < kTile; ++i) Prefetch(at + i * width * kLane, kTile * kLane);
}

// L transforms lines of N into lines of 6: out + p * stride gets position p of
// L d L^T. Returns the sum of d.
template <int N, bool kFullWidth, typename Line>
inline Vec<float> TransformPiece(const Piece<N>& piece, const Line& line, float* out,
                                 int64_t stride) {
  Vec<float> half[kPatch][N], sum = {};
#pragma GCC unroll 6
  for (int j = 0; j < N; ++j) {
    if (!kFullWidth && (j < piece.first || j >= piece.last)) {
      for (int i = 0; i < kPatch; ++i) half[i][j] = Vec<float>{};
      continue;
    }
    const int64_t at = (kFullWidth ? j : j - piece.first) * kLane;
    Vec<float> column[N], o[kPatch];
    for (int i = 0; i < N; ++i) column[i] = Load(piece.row[i] + at);
    for (int i = 0; i < N; ++i) sum += column[i];
    line(column, o);
    for (int i = 0; i < kPatch; ++i) half[i][j] = o[i];
  }
#pragma GCC unroll 6
  for (int i = 0; i < kPatch; ++i) {
    Vec<float> o[kPatch];
    line(half[i], o);
    for (int j = 0; j < kPatch; ++j) Store(out + (i * kPatch + j) * stride, o[j]);
  }
  return sum;
}

// B^T d B of the patch whose corner is (y, x).
inline void TransformInput(const float* plane, int64_t height, int64_t width, int64_t y, int64_t x,
                           float* out, int64_t stride) {
  const Piece<kPatch> piece(plane, height, width, y, x);
  const auto line = [](const Vec<float>* d, Vec<float>* o) { InputLine(d, o); };
  if (piece.full_width()) {
    TransformPiece<kPatch, true>(piece, line, out, stride);
  } else {
    TransformPiece<kPatch, false>(piece, line, out, stride);
  }
}

// A dy A^T of the tile whose corner is (y, x). Returns the sum of dy.
inline Vec<float> TransformOutputGrad(const float* plane, int64_t height, int64_t width, int64_t y,
                                      int64_t x, float* out, int64_t stride) {
  const Piece<kTile> piece(plane, height, width, y, x);
  const auto line = [](const Vec<float>* d, Vec<float>* o) { OutputGradLine(d, o); };
  return piece.full_width() ? TransformPiece<kTile, true>(piece, line, out, stride)
                            : TransformPiece<kTile, false>(piece, line, out, stride);
}

// put(i, j, value) gets the elements of A^T m A; position p is m + p * stride.
template <typename Put>
inline void TransformProduct(const float* m, int64_t stride, const Put& put) {
  Vec<float> half[kTile][kPatch];
#pragma GCC unroll 6
  for (int j = 0; j < kPatch; ++j) {
    Vec<float> column[kPatch], o[kTile];
    for (int i = 0; i < kPatch; ++i) column[i] = Load(m + (i * kPatch + j) * stride);
    OutputLine(column, o);
    for (int i = 0; i < kTile; ++i) half[i][j] = o[i];
  }
#pragma GCC unroll 4
  for (int i = 0; i < kTile; ++i) {
    Vec<float> o[kTile];
    OutputLine(half[i], o);
#pragma GCC unroll 4
    for (int j = 0; j < kTile; ++j) put(i, j, o[j]);
  }
}

// out + p * stride gets position p of G w G^T.
inline void TransformFilter(const Vec<float> w[kTaps], float* out, int64_t stride) {
  Vec<float> half[kPatch][3];
#pragma GCC unroll 3
  for (int j = 0; j < 3; ++j) {
    const Vec<float> column[3] = {w[j], w[3 + j], w[6 + j]};
    Vec<float> o[kPatch];
    FilterLine(column, o);
    for (int i = 0; i < kPatch; ++i) half[i][j] = o[i];
  }
#pragma GCC unroll 6
  for (int i = 0; i < kPatch; ++i) {
    Vec<float> o[kPatch];
    FilterLine(half[i], o);
    for (int j = 0; j < kPatch; ++j) Store(out + (i * kPatch + j) * stride, o[j]);
  }
}

// w = G^T m G; load(p) gives position p of m.
template <typename LoadPosition>
inline void TransformFilterGrad(const LoadPosition& load, Vec<float> w[kTaps]) {
  Vec<float> half[3][kPatch];
#pragma GCC unroll 6
  for (int j = 0; j < kPatch; ++j) {
    Vec<float> column[kPatch], o[3];
    for (int i = 0; i < kPatch; ++i) column[i] = load(i * kPatch + j);
    FilterGradLine(column, o);
    for (int i = 0; i < 3; ++i) half[i][j] = o[i];
  }
#pragma GCC unroll 3
  for (int i = 0; i < 3; ++i) FilterGradLine(half[i], w + i * 3);
}

}  // namespace onward::winograd

#endif  // ONWARD_CORE_OPS_CONV_WINOGRAD_TRANSFORM_H_
