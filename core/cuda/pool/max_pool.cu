// SPDX-License-Identifier: Apache-2.0
#include "core/cuda/pool/kernels.h"
#include "core/cuda/pool/window.cuh"

namespace onward::cuda {
namespace {

// The place of the winner in its plane; -1: the window lies in the padding alone.
template <class T>
struct PoolWinner {
  Compute<T> value;
  int64_t at;
};

template <class T>
__device__ PoolWinner<T> FindWinner(const PoolShape& s, int64_t p, const T* plane) {
  PoolWinner<T> winner = {LowestValue<T>(), -1};
  ForTaps(s, p, [&](int64_t at) {
    const Compute<T> v = Read(plane[at]);
    if (winner.at >= 0 && !Exceeds(v, winner.value)) return;
    winner = {v, at};
  });
  return winner;
}

template <class T>
__global__ void Max(PoolShape s, const T* x, T* y, int64_t* indices, bool column_major,
                    int64_t elements) {
  const int64_t in = InPositions(s), out = OutPositions(s);
  const PoolAxis &d = s.axes[0], &h = s.axes[1], &w = s.axes[2];
  for (int64_t at = FirstElement(); at < elements; at += ElementStep()) {
    const int64_t plane = at / out;
    const PoolWinner<T> winner = FindWinner(s, at % out, x + plane * in);
    if (y != nullptr) y[at] = Write<T>(winner.value);
    if (indices == nullptr) continue;
    int64_t place = winner.at;
    if (column_major && place >= 0) {
      const PoolPosition i = PositionOf(place, h.in, w.in);
      place = i.d + (i.h + static_cast<int64_t>(i.w) * h.in) * d.in;
    }
    indices[at] = place < 0 ? -1 : plane * in + place;
  }
}

template <class T>
__global__ void Winners(PoolShape s, const T* x, int* winners, int64_t elements) {
  const int64_t in = InPositions(s), out = OutPositions(s);
  for (int64_t at = FirstElement(); at < elements; at += ElementStep()) {
    winners[at] = static_cast<int>(FindWinner(s, at % out, x + at / out * in).at);
  }
}

template <class T>
__global__ void MaxGrad(PoolShape s, const T* dy, const int* winners, T* dx, int64_t elements) {
  const int64_t in = InPositions(s), out = OutPositions(s);
  for (int64_t at = FirstElement(); at < elements; at += ElementStep()) {
    const int64_t first = at / in * out, place = at % in;
    Compute<T> sum = 0;
    ForWindows(s, place, [&](int64_t p) {
      if (winners[first + p] == place) sum += Read(dy[first + p]);
    });
    dx[at] = Write<T>(sum);
  }
}

}  // namespace

cudaError_t MaxPool(DType dtype, const PoolShape& s, const void* x, void* y, int64_t* indices,
                    bool column_major, cudaStream_t stream) {
  const int64_t elements = s.planes * OutPositions(s);
  if (elements == 0) return cudaSuccess;
  const auto run = [&]<class T>() {
    return Launch(Max<T>, LinearGrid(elements), stream, s, static_cast<const T*>(x),
                  static_cast<T*>(y), indices, column_major, elements);
  };
  if (dtype == DType::kInt8) return run.template operator()<int8_t>();
  if (dtype == DType::kUint8) return run.template operator()<uint8_t>();
  return DispatchReal(dtype, run);
}

cudaError_t MaxPoolGrad(DType dtype, const PoolShape& s, const void* dy, const void* x, void* dx,
                        int* winners, cudaStream_t stream) {
  const int64_t in = s.planes * InPositions(s), out = s.planes * OutPositions(s);
  if (in == 0) return cudaSuccess;
  return DispatchReal(dtype, [&]<class T>() {
    if (out > 0) {
      const cudaError_t error =
          Launch(Winners<T>, LinearGrid(out), stream, s, static_cast<const T*>(x), winners, out);
      if (error != cudaSuccess) return error;
    }
    return Launch(MaxGrad<T>, LinearGrid(in), stream, s, static_cast<const T*>(dy), winners,
                  static_cast<T*>(dx), in);
  });
}

}  // namespace onward::cuda
