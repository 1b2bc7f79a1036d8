// SPDX-License-Identifier: Apache-2.0
// The functions of float_math.h on vectors of kLaneCount: text that each version includes after
// its Lanes and what differs between them.
//
// Arguments are reduced by multiples of ln 2 or pi/2; the polynomials are minimax fits on the
// interval that remains.

constexpr float kRound = 0x1.8p23f;  // adding it leaves an integer in the low mantissa bits
constexpr int32_t kSignBit = INT32_MIN;

inline Lanes All(float value) { return value - Lanes{}; }

inline Lanes LoadAll(const float* p) {
  Lanes v;
  __builtin_memcpy(&v, p, sizeof(v));
  return v;
}
inline void StoreAll(float* p, Lanes v) { __builtin_memcpy(p, &v, sizeof(v)); }

inline Lanes Negated(Lanes magnitude) { return (Lanes)((IntLanes)magnitude | kSignBit); }

// 2^n, from what ByLn2 leaves of n; sums of the bits wrap around.
inline Lanes PowerOf(Lanes shifted) {
  return (Lanes)(((UintLanes)shifted << 23) + (uint32_t{127} << 23));
}

// x = n ln 2 + r with the integer n nearest to x / ln 2.
struct Reduced {
  Lanes shifted, n, r;
};
inline Reduced ByLn2(Lanes x) {
  const Lanes shifted = x * 1.44269504f + kRound;
  const Lanes n = shifted - kRound;
  return {shifted, n, (x - n * 0.693359375f) + n * 2.12194440e-4f};
}

// (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2.
inline Lanes ExpTail(Lanes r) {
  Lanes q = r * 1.39464508e-3f + 8.36658395e-3f;
  q = q * r + 4.1666282e-2f;
  q = q * r + 0.16666543f;
  return q * r + 0.500000006f;
}

// Beyond the limits the result is infinity or 0 in any case.
inline Lanes Exp(Lanes x) {
  x = Greater(All(-104.0f), Lesser(All(89.0f), x));
  const Reduced k = ByLn2(x);
  Lanes q = ExpTail(k.r);
  q = q * k.r + 1.0f;
  q = q * k.r + 1.0f;
  return ScaleByPower(q, k.n);
}

// tanh |x| = -m / (m + 2) with m = expm1(-2 |x|) = 2^n (e^r - 1) + (2^n - 1); it rounds to 1
// from 10 on, where 2^n is still a normal float.
inline Lanes Tanh(Lanes x) {
  const Lanes negative = Negated(x);
  const Reduced k = ByLn2(Greater(All(-20.0f), negative + negative));
  const Lanes power = PowerOf(k.shifted);
  const Lanes m = power * (ExpTail(k.r) * (k.r * k.r) + k.r) + (power - 1.0f);
  const Lanes y = m / (m + 2.0f);
  return (Lanes)(((IntLanes)y & INT32_MAX) | ((IntLanes)x & kSignBit));
}

// 1 / (1 + e^-x), by e^-|x| so that nothing overflows.
inline Lanes Sigmoid(Lanes x) {
  const Lanes e = Exp(Negated(x));
  return (x < 0.0f ? e : All(1.0f)) / (1.0f + e);
}

// Below 0.93 a polynomial in x^2, which is exact where 1 - erfc(x) would cancel; above, erfc(x)
// as the exponential of one. Above 4 the result rounds to 1.
inline Lanes Erf(Lanes x) {
  const Lanes t = Lesser(All(4.0f), (Lanes)((IntLanes)x & INT32_MAX));
  const Lanes s = t * t;
  Lanes small = s * 8.31677545e-5f - 8.13001275e-4f;
  small = small * s + 5.19990668e-3f;
  small = small * s - 2.68589415e-2f;
  small = small * s + 0.112836872f;
  small = small * s - 0.376126332f;
  small = small * s + 0.128379167f;
  small = small * t + t;
  Lanes log_erfc = t * 1.94777643e-4f - 3.03181952e-3f;
  log_erfc = log_erfc * t + 2.21813849e-2f;
  log_erfc = log_erfc * t - 0.103836904f;
  log_erfc = log_erfc * t - 0.637290423f;
  log_erfc = log_erfc * t - 1.12761121f;
  log_erfc = log_erfc * t - 2.11313251e-4f;
  const Reduced k = ByLn2(log_erfc);
  Lanes q = ExpTail(k.r) * k.r + 1.0f;
  q = q * k.r + 1.0f;
  const Lanes large = 1.0f - q * PowerOf(k.shifted);
  const Lanes y = t > 0.93f ? large : small;
  return (Lanes)(((IntLanes)y & INT32_MAX) | ((IntLanes)x & kSignBit));
}

// Up to here three parts of pi/2 reduce an argument exactly enough.
constexpr float kFarthest = 0x1p17f;

// |x| = n pi/2 + r: by n mod 4 it is the sine or the cosine of r, or minus that. A cosine is the
// sine of the next quarter.
template <bool kCosine>
inline Lanes SineOf(Lanes x) {
  const Lanes magnitude = (Lanes)((IntLanes)x & INT32_MAX);
  const Lanes shifted = magnitude * 0.636619772f + kRound;
  const Lanes n = shifted - kRound;
  Lanes r = LessProduct(magnitude, n, All(0x1.921fb4p+0f));
  r = LessProduct(r, n, All(0x1.4442d0p-24f));
  r = LessProduct(r, n, All(0x1.84698ap-48f));
  const Lanes s = r * r;
  Lanes sine = s * -1.9515295891e-4f + 8.3321608736e-3f;
  sine = sine * s - 1.6666654611e-1f;
  sine = sine * s * r + r;
  Lanes cosine = s * 2.443315711809948e-5f - 1.388731625493765e-3f;
  cosine = cosine * s + 4.166664568298827e-2f;
  cosine = cosine * s - 0.5f;
  cosine = cosine * s + 1.0f;
  const IntLanes quarter = (IntLanes)shifted + (kCosine ? 1 : 0);
  const Lanes y = (quarter & 1) != 0 ? cosine : sine;
  const IntLanes turned = (quarter << 30) ^ (kCosine ? IntLanes{} : (IntLanes)x);
  return (Lanes)((IntLanes)y ^ (turned & kSignBit));
}

