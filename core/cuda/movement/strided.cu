// SPDX-License-Identifier: Apache-2.0
#include "core/cuda/grid.h"
#include "core/cuda/movement/strided.h"
#include "core/cuda/movement/width.h"
#include "core/cuda/position.h"

namespace onward::cuda {
namespace {

using At = Position<kMaxCopyRank>;

template <typename T>
__global__ void StridedCopy(const StridedView view, const T* from, T* to) {
  for (int64_t i = FirstElement(); i < view.elements; i += ElementStep()) {
    const At at(view.dims, view.rank, view.elements, i);
    to[i] = from[view.offset + at.Offset(view.strides, view.rank)];
  }
}

// The last two dimensions swapped, in squares that go through shared memory: both sides are then
// read and written along their rows.
constexpr int kTile = 32;
constexpr int kTileRows = 8;  // of threads
constexpr int64_t kMaxTileBlocks = 1024;

template <typename T>
__global__ void TransposeTiles(const StridedView view, const T* from, T* to) {
  __shared__ T tile[kTile][kTile + 1];
  const int64_t rows = view.dims[view.rank - 2], columns = view.dims[view.rank - 1];
  const int64_t stride = view.strides[view.rank - 1];
  const int64_t across = (columns + kTile - 1) / kTile, down = (rows + kTile - 1) / kTile;
  const int64_t planes = view.elements / (rows * columns);
  for (int64_t t = blockIdx.x; t < planes * down * across; t += gridDim.x) {
    const int64_t plane = t / (down * across);
    const int64_t row = t / across % down * kTile, column = t % across * kTile;
    const At at(view.dims, view.rank - 2, planes, plane);
    const T* const source = from + view.offset + at.Offset(view.strides, view.rank - 2);
    for (int j = threadIdx.y; j < kTile; j += kTileRows) {
      if (row + threadIdx.x < rows && column + j < columns) {
        tile[j][threadIdx.x] = source[(column + j) * stride + row + threadIdx.x];
      }
    }
    __syncthreads();
    T* const target = to + plane * rows * columns;
    for (int j = threadIdx.y; j < kTile; j += kTileRows) {
      if (row + j < rows && column + threadIdx.x < columns) {
        target[(row + j) * columns + column + threadIdx.x] = tile[threadIdx.x][j];
      }
    }
    __syncthreads();
  }
}

bool SwapsLast(const StridedView& view) {
  return view.rank >= 2 && view.strides[view.rank - 2] == 1 && view.strides[view.rank - 1] > 1 &&
         view.dims[view.rank - 2] >= kTile / 2 && view.dims[view.rank - 1] >= kTile / 2;
}

template <typename T>
cudaError_t Copy(const StridedView& view, const void* from, void* to, cudaStream_t stream) {
  const T* const source = static_cast<const T*>(from);
  T* const target = static_cast<T*>(to);
  if (sizeof(T) > 8 || !SwapsLast(view)) {
    return Launch(StridedCopy<T>, LinearGrid(view.elements), stream, view, source, target);
  }
  const int64_t rows = view.dims[view.rank - 2], columns = view.dims[view.rank - 1];
  const int64_t tiles = view.elements / (rows * columns) * ((rows + kTile - 1) / kTile) *
                        ((columns + kTile - 1) / kTile);
  const unsigned blocks = static_cast<unsigned>(tiles < kMaxTileBlocks ? tiles : kMaxTileBlocks);
  return Launch(TransposeTiles<T>, {dim3(blocks), dim3(kTile, kTileRows)}, stream, view, source,
                target);
}

template <typename T>
__global__ void CopyRows(const Rows rows, const T* from, T* to) {
  for (int64_t i = FirstElement(); i < rows.rows * rows.length; i += ElementStep()) {
    const int64_t row = i / rows.length, column = i % rows.length;
    to[row * rows.to_step + column] = from[row * rows.from_step + column];
  }
}

}  // namespace

cudaError_t LaunchStridedCopy(const StridedView& view, int element_bytes, const void* from,
                              void* to, cudaStream_t stream) {
  if (view.elements == 0) return cudaSuccess;
  return ForWidth(element_bytes,
                  [&](auto zero) { return Copy<decltype(zero)>(view, from, to, stream); });
}

cudaError_t LaunchCopyRows(const Rows& rows, int element_bytes, const void* from, void* to,
                           cudaStream_t stream) {
  if (rows.rows * rows.length == 0) return cudaSuccess;
  return ForWidth(element_bytes, [&](auto zero) {
    using T = decltype(zero);
    return Launch(CopyRows<T>, LinearGrid(rows.rows * rows.length), stream, rows,
                  static_cast<const T*>(from), static_cast<T*>(to));
  });
}

}  // namespace onward::cuda
