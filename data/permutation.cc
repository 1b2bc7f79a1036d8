// SPDX-License-Identifier: Apache-2.0
#include "data/permutation.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

namespace onward {
namespace {

// Steele, Lea, Flood: "Fast splittable pseudorandom number generators".
uint64_t SplitMix64(uint64_t* state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// Blackman, Vigna: xoshiro256**.
class Xoshiro256 {
 public:
  Xoshiro256(uint64_t seed, uint64_t stream) {
    uint64_t mix = stream;
    uint64_t start = seed ^ SplitMix64(&mix);
    for (uint64_t& s : state_) s = SplitMix64(&start);
  }

  uint64_t Next() {
    const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // Uniform in [0, bound): values that would favour small results are drawn again.
  uint64_t Below(uint64_t bound) {
    const uint64_t reject = (0 - bound) % bound;
    uint64_t v = Next();
    while (v < reject) v = Next();
    return v % bound;
  }

 private:
  uint64_t state_[4];
};

}  // namespace

std::vector<int64_t> Permutation(int64_t count, uint64_t seed, int64_t epoch) {
  std::vector<int64_t> order(std::max<int64_t>(count, 0));
  std::iota(order.begin(), order.end(), 0);
  Xoshiro256 random(seed, static_cast<uint64_t>(epoch));
  for (int64_t i = count - 1; i > 0; --i) {
    std::swap(order[i], order[random.Below(static_cast<uint64_t>(i) + 1)]);
  }
  return order;
}

}  // namespace onward
