// SPDX-License-Identifier: Apache-2.0
// Where random kernels get their numbers. What a node draws is a function of
// its seed, its place in the graph and the step, never of threads or of what
// was drawn before; so a run resumes exactly from the step counter alone.
//
// A node with a `seed` attribute draws at step 0 what numpy's legacy
// RandomState(seed).random_sample draws; every other case is a counter-based
// generator (splitmix64) keyed by a hash of seed, node and step.
#ifndef ONWARD_CORE_OPS_RANDOM_RANDOM_DRAWS_H_
#define ONWARD_CORE_OPS_RANDOM_RANDOM_DRAWS_H_

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <random>

#include "core/base/parallel.h"
#include "core/device/kernel.h"

namespace onward {

// A bijection of 64-bit words that changes half of the bits for one changed bit.
inline uint64_t Mix64(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

class RandomSource {
 public:
  static constexpr int64_t kChunk = 512;  // the longest range ForDraws gives

  // Reads the node's seed (integer or float attribute) and names its stream by
  // its first output.
  explicit RandomSource(const Node& node);

  // Calls f(begin, end, u) on ranges that cover [0, n): u[i - begin] in [0, 1)
  // belongs to element i. begin is even, and u holds one draw more than needed
  // where end is odd.
  template <typename F>
  void ForDraws(RandomState state, int64_t n, const F& f) const;

 private:
  static constexpr uint64_t kStep = 0x9e3779b97f4a7c15u;

  uint64_t Key(RandomState state) const;
  // kChunk draws; element i's has 52 bits of Mix64(key + i * kStep).
  static void HashedDraws(uint64_t key, int64_t begin, double* u);

  std::optional<uint64_t> seed_;
  bool numpy_seed_ = false;  // in the range numpy accepts
  uint64_t stream_ = 0;
};

// Turns n (at most kChunk) uniform draws, as ForDraws gives them, into normal
// ones of mean 0 and variance 1. `normal` has room for kChunk.
void BoxMuller(const double* u, int64_t n, double* normal);

template <typename F>
void RandomSource::ForDraws(RandomState state, int64_t n, const F& f) const {
  if (seed_.has_value() && numpy_seed_ && state.step == 0) {
    std::mt19937 generator(static_cast<uint32_t>(*seed_));
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
  const uint64_t key = Key(state);
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
