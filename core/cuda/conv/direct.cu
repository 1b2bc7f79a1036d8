// SPDX-License-Identifier: Apache-2.0
#include "core/cuda/block.cuh"
#include "core/cuda/conv/direct.h"
#include "core/cuda/types.cuh"

namespace onward::cuda {
namespace {

struct Position {
  int d, h, w;
};

__host__ __device__ int64_t InPositions(const DirectConv& c) {
  return static_cast<int64_t>(c.axes[0].in) * c.axes[1].in * c.axes[2].in;
}
__host__ __device__ int64_t OutPositions(const DirectConv& c) {
  return static_cast<int64_t>(c.axes[0].out) * c.axes[1].out * c.axes[2].out;
}
__host__ __device__ int64_t Taps(const DirectConv& c) {
  return static_cast<int64_t>(c.axes[0].kernel) * c.axes[1].kernel * c.axes[2].kernel;
}

// Element p of a row-major box whose last two axes have h and w positions.
__device__ Position PositionOf(int64_t p, int h, int w) {
  const int64_t line = p / w;
  return {static_cast<int>(line / h), static_cast<int>(line % h), static_cast<int>(p % w)};
}

// The input position that window position o reaches with a tap; -1 outside of the input.
__device__ int InputOf(const ConvAxis& a, int o, int tap) {
  const int64_t at =
      static_cast<int64_t>(o) * a.stride - a.pad + static_cast<int64_t>(tap) * a.dilation;
  return at >= 0 && at < a.in ? static_cast<int>(at) : -1;
}
// The window position that reaches input position i with a tap; -1: none.
__device__ int OutputOf(const ConvAxis& a, int i, int tap) {
  const int64_t at = static_cast<int64_t>(i) + a.pad - static_cast<int64_t>(tap) * a.dilation;
  if (at < 0 || at % a.stride != 0) return -1;
  return at / a.stride < a.out ? static_cast<int>(at / a.stride) : -1;
}

template <class T>
__global__ void Forward(DirectConv c, const T* x, const T* w, const T* bias, T* y,
                        int64_t elements) {
  const int64_t in = InPositions(c), out = OutPositions(c), taps = Taps(c);
  const ConvAxis &d = c.axes[0], &h = c.axes[1], &v = c.axes[2];
  for (int64_t at = FirstElement(); at < elements; at += ElementStep()) {
    const Position o = PositionOf(at % out, h.out, v.out);
    const int64_t channel = at / out % (c.groups * c.out_channels);
    const int64_t image = at / out / (c.groups * c.out_channels);
    const int64_t first =
        image * c.groups * c.in_channels + channel / c.out_channels * c.in_channels;
    Compute<T> sum = bias == nullptr ? Compute<T>(0) : Read(bias[channel]);
    for (int64_t i = 0; i < c.in_channels; ++i) {
      const T* plane = x + (first + i) * in;
      const T* kernel = w + (channel * c.in_channels + i) * taps;
      for (int kd = 0; kd < d.kernel; ++kd) {
        const int id = InputOf(d, o.d, kd);
        for (int kh = 0; id >= 0 && kh < h.kernel; ++kh) {
          const int ih = InputOf(h, o.h, kh);
          for (int kw = 0; ih >= 0 && kw < v.kernel; ++kw) {
            const int iw = InputOf(v, o.w, kw);
            if (iw < 0) continue;
            sum += Read(plane[(static_cast<int64_t>(id) * h.in + ih) * v.in + iw]) *
                   Read(kernel[(static_cast<int64_t>(kd) * h.kernel + kh) * v.kernel + kw]);
          }
        }
      }
    }
    y[at] = Write<T>(sum);
  }
}

template <class T>
__global__ void Data(DirectConv c, const T* dy, const T* w, const T* bias, T* dx,
                     int64_t elements) {
  const int64_t in = InPositions(c), out = OutPositions(c), taps = Taps(c);
  const ConvAxis &d = c.axes[0], &h = c.axes[1], &v = c.axes[2];
  for (int64_t at = FirstElement(); at < elements; at += ElementStep()) {
    const Position i = PositionOf(at % in, h.in, v.in);
    const int64_t channel = at / in % (c.groups * c.in_channels);
    const int64_t image = at / in / (c.groups * c.in_channels);
    const int64_t group = channel / c.in_channels;
    Compute<T> sum = bias == nullptr ? Compute<T>(0) : Read(bias[channel]);
    for (int64_t o = group * c.out_channels; o < (group + 1) * c.out_channels; ++o) {
      const T* plane = dy + (image * c.groups * c.out_channels + o) * out;
      const T* kernel = w + (o * c.in_channels + channel % c.in_channels) * taps;
      for (int kd = 0; kd < d.kernel; ++kd) {
        const int od = OutputOf(d, i.d, kd);
        for (int kh = 0; od >= 0 && kh < h.kernel; ++kh) {
          const int oh = OutputOf(h, i.h, kh);
          for (int kw = 0; oh >= 0 && kw < v.kernel; ++kw) {
            const int ow = OutputOf(v, i.w, kw);
            if (ow < 0) continue;
            sum += Read(plane[(static_cast<int64_t>(od) * h.out + oh) * v.out + ow]) *
                   Read(kernel[(static_cast<int64_t>(kd) * h.kernel + kh) * v.kernel + kw]);
          }
        }
      }
    }
    dx[at] = Write<T>(sum);
  }
}

// A block per weight: the sum over images and output positions.
template <class T>
__global__ void Weights(DirectConv c, const T* dy, const T* x, T* dw, int64_t weights) {
  using C = Compute<T>;
  __shared__ typename BlockFold<C>::Buffers buffers;
  BlockFold<C> fold(buffers);
  const int64_t in = InPositions(c), out = OutPositions(c), taps = Taps(c);
  const ConvAxis &d = c.axes[0], &h = c.axes[1], &v = c.axes[2];
  for (int64_t at = blockIdx.x; at < weights; at += gridDim.x) {
    const Position k = PositionOf(at % taps, h.kernel, v.kernel);
    const int64_t i = at / taps % c.in_channels, o = at / taps / c.in_channels;
    const int64_t source = o / c.out_channels * c.in_channels + i;
    C sum = 0;
    for (int64_t p = threadIdx.x; p < c.batch * out; p += blockDim.x) {
      const int64_t image = p / out;
      const Position q = PositionOf(p % out, h.out, v.out);
      const int id = InputOf(d, q.d, k.d), ih = InputOf(h, q.h, k.h), iw = InputOf(v, q.w, k.w);
      if (id < 0 || ih < 0 || iw < 0) continue;
      const T* plane = x + (image * c.groups * c.in_channels + source) * in;
      sum += Read(dy[(image * c.groups * c.out_channels + o) * out + p % out]) *
             Read(plane[(static_cast<int64_t>(id) * h.in + ih) * v.in + iw]);
    }
    sum = fold.Sum(sum);
    if (threadIdx.x == 0) dw[at] = Write<T>(sum);
  }
}

template <class T>
__global__ void FillPlanes(const T* bias, int64_t channels, int64_t positions, T* y,
                           int64_t elements) {
  for (int64_t at = FirstElement(); at < elements; at += ElementStep()) {
    y[at] = bias[at / positions % channels];
  }
}

template <class T>
__global__ void SumPlanes(const T* y, int64_t batch, int64_t channels, int64_t positions, T* sums) {
  using C = Compute<T>;
  __shared__ typename BlockFold<C>::Buffers buffers;
  BlockFold<C> fold(buffers);
  for (int64_t channel = blockIdx.x; channel < channels; channel += gridDim.x) {
    C sum = 0;
    for (int64_t p = threadIdx.x; p < batch * positions; p += blockDim.x) {
      sum += Read(y[(p / positions * channels + channel) * positions + p % positions]);
    }
    sum = fold.Sum(sum);
    if (threadIdx.x == 0) sums[channel] = Write<T>(sum);
  }
}

}  // namespace

cudaError_t ConvForward(DType dtype, const DirectConv& c, const void* x, const void* w,
                        const void* bias, void* y, cudaStream_t stream) {
  const int64_t elements = c.batch * c.groups * c.out_channels * OutPositions(c);
  if (elements == 0) return cudaSuccess;
  return DispatchReal(dtype, [&]<class T>() {
    return Launch(Forward<T>, LinearGrid(elements), stream, c, static_cast<const T*>(x),
                  static_cast<const T*>(w), static_cast<const T*>(bias), static_cast<T*>(y),
                  elements);
  });
}

cudaError_t ConvData(DType dtype, const DirectConv& c, const void* dy, const void* w,
                     const void* bias, void* dx, cudaStream_t stream) {
  const int64_t elements = c.batch * c.groups * c.in_channels * InPositions(c);
  if (elements == 0) return cudaSuccess;
  return DispatchReal(dtype, [&]<class T>() {
    return Launch(Data<T>, LinearGrid(elements), stream, c, static_cast<const T*>(dy),
                  static_cast<const T*>(w), static_cast<const T*>(bias), static_cast<T*>(dx),
                  elements);
  });
}

cudaError_t ConvWeights(DType dtype, const DirectConv& c, const void* dy, const void* x, void* dw,
                        cudaStream_t stream) {
  const int64_t weights = c.groups * c.out_channels * c.in_channels * Taps(c);
  if (weights == 0) return cudaSuccess;
  return DispatchReal(dtype, [&]<class T>() {
    return Launch(Weights<T>, {GridFor(weights), RowThreads(c.batch * OutPositions(c))}, stream, c,
                  static_cast<const T*>(dy), static_cast<const T*>(x), static_cast<T*>(dw),
                  weights);
  });
}

cudaError_t FillChannels(DType dtype, const void* bias, int64_t batch, int64_t channels,
                         int64_t positions, void* y, cudaStream_t stream) {
  const int64_t elements = batch * channels * positions;
  if (elements == 0) return cudaSuccess;
  return DispatchReal(dtype, [&]<class T>() {
    return Launch(FillPlanes<T>, LinearGrid(elements), stream, static_cast<const T*>(bias),
                  channels, positions, static_cast<T*>(y), elements);
  });
}

cudaError_t SumChannels(DType dtype, const void* y, int64_t batch, int64_t channels,
                        int64_t positions, void* sums, cudaStream_t stream) {
  if (channels == 0) return cudaSuccess;
  return DispatchReal(dtype, [&]<class T>() {
    return Launch(SumPlanes<T>, {GridFor(channels), RowThreads(batch * positions)}, stream,
                  static_cast<const T*>(y), batch, channels, positions, static_cast<T*>(sums));
  });
}

}  // namespace onward::cuda