template <Lanes (*kFunction)(Lanes)>
void MapAll(const float* x, float* y, int64_t n) {
  int64_t i = 0;
  for (; i + kLaneCount <= n; i += kLaneCount) StoreAll(y + i, kFunction(LoadAll(x + i)));
  if (i < n) StoreFirst(y + i, kFunction(LoadFirst(x + i, n - i)), n - i);
}

// Whether no element lies beyond kFarthest, or is NaN.
inline bool AllNear(const float* x, int64_t n) {
  IntLanes near = ~IntLanes{};
  int64_t i = 0;
  for (; i + kLaneCount <= n; i += kLaneCount) {
    near &= (Lanes)((IntLanes)LoadAll(x + i) & INT32_MAX) <= kFarthest;
  }
  if (i < n) near &= (Lanes)((IntLanes)LoadFirst(x + i, n - i) & INT32_MAX) <= kFarthest;
  return AllSet(near);
}

template <bool kCosine>
void MapSine(const float* x, float* y, int64_t n) {
  constexpr int64_t kPiece = 256;
  for (int64_t begin = 0; begin < n; begin += kPiece) {
    const int64_t count = n - begin < kPiece ? n - begin : kPiece;
    const float* from = x + begin;
    if (AllNear(from, count)) {
      MapAll<SineOf<kCosine>>(from, y + begin, count);
      continue;
    }
    float near[kPiece];
    MapAll<SineOf<kCosine>>(from, near, count);
    for (int64_t i = 0; i < count; ++i) {
      const bool far = !(__builtin_fabsf(from[i]) <= kFarthest);
      y[begin + i] = !far ? near[i] : kCosine ? cosf(from[i]) : sinf(from[i]);
    }
  }
}

// Reductions hold 32 numbers, whatever the width: the element at i goes to number i mod 32, and
// the second half is joined with the first until one is left.
constexpr int kParts = 32;
constexpr int kVectors = kParts / kLaneCount;

inline Lanes LoadUpTo(const float* p, int64_t count) {
  return count == kLaneCount ? LoadAll(p) : LoadFirst(p, count);
}
inline void StoreUpTo(float* p, Lanes v, int64_t count) {
  count == kLaneCount ? StoreAll(p, v) : StoreFirst(p, v, count);
}
// v in the first lanes, `other` in the rest.
inline Lanes Keep(Lanes v, int64_t count, Lanes other) {
  return count == kLaneCount ? v : FirstLanes(count) ? v : other;
}

// Calls each(k, at, count) for the vectors of the last elements, from `begin` on: fewer than
// kParts.
template <typename Each>
inline void ForLastVectors(int64_t begin, int64_t n, const Each& each) {
#pragma GCC unroll 4
  for (int k = 0; k < kVectors; ++k) {
    const int64_t at = begin + k * kLaneCount;
    if (at >= n) return;
    each(k, at, n - at < kLaneCount ? n - at : kLaneCount);
  }
}

float MaxOf(const float* x, int64_t n) {
  const Lanes lowest = All(-__builtin_inff());
  Lanes most[kVectors];
  for (Lanes& m : most) m = lowest;
  int64_t i = 0;
  for (; i + kParts <= n; i += kParts) {
    for (int k = 0; k < kVectors; ++k) most[k] = Greater(LoadAll(x + i + k * kLaneCount), most[k]);
  }
  ForLastVectors(i, n, [&](int k, int64_t at, int64_t count) {
    most[k] = Greater(Keep(LoadUpTo(x + at, count), count, lowest), most[k]);
  });
  for (int half = kVectors / 2; half > 0; half /= 2) {
    for (int k = 0; k < half; ++k) most[k] = Greater(most[k + half], most[k]);
  }
  return LargestOf(most[0]);
}

template <bool kStore>
float ExpAndSum(const float* x, float shift, float* y, int64_t n) {
  Lanes sums[kVectors] = {};
  int64_t i = 0;
  for (; i + kParts <= n; i += kParts) {
    for (int k = 0; k < kVectors; ++k) {
      const Lanes e = Exp(LoadAll(x + i + k * kLaneCount) - shift);
      if (kStore) StoreAll(y + i + k * kLaneCount, e);
      sums[k] += e;
    }
  }
  ForLastVectors(i, n, [&](int k, int64_t at, int64_t count) {
    const Lanes e = Exp(LoadUpTo(x + at, count) - shift);
    if (kStore) StoreUpTo(y + at, e, count);
    sums[k] += Keep(e, count, Lanes{});
  });
  for (int half = kVectors / 2; half > 0; half /= 2) {
    for (int k = 0; k < half; ++k) sums[k] += sums[k + half];
  }
  return SumOf(sums[0]);
}

float SumOfExp(const float* x, float shift, int64_t n) {
  return ExpAndSum<false>(x, shift, nullptr, n);
}

constexpr FloatMath kFunctions = {
    .exp = MapAll<Exp>,
    .tanh = MapAll<Tanh>,
    .sigmoid = MapAll<Sigmoid>,
    .erf = MapAll<Erf>,
    .sin = MapSine<false>,
    .cos = MapSine<true>,
    .max = MaxOf,
    .exp_and_sum = ExpAndSum<true>,
    .sum_of_exp = SumOfExp,
};
