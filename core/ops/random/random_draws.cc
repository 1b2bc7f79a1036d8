// SPDX-License-Identifier: Apache-2.0
#include "core/ops/random/random_draws.h"

#include <immintrin.h>

#include <numbers>

#include "core/device/plan/random_bits.h"

namespace onward {

void RandomSource::HashedDraws(uint64_t key, int64_t begin, double* u) {
  for (int64_t i = 0; i < kChunk; ++i) {
    u[i] = std::bit_cast<double>(HashedBits(key, static_cast<uint64_t>(begin + i))) - 1.0;
  }
}

// Polynomials rather than the C library: they vectorise, and the numbers do not
// change with the library. The loops have no branches for the same reason.
void BoxMuller(const double* u, int64_t n, double* normal) {
  constexpr int64_t kPairs = RandomSource::kChunk / 2;
  const int64_t pairs = (n + 1) / 2;
  double radius[kPairs] = {};
  // log(x) = e log(2) + log(m), x = 1 - u = 2^e m with m in [1/sqrt(2), sqrt(2)),
  // log(m) = 2 atanh(s), s = (m - 1) / (m + 1). 64 keeps the exponent positive.
  constexpr uint64_t kBias = uint64_t{64} << 52;
  constexpr uint64_t kSqrtHalf = 0x3fe6a09e667f3bcdu;
  for (int64_t i = 0; i < pairs; ++i) {
    const uint64_t bits = std::bit_cast<uint64_t>(1.0 - u[2 * i]);
    const uint64_t exponent = (bits - kSqrtHalf + kBias) >> 52;
    const double m = std::bit_cast<double>(bits - (exponent << 52) + kBias);
    const double e = std::bit_cast<double>(exponent | 0x4330000000000000u) - (0x1p52 + 64.0);
    const double s = (m - 1.0) / (m + 1.0), t = s * s;
    double p = 1.0 / 19 + t / 21;
    p = 1.0 / 13 + t * (1.0 / 15 + t * (1.0 / 17 + t * p));
    p = 1.0 / 7 + t * (1.0 / 9 + t * (1.0 / 11 + t * p));
    p = 1.0 + t * (1.0 / 3 + t * (1.0 / 5 + t * p));
    radius[i] = -2.0 * (e * std::numbers::ln2 + 2.0 * s * p);
  }
  for (int64_t i = 0; i < kPairs; i += 4) {
    _mm256_storeu_pd(radius + i, _mm256_sqrt_pd(_mm256_loadu_pd(radius + i)));
  }
  // The angle is quadrant * pi/2 + a with |a| <= pi/4; Taylor series of both.
  for (int64_t i = 0; i < pairs; ++i) {
    const double turns = 4.0 * u[2 * i + 1];
    const int quadrant = static_cast<int>(turns + 0.5);
    const double a = (turns - quadrant) * (std::numbers::pi / 2), w = a * a;
    double sine = -1.0 / 39916800 + w * (1.0 / 6227020800 - w / 1307674368000);
    sine = -1.0 / 6 + w * (1.0 / 120 + w * (-1.0 / 5040 + w * (1.0 / 362880 + w * sine)));
    sine = a * (1.0 + w * sine);
    double cosine = 1.0 / 479001600 + w * (-1.0 / 87178291200 + w / 20922789888000);
    cosine = -1.0 / 720 + w * (1.0 / 40320 + w * (-1.0 / 3628800 + w * cosine));
    cosine = 1.0 + w * (-0.5 + w * (1.0 / 24 + w * cosine));
    const double odd = quadrant & 1 ? 1.0 : 0.0, even = 1.0 - odd;
    const double sine_sign = quadrant & 2 ? -1.0 : 1.0;
    const double cosine_sign = (quadrant + 1) & 2 ? -1.0 : 1.0;
    normal[2 * i] = radius[i] * cosine_sign * (odd * sine + even * cosine);
    normal[2 * i + 1] = radius[i] * sine_sign * (odd * cosine + even * sine);
  }
}

}  // namespace onward
