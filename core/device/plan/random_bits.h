// SPDX-License-Identifier: Apache-2.0
// The counter-based generator, for host and device code.
#ifndef ONWARD_CORE_DEVICE_PLAN_RANDOM_BITS_H_
#define ONWARD_CORE_DEVICE_PLAN_RANDOM_BITS_H_

#include <cstdint>

#ifdef __CUDACC__
#define ONWARD_HOST_DEVICE __host__ __device__
#else
#define ONWARD_HOST_DEVICE
#endif

namespace onward {

// The distance of neighbouring counters.
inline constexpr uint64_t kRandomStep = 0x9e3779b97f4a7c15u;

// A bijection of 64-bit words that changes half of the bits for one changed bit.
ONWARD_HOST_DEVICE inline uint64_t Mix64(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// What tells the draws of a node in a step from all others.
ONWARD_HOST_DEVICE inline uint64_t RandomKey(uint64_t seed, uint64_t stream, uint64_t step) {
  uint64_t h = Mix64(seed + kRandomStep);
  h = Mix64((h ^ stream) + kRandomStep);
  return Mix64((h ^ step) + kRandomStep);
}

// The bits of a double in [1, 2) that belongs to element i: 52 of them are random.
ONWARD_HOST_DEVICE inline uint64_t HashedBits(uint64_t key, uint64_t i) {
  return (Mix64(key + i * kRandomStep) >> 12) | 0x3ff0000000000000u;
}

}  // namespace onward

#endif  // ONWARD_CORE_DEVICE_PLAN_RANDOM_BITS_H_
