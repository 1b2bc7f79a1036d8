// SPDX-License-Identifier: Apache-2.0
// 32-byte vectors of float or double for the loops a compiler does not
// vectorise by itself: reductions, square roots, exponentials. Results depend
// on positions in the data only, never on the alignment of a pointer.
#ifndef ONWARD_CORE_OPS_CPU_VEC_H_
#define ONWARD_CORE_OPS_CPU_VEC_H_

#include <immintrin.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace onward {

template <typename T>
struct VecTraits {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>);
  using Int = std::conditional_t<std::is_same_v<T, float>, int32_t, int64_t>;
  typedef T Type __attribute__((vector_size(32)));
  typedef Int IntType __attribute__((vector_size(32)));
};
template <typename T>
using Vec = typename VecTraits<T>::Type;
template <typename T>
using IntVec = typename VecTraits<T>::IntType;
template <typename T>
inline constexpr int kLanes = 32 / sizeof(T);

template <typename T>
inline Vec<T> Splat(T value) {
  return value - Vec<T>{};
}

template <typename T>
inline Vec<T> Load(const T* p) {
  Vec<T> v;
  std::memcpy(&v, p, sizeof(v));
  return v;
}

template <typename T>
inline void Store(T* p, Vec<T> v) {
  std::memcpy(p, &v, sizeof(v));
}

// All bits set in the first `count` lanes, 0 <= count <= kLanes.
template <typename T>
inline IntVec<T> FirstLanes(int count) {
  using Int = typename VecTraits<T>::Int;
  constexpr int n = kLanes<T>;
  static constexpr auto kMask = [] {
    std::array<Int, 2 * n> mask{};
    for (int i = 0; i < n; ++i) mask[i] = -1;
    return mask;
  }();
  IntVec<T> v;
  std::memcpy(&v, kMask.data() + n - count, sizeof(v));
  return v;
}

// The first `count` elements; the other lanes are zero and their memory is not
// touched.
template <typename T>
inline Vec<T> Load(const T* p, int count) {
  if (count == kLanes<T>) return Load(p);
  if constexpr (std::is_same_v<T, float>) {
    return _mm256_maskload_ps(p, (__m256i)FirstLanes<T>(count));
  } else {
    return _mm256_maskload_pd(p, (__m256i)FirstLanes<T>(count));
  }
}

template <typename T>
inline void Store(T* p, Vec<T> v, int count) {
  if (count == kLanes<T>) return Store(p, v);
  if constexpr (std::is_same_v<T, float>) {
    _mm256_maskstore_ps(p, (__m256i)FirstLanes<T>(count), v);
  } else {
    _mm256_maskstore_pd(p, (__m256i)FirstLanes<T>(count), v);
  }
}

// v in the first `count` lanes, `other` in the rest.
template <typename T>
inline Vec<T> Keep(Vec<T> v, int count, T other = 0) {
  if (count == kLanes<T>) return v;
  return FirstLanes<T>(count) ? v : Splat(other);
}

inline Vec<float> Sqrt(Vec<float> v) { return _mm256_sqrt_ps(v); }
inline Vec<double> Sqrt(Vec<double> v) { return _mm256_sqrt_pd(v); }

template <typename V>
inline V Max(V a, V b) {
  return a > b ? a : b;
}

// v within bounds; NaN stays NaN, since these instructions give their second operand
// for it.
inline Vec<float> Within(Vec<float> low, Vec<float> v, Vec<float> high) {
  return _mm256_min_ps(high, _mm256_max_ps(low, v));
}

template <typename V>
inline V Abs(V v) {
  return v < 0 ? -v : v;
}

// The absolute value, by its bits.
inline Vec<float> Magnitude(Vec<float> v) { return (Vec<float>)((IntVec<float>)v & 0x7fffffff); }
inline Vec<double> Magnitude(Vec<double> v) {
  return (Vec<double>)((IntVec<double>)v & 0x7fffffffffffffff);
}

// All bits set in the lanes that hold NaN or an infinity.
template <typename T>
inline IntVec<T> NotFinite(Vec<T> v) {
  return !(Magnitude(v) < std::numeric_limits<T>::infinity());
}

