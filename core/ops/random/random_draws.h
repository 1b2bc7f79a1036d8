// SPDX-License-Identifier: Apache-2.0
// Where random kernels get their numbers (core/device/plan/random.h says which). They do not depend
// on threads or on what was drawn before, so a run resumes exactly from the step counter alone.
#ifndef ONWARD_CORE_OPS_RANDOM_RANDOM_DRAWS_H_
#define ONWARD_CORE_OPS_RANDOM_RANDOM_DRAWS_H_

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <random>

#include "core/base/parallel.h"
#include "core/device/kernel.h"
#include "core/device/plan/random.h"

namespace onward {

class RandomSource {
 public:
  static constexpr int64_t kChunk = 512;  // the longest range ForDraws gives

  explicit RandomSource(const Node& node) : stream_(node) {}

  // Calls f(begin, end, u) on ranges that cover [0, n): u[i - begin] in [0, 1)
  // belongs to element i. begin is even, and u holds one draw more than needed
  // where end is odd.
  template <typename F>
  void ForDraws(RandomState state, int64_t n, const F& f) const;

 private:
  // kChunk draws, from HashedBits.
  static void HashedDraws(uint64_t key, int64_t begin, double* u);

  RandomStream stream_;
};

// Turns n (at most kChunk) uniform draws, as ForDraws gives them, into normal
// ones of mean 0 and variance 1. `normal` has room for kChunk.
void BoxMuller(const double* u, int64_t n, double* normal);

template <typename F>
void RandomSource::ForDraws(RandomState state, int64_t n, const F& f) const {
  if (const std::optional<uint32_t> seed = stream_.NumpySeed(state); seed.has_value()) {
    std::mt19937 generator(*seed);
    double u[kChunk];
    for (int64_t begin = 0; begin < n; begin += kChunk) {
      const int64_t end = std::min(n, begin + kChunk);
      for (int64_t i = 0; i < end - begin + (end & 1); ++i) {
        const uint64_t high = generator() >> 5, low = generator() >> 6;
        u[i] = static_cast<double>((high << 26) + low) * 0x1p-53;
      }
      f(begin, end, static_cast<const double*>(u));
    }
    return;
  }
  const uint64_t key = stream_.Key(state);
  ParallelFor((n + kChunk - 1) / kChunk, 16, [&](int64_t first, int64_t last) {
    double u[kChunk];
    for (int64_t c = first; c < last; ++c) {
      HashedDraws(key, c * kChunk, u);
      f(c * kChunk, std::min(n, (c + 1) * kChunk), static_cast<const double*>(u));
    }
  });
}

}  // namespace onward

#endif  // ONWARD_CORE_OPS_RANDOM_RANDOM_DRAWS_H_
