// SPDX-License-Identifier: Apache-2.0
#include "core/ops/random/random_draws.h"

#include <immintrin.h>

#include <limits>
#include <numbers>
#include <string>
#include <variant>

namespace onward {

RandomSource::RandomSource(const Node& node) {
  if (auto it = node.attributes.find("seed"); it != node.attributes.end()) {
    if (const auto* i = std::get_if<int64_t>(&it->second.value)) {
      seed_ = static_cast<uint64_t>(*i);
      numpy_seed_ = *i >= 0 && *i <= std::numeric_limits<uint32_t>::max();
    } else if (const auto* f = std::get_if<float>(&it->second.value)) {
      // numpy's callers truncate, as in RandomState(int(seed)).
      numpy_seed_ = *f >= 0.0f && *f < 0x1p32f;
      seed_ = numpy_seed_ ? static_cast<uint64_t>(*f) : std::bit_cast<uint32_t>(*f);
    }
  }
  // FNV-1a.
  stream_ = 0xcbf29ce484222325u;
  const std::string& name = node.HasOutput(0) ? node.outputs[0] : node.name;
  for (unsigned char c : name) stream_ = (stream_ ^ c) * 0x100000001b3u;
}

uint64_t RandomSource::Key(RandomState state) const {
  uint64_t h = Mix64(seed_.value_or(state.seed) + kStep);
  h = Mix64((h ^ stream_) + kStep);
  return Mix64((h ^ state.step) + kStep);
}

void RandomSource::HashedDraws(uint64_t key, int64_t begin, double* u) {
  for (int64_t i = 0; i < kChunk; ++i) {
    const uint64_t bits = Mix64(key + static_cast<uint64_t>(begin + i) * kStep);
    u[i] = std::bit_cast<double>((bits >> 12) | 0x3ff0000000000000u) - 1.0;
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