template <typename T>
inline T HorizontalSum(Vec<T> v) {
  if constexpr (std::is_same_v<T, float>) {
    return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
  } else {
    return (v[0] + v[2]) + (v[1] + v[3]);
  }
}

template <typename T>
inline T HorizontalMax(Vec<T> v) {
  T m = v[0];
  for (int i = 1; i < kLanes<T>; ++i) m = v[i] > m ? v[i] : m;
  return m;
}

// Eight vectors as rows become columns.
inline void Transpose8(Vec<float> v[8]) {
  Vec<float> t[8], u[8];
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_ps(v[i], v[i + 1]);
    t[i + 1] = _mm256_unpackhi_ps(v[i], v[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    u[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
    u[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
    u[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
    u[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    v[i] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x20);
    v[i + 4] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x31);
  }
}

// e^x within 2 ulp; zero below -87, infinity above the range of float, NaN for
// NaN. x = n*ln2 + r with |r| <= ln2/2; e^r is a polynomial (Cephes), 2^n is
// put together from bits, as 2 * 2^(n-1) so that n = 128 still works.
inline Vec<float> Exp(Vec<float> x) {
  x = x < -87.5f ? Splat(-87.5f) : x;
  x = x > 89.0f ? Splat(89.0f) : x;
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  const Vec<float> z = x * 1.44269504f + kRound;
  const Vec<float> n = z - kRound;
  const Vec<float> r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  Vec<float> p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + (r + 1.0f);
  const IntVec<float> bits = ((IntVec<float>)z - (IntVec<float>)Splat(kRound) + 126) << 23;
  return p * (Vec<float>)bits * 2.0f;
}

inline Vec<double> Exp(Vec<double> x) {
  for (int i = 0; i < kLanes<double>; ++i) x[i] = std::exp(x[i]);
  return x;
}

// Sums K series of n terms each: terms(i, count, out) puts those of positions
// [i, i + count) into out[0..K). Lanes from `count` on are ignored.
template <typename T, int K, typename Terms>
inline std::array<T, K> Sums(int64_t n, const Terms& terms) {
  constexpr int kUnroll = K == 1 ? 4 : 2;
  constexpr int kStep = kLanes<T>;
  Vec<T> acc[kUnroll][K] = {};
  Vec<T> term[K];
  int64_t i = 0;
  for (; i + kUnroll * kStep <= n; i += kUnroll * kStep) {
    for (int u = 0; u < kUnroll; ++u) {
      terms(i + u * kStep, kStep, term);
      for (int k = 0; k < K; ++k) acc[u][k] += term[k];
    }
  }
  for (; i + kStep <= n; i += kStep) {
    terms(i, kStep, term);
    for (int k = 0; k < K; ++k) acc[0][k] += term[k];
  }
  if (i < n) {
    const int rest = static_cast<int>(n - i);
    terms(i, rest, term);
    for (int k = 0; k < K; ++k) acc[kUnroll - 1][k] += Keep<T>(term[k], rest);
  }
  std::array<T, K> sums;
  for (int k = 0; k < K; ++k) {
    Vec<T> total = acc[0][k] + acc[1][k];
    if constexpr (kUnroll == 4) total += acc[2][k] + acc[3][k];
    sums[k] = HorizontalSum<T>(total);
  }
  return sums;
}

// Calls f(i, count) for consecutive vectors that cover [0, n).
template <typename T, typename F>
inline void ForVecs(int64_t n, const F& f) {
  int64_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) f(i, kLanes<T>);
  if (i < n) f(i, static_cast<int>(n - i));
}

// The largest of n elements (lowest for n = 0); NaN is passed over.
template <typename T>
inline T RowMax(const T* x, int64_t n) {
  constexpr T kLowest = -std::numeric_limits<T>::infinity();
  Vec<T> m = Splat(kLowest);
  ForVecs<T>(
      n, [&](int64_t i, int count) { m = Max(Keep<T>(Load(x + i, count), count, kLowest), m); });
  return HorizontalMax<T>(m);
}

}  // namespace onward

#endif  // ONWARD_CORE_OPS_CPU_VEC_H_
