// SPDX-License-Identifier: Apache-2.0
// A stable radix sort of 32-bit keys: per digit of 8 bits, every block counts its keys, the counts
// are summed up in the order of (digit, block), and every block moves its keys behind those before.
#include <utility>

#include "core/cuda/index/sort.h"
#include "core/cuda/types.cuh"

namespace onward::cuda {
namespace {

constexpr int kDigits = 256;
constexpr int kTile = 256;  // keys of a block: one a thread

int64_t Tiles(int64_t count) { return (count + kTile - 1) / kTile; }

// counts is [digit, block].
__global__ void CountDigits(int64_t count, int shift, const uint32_t* keys, uint32_t* counts) {
  __shared__ uint32_t digits[kDigits];
  digits[threadIdx.x] = 0;
  __syncthreads();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kTile + threadIdx.x;
  if (i < count) atomicAdd(&digits[keys[i] >> shift & (kDigits - 1)], 1u);
  __syncthreads();
  counts[static_cast<int64_t>(threadIdx.x) * gridDim.x + blockIdx.x] = digits[threadIdx.x];
}

// Each count becomes the sum of those before it; one block.
__global__ void SumBefore(int64_t n, uint32_t* counts) {
  __shared__ uint32_t shared[2][kTile];
  const int t = threadIdx.x;
  uint32_t carry = 0;
  int turn = 0;  // the buffer that nobody reads any more
  for (int64_t begin = 0; begin < n; begin += kTile) {
    const int64_t i = begin + t;
    const uint32_t own = i < n ? counts[i] : 0;
    uint32_t sum = own;
    for (int distance = 1; distance < kTile; distance *= 2) {
      shared[turn][t] = sum;
      __syncthreads();
      if (t >= distance) sum += shared[turn][t - distance];
      turn ^= 1;
    }
    if (i < n) counts[i] = carry + sum - own;
    shared[turn][t] = sum;
    __syncthreads();
    carry += shared[turn][kTile - 1];
    turn ^= 1;
  }
}

__global__ void MoveKeys(int64_t count, int shift, const uint32_t* keys, const uint32_t* order,
                         const uint32_t* before, uint32_t* to_keys, uint32_t* to_order) {
  __shared__ uint32_t digits[kTile];
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kTile + threadIdx.x;
  const uint32_t key = i < count ? keys[i] : 0;
  const uint32_t digit = key >> shift & (kDigits - 1);
  digits[threadIdx.x] = digit;
  __syncthreads();
  if (i >= count) return;
  uint32_t rank = before[static_cast<int64_t>(digit) * gridDim.x + blockIdx.x];
  for (unsigned t = 0; t < threadIdx.x; ++t) rank += digits[t] == digit ? 1 : 0;
  to_keys[rank] = key;
  to_order[rank] = order == nullptr ? static_cast<uint32_t>(i) : order[i];
}

}  // namespace

size_t SortWorkspace(int64_t count) {
  if (count <= kFewKeys) return count * sizeof(uint32_t);
  return (4 * count + kDigits * Tiles(count)) * sizeof(uint32_t);
}

uint32_t* KeysAt(void* workspace) { return static_cast<uint32_t*>(workspace); }

cudaError_t GroupByKey(int64_t count, uint32_t largest, void* workspace, Grouped* grouped,
                       cudaStream_t stream) {
  uint32_t* keys = KeysAt(workspace);
  *grouped = {keys, nullptr, count, count <= kFewKeys};
  if (grouped->scattered) return cudaSuccess;
  uint32_t* to_keys = keys + count;
  uint32_t* order = keys + 2 * count;
  uint32_t* to_order = keys + 3 * count;
  uint32_t* counts = keys + 4 * count;
  const Geometry tiles = {dim3(static_cast<unsigned>(Tiles(count))), dim3(kTile)};
  const uint32_t* from_order = nullptr;
  for (int shift = 0; shift < 32 && (shift == 0 || largest >> shift > 0); shift += 8) {
    cudaError_t error = Launch(CountDigits, tiles, stream, count, shift, keys, counts);
    if (error != cudaSuccess) return error;
    error = Launch(SumBefore, {dim3(1), dim3(kTile)}, stream, kDigits * Tiles(count), counts);
    if (error != cudaSuccess) return error;
    error =
        Launch(MoveKeys, tiles, stream, count, shift, keys, from_order, counts, to_keys, to_order);
    if (error != cudaSuccess) return error;
    std::swap(keys, to_keys);
    std::swap(order, to_order);
    from_order = order;
  }
  *grouped = {keys, from_order, count, false};
  return cudaSuccess;
}

}  // namespace onward::cuda
