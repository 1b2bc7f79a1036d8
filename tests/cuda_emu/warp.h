// SPDX-License-Identifier: Apache-2.0
// Barriers, warp votes and shuffles of the emulated device.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstring>
#include <source_location>
#include <type_traits>

#ifndef warpSize
#define warpSize 32
#endif

namespace onward::cuda_emu {

using Site = std::source_location;

enum class Vote { kNone, kCount, kAnd, kOr };
// Waits for the block; what the vote says of everybody's predicate.
int Barrier(Vote vote, int predicate, const Site& site);

enum class WarpKind { kSync, kBallot, kShuffle };
int Lane();
// Waits for the lanes of the mask. A shuffle copies `bytes` of what lane `source` gave as `in`.
void WarpExchange(WarpKind kind, unsigned mask, int source, const void* in, void* out, size_t bytes,
                  const Site& site);

template <class T>
inline constexpr bool kShuffled =
    (std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8)) || std::is_same_v<T, __half> ||
    std::is_same_v<T, __half2> || std::is_same_v<T, __nv_bfloat16> ||
    std::is_same_v<T, __nv_bfloat162>;

template <class T>
T Shuffle(unsigned mask, T value, int source, const Site& site) {
  static_assert(kShuffled<T>, "CUDA shuffles 32-bit and 64-bit numbers and halves");
  T result;
  WarpExchange(WarpKind::kShuffle, mask, source, &value, &result, sizeof(T), site);
  return result;
}

inline unsigned Ballot(unsigned mask, int predicate, const Site& site) {
  unsigned result = 0;
  WarpExchange(WarpKind::kBallot, mask, 0, &predicate, &result, sizeof(int), site);
  return result;
}

}  // namespace onward::cuda_emu

inline void __syncthreads(onward::cuda_emu::Site site = onward::cuda_emu::Site::current()) {
  onward::cuda_emu::Barrier(onward::cuda_emu::Vote::kNone, 0, site);
}
inline int __syncthreads_count(int predicate,
                               onward::cuda_emu::Site site = onward::cuda_emu::Site::current()) {
  return onward::cuda_emu::Barrier(onward::cuda_emu::Vote::kCount, predicate, site);
}
inline int __syncthreads_and(int predicate,
                             onward::cuda_emu::Site site = onward::cuda_emu::Site::current()) {
  return onward::cuda_emu::Barrier(onward::cuda_emu::Vote::kAnd, predicate, site);
}
inline int __syncthreads_or(int predicate,
                            onward::cuda_emu::Site site = onward::cuda_emu::Site::current()) {
  return onward::cuda_emu::Barrier(onward::cuda_emu::Vote::kOr, predicate, site);
}

inline void __syncwarp(unsigned mask = 0xffffffffu,
                       onward::cuda_emu::Site site = onward::cuda_emu::Site::current()) {
  onward::cuda_emu::WarpExchange(onward::cuda_emu::WarpKind::kSync, mask, 0, nullptr, nullptr, 0,
                                 site);
}
inline unsigned __ballot_sync(unsigned mask, int predicate,
                              onward::cuda_emu::Site site = onward::cuda_emu::Site::current()) {
  return onward::cuda_emu::Ballot(mask, predicate, site);
}
inline int __any_sync(unsigned mask, int predicate,
                      onward::cuda_emu::Site site = onward::cuda_emu::Site::current()) {
  return onward::cuda_emu::Ballot(mask, predicate, site) != 0;
}
inline int __all_sync(unsigned mask, int predicate,
                      onward::cuda_emu::Site site = onward::cuda_emu::Site::current()) {
  return onward::cuda_emu::Ballot(mask, !predicate, site) == 0;
}

template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = warpSize,
              onward::cuda_emu::Site site = onward::cuda_emu::Site::current()) {
  const int lane = onward::cuda_emu::Lane();
  return onward::cuda_emu::Shuffle(mask, value, (lane & ~(width - 1)) | (source & (width - 1)),
                                   site);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize,
                 onward::cuda_emu::Site site = onward::cuda_emu::Site::current()) {
  const int lane = onward::cuda_emu::Lane();
  const int source = lane - static_cast<int>(delta);
  return onward::cuda_emu::Shuffle(mask, value, source < (lane & ~(width - 1)) ? lane : source,
                                   site);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize,
                   onward::cuda_emu::Site site = onward::cuda_emu::Site::current()) {
  const int lane = onward::cuda_emu::Lane();
  const int source = lane + static_cast<int>(delta);
  return onward::cuda_emu::Shuffle(mask, value, source > (lane | (width - 1)) ? lane : source,
                                   site);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = warpSize,
                  onward::cuda_emu::Site site = onward::cuda_emu::Site::current()) {
  const int lane = onward::cuda_emu::Lane();
  const int source = lane ^ lane_mask;
  return onward::cuda_emu::Shuffle(mask, value, source > (lane | (width - 1)) ? lane : source,
                                   site);
}
