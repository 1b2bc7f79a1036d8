// SPDX-License-Identifier: Apache-2.0
// Random numbers of data sets: streams that are functions of a few numbers, the same on
// every machine, for any number of threads and in every version. Checkpoints rely on them.
#ifndef ONWARD_DATA_RANDOM_H_
#define ONWARD_DATA_RANDOM_H_

#include <bit>
#include <cstdint>

namespace onward {

// Steele, Lea, Flood: "Fast splittable pseudorandom number generators".
inline uint64_t SplitMix64(uint64_t* state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// Blackman, Vigna: xoshiro256**.
class Random {
 public:
  Random(uint64_t seed, uint64_t stream) {
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

  // Uniform in [0, 1).
  double Uniform() { return static_cast<double>(Next() >> 11) * 0x1p-53; }
  double Between(double low, double high) { return low + (high - low) * Uniform(); }

 private:
  uint64_t state_[4];
};

// What decides the variation of an example: the seed of the run, the epoch, the example and,
// where an epoch takes it several times, which time it is.
inline uint64_t ExampleKey(uint64_t seed, int64_t epoch, int64_t example, int64_t time) {
  uint64_t key = SplitMix64(&seed);
  for (const int64_t part : {epoch, example, time}) {
    uint64_t mixed = key ^ static_cast<uint64_t>(part);
    key = SplitMix64(&mixed);
  }
  return key;
}

}  // namespace onward

#endif  // ONWARD_DATA_RANDOM_H_
