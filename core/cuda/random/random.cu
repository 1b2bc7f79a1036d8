// SPDX-License-Identifier: Apache-2.0
#include "core/cuda/number.cuh"
#include "core/cuda/random/random.h"
#include "core/device/plan/random_bits.h"

namespace onward::cuda {
namespace {

constexpr int kThreads = 256;

__device__ RandomDraws DrawsOf(RandomDraws draws) {
  if (draws.state == nullptr) return draws;
  const RandomState state = *draws.state;
  draws.key = RandomKey(draws.has_seed != 0 ? draws.seed : state.seed, draws.stream, state.step);
  if (state.step != 0) draws.stored = nullptr;
  return draws;
}

__device__ double DrawAt(const RandomDraws& draws, int64_t i) {
  if (draws.stored != nullptr) return draws.stored[i];
  const uint64_t bits = HashedBits(draws.key, static_cast<uint64_t>(i));
  return __longlong_as_double(static_cast<long long>(bits)) - 1.0;
}

// Box and Muller: elements 2k and 2k + 1 share a radius and an angle.
__device__ double NormalAt(const RandomDraws& draws, int64_t i) {
  const int64_t pair = i / 2 * 2;
  const double radius = sqrt(-2.0 * log(1.0 - DrawAt(draws, pair)));
  const double turns = 2.0 * DrawAt(draws, pair + 1);
  return radius * (i == pair ? cospi(turns) : sinpi(turns));
}

template <class T>
__global__ void DropoutKernel(DropoutCall call, RandomDraws given) {
  using C = Compute<T>;
  const RandomDraws draws = DrawsOf(given);
  double ratio = call.ratio.data == nullptr ? call.ratio.value
                                            : NumberAt(call.ratio.data, call.ratio.dtype, 0);
  if (!(ratio >= 0.0 && ratio < 1.0)) ratio = NotANumber<double>();
  if (call.training != nullptr && !*call.training) ratio = 0;
  const C scale = C(1) / (C(1) - static_cast<C>(ratio));
  const T* x = static_cast<const T*>(call.x);
  T* y = static_cast<T*>(call.y);
  for (int64_t i = FirstElement(); i < call.elements; i += ElementStep()) {
    // A ratio that is no ratio leaves NaN.
    const bool kept = !(DrawAt(draws, i) < ratio);
    if (call.mask != nullptr) call.mask[i] = kept;
    if (y != nullptr) y[i] = Write<T>(Read(x[i]) * (kept ? scale : C(0)));
  }
}

template <class T>
__global__ void FillKernel(RandomFill fill, int64_t n, T* result, RandomDraws given) {
  const RandomDraws draws = DrawsOf(given);
  for (int64_t i = FirstElement(); i < n; i += ElementStep()) {
    const double draw = fill.normal ? NormalAt(draws, i) : DrawAt(draws, i);
    result[i] = Write<T>(fma(fill.scale, draw, fill.shift));
  }
}

template <class T>
__global__ void BernoulliKernel(DType from, int64_t n, const void* probabilities, T* result,
                                RandomDraws given) {
  const RandomDraws draws = DrawsOf(given);
  for (int64_t i = FirstElement(); i < n; i += ElementStep()) {
    const bool one = DrawAt(draws, i) < NumberAt(probabilities, from, i);
    result[i] = Write<T>(Compute<T>(one ? 1 : 0));
  }
}

// The Mersenne twister, its 624 words renewed together by one block: word i needs the old words
// i, i + 1 and, for the first 227 words, i + 397, else the new word i - 227. So there are three
// turns of at most 227 words, in each of which everything is read before anything is written.
constexpr int kWords = 624, kAhead = 397, kTurn = kWords - kAhead;

__device__ uint32_t Tempered(uint32_t y) {
  y ^= y >> 11;
  y ^= y << 7 & 0x9d2c5680u;
  y ^= y << 15 & 0xefc60000u;
  return y ^ y >> 18;
}

__global__ void NumpyKernel(uint32_t seed, int64_t n, const RandomState* state, double* draws) {
  __shared__ uint32_t words[kWords];
  const int t = threadIdx.x;
  if (state != nullptr && state->step != 0) n = 0;
  if (t == 0) {
    words[0] = seed;
    for (uint32_t i = 1; i < kWords; ++i) {
      words[i] = 1812433253u * (words[i - 1] ^ words[i - 1] >> 30) + i;
    }
  }
  __syncthreads();
  for (int64_t begin = 0; begin < n; begin += kWords / 2) {
    for (int first = 0; first < kWords; first += kTurn) {
      const int i = first + t;
      const bool active = t < kTurn && i < kWords;
      uint32_t next = 0;
      if (active) {
        const uint32_t y = (words[i] & 0x80000000u) | (words[(i + 1) % kWords] & 0x7fffffffu);
        next = words[(i + kAhead) % kWords] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0u);
      }
      __syncthreads();
      if (active) words[i] = next;
      __syncthreads();
    }
    for (int k = t; k < kWords / 2 && begin + k < n; k += blockDim.x) {
      const uint64_t high = Tempered(words[2 * k]) >> 5, low = Tempered(words[2 * k + 1]) >> 6;
      draws[begin + k] = static_cast<double>((high << 26) + low) * 0x1p-53;
    }
  }
}

int64_t Even(int64_t n) { return n + n % 2; }

}  // namespace

size_t NumpyDrawsBytes(int64_t n) { return Even(n) * sizeof(double); }

cudaError_t StoreNumpyDraws(uint32_t seed, int64_t n, const RandomState* state, double* draws,
                            cudaStream_t stream) {
  if (n == 0) return cudaSuccess;
  return Launch(NumpyKernel, {dim3(1), dim3(kThreads)}, stream, seed, Even(n), state, draws);
}

cudaError_t Dropout(const DropoutCall& call, const RandomDraws& draws, cudaStream_t stream) {
  if (call.elements == 0) return cudaSuccess;
  return DispatchReal(call.dtype, [&]<class T>() {
    return Launch(DropoutKernel<T>, LinearGrid(call.elements), stream, call, draws);
  });
}

cudaError_t FillRandom(const RandomFill& fill, DType dtype, int64_t n, void* result,
                       const RandomDraws& draws, cudaStream_t stream) {
  if (n == 0) return cudaSuccess;
  return DispatchReal(dtype, [&]<class T>() {
    return Launch(FillKernel<T>, LinearGrid(n), stream, fill, n, static_cast<T*>(result), draws);
  });
}

bool ServesBernoulli(DType to) {
  return IsFloating(to) || to == DType::kBool || to == DType::kInt32 || to == DType::kInt64;
}

cudaError_t Bernoulli(DType from, DType to, int64_t n, const void* probabilities, void* result,
                      const RandomDraws& draws, cudaStream_t stream) {
  if (n == 0) return cudaSuccess;
  const auto run = [&]<class T>() {
    return Launch(BernoulliKernel<T>, LinearGrid(n), stream, from, n, probabilities,
                  static_cast<T*>(result), draws);
  };
  switch (to) {
    case DType::kBool: return run.template operator()<bool>();
    case DType::kInt32: return run.template operator()<int32_t>();
    case DType::kInt64: return run.template operator()<int64_t>();
    default: return DispatchReal(to, run);
  }
}

}  // namespace onward::cuda
