// SPDX-License-Identifier: Apache-2.0
#include "core/cuda/rnn/activation.cuh"
#include "core/cuda/rnn/cells.h"

namespace onward::cuda {
namespace {

// What belongs to unit u of sequence b.
template <class T>
struct Unit {
  int64_t b, u, n;  // n: units
  T* gates;         // of the sequence
  T* state;

  __device__ Unit(const ForwardCell& c, int64_t at)
      : b(at / c.hidden),
        u(at % c.hidden),
        n(c.hidden),
        gates(RowOf<T>(c.gates, b)),
        state(RowOf<T>(c.state, b)) {}
  __device__ T& gate(int i) const { return gates[i * n + u]; }
};

// Biases of gate i, of W and of R, of `gates` gates.
template <class T>
__device__ T InputBias(const ForwardCell& c, int i, int64_t u) {
  return c.bias == nullptr ? T(0) : static_cast<const T*>(c.bias)[i * c.hidden + u];
}
template <class T>
__device__ T StateBias(const ForwardCell& c, int gates, int i, int64_t u) {
  return c.bias == nullptr ? T(0) : static_cast<const T*>(c.bias)[(gates + i) * c.hidden + u];
}
template <class T>
__device__ T BothBiases(const ForwardCell& c, int gates, int i, int64_t u) {
  return InputBias<T>(c, i, u) + StateBias<T>(c, gates, i, u);
}

template <class T>
__device__ void PutY(const ForwardCell& c, const Unit<T>& at, T value) {
  if (T* y = RowOf<T>(c.y, at.b)) y[at.u] = value;
}

// What an ended sequence leaves.
template <class T>
__device__ void PutNothing(const ForwardCell& c, const Unit<T>& at, int width) {
  PutY(c, at, T(0));
  if (T* cells = RowOf<T>(c.cells, at.b)) cells[at.u] = T(0);
  for (int i = 0; c.keeps != 0 && i < width; ++i) at.gate(i) = T(0);
}

// h = F(a)
template <class T>
__global__ void Rnn(ForwardCell c) {
  for (int64_t i = FirstElement(); i < c.batch * c.hidden; i += ElementStep()) {
    const Unit<T> at(c, i);
    if (!Active(c, at.b)) {
      PutNothing(c, at, 1);
      continue;
    }
    const T argument = at.gate(0) + BothBiases<T>(c, 1, 0, at.u);
    at.gate(0) = argument;
    const T h = Activate(c.f, ClipOf<T>(c), argument);
    at.state[at.u] = h;
    PutY(c, at, h);
  }
}

// i, o, f = F(gates), g = G(gate of c);  C = f*C + i*g;  h = o * H(C).
// Peepholes add Pi*C and Pf*C before, Po*C after the new C.
template <class T>
__global__ void Lstm(ForwardCell c) {
  const T clip = ClipOf<T>(c);
  const T* p = static_cast<const T*>(c.peepholes);
  for (int64_t i = FirstElement(); i < c.batch * c.hidden; i += ElementStep()) {
    const Unit<T> at(c, i);
    if (!Active(c, at.b)) {
      PutNothing(c, at, 4);
      continue;
    }
    const int64_t u = at.u;
    T& cell = RowOf<T>(c.cell, at.b)[u];
    T a[4];
    for (int k = 0; k < 4; ++k) a[k] = at.gate(k) + BothBiases<T>(c, 4, k, u);
    if (p != nullptr) {
      a[0] += p[u] * cell;
      a[2] += p[2 * at.n + u] * cell;
    }
    const T in = Activate(c.f, clip, a[0]);
    const T forget = c.input_forget != 0 ? T(1) - in : Activate(c.f, clip, a[2]);
    const T candidate = Activate(c.g, clip, a[3]);
    cell = forget * cell + in * candidate;
    if (p != nullptr) a[1] += p[at.n + u] * cell;
    const T h = Activate(c.f, clip, a[1]) * Activate(c.h, Infinity<T>(), cell);
    for (int k = 0; c.keeps != 0 && k < 4; ++k) at.gate(k) = a[k];
    if (T* cells = RowOf<T>(c.cells, at.b)) cells[u] = cell;
    at.state[u] = h;
    PutY(c, at, h);
  }
}

// z, r = F(gates), then the argument of the candidate but for (r*h) R^T; with linear_before_reset
// all of it, r * (h R^T + Rb).
template <class T>
__global__ void Gates(ForwardCell c) {
  for (int64_t i = FirstElement(); i < c.batch * c.hidden; i += ElementStep()) {
    const Unit<T> at(c, i);
    const int64_t u = at.u;
    at.gate(0) += BothBiases<T>(c, 3, 0, u);
    at.gate(1) += BothBiases<T>(c, 3, 1, u);
    const T r = Activate(c.f, ClipOf<T>(c), at.gate(1));
    if (c.linear_before_reset != 0) {
      at.gate(3) += StateBias<T>(c, 3, 2, u);
      at.gate(2) += InputBias<T>(c, 2, u) + r * at.gate(3);
    } else {
      at.gate(2) += BothBiases<T>(c, 3, 2, u);
      RowOf<T>(c.reset, at.b)[u] = r * at.state[u];
    }
  }
}

// h = (1 - z) * G(candidate) + z * h
template <class T>
__global__ void Gru(ForwardCell c) {
  const T clip = ClipOf<T>(c);
  for (int64_t i = FirstElement(); i < c.batch * c.hidden; i += ElementStep()) {
    const Unit<T> at(c, i);
    if (!Active(c, at.b)) {
      PutNothing(c, at, c.linear_before_reset != 0 ? 4 : 3);
      continue;
    }
    const T z = Activate(c.f, clip, at.gate(0)), candidate = Activate(c.g, clip, at.gate(2));
    const T h = (T(1) - z) * candidate + z * at.state[at.u];
    at.state[at.u] = h;
    PutY(c, at, h);
  }
}

using Kernels = CellKernels<ForwardCell>;

}  // namespace

cudaError_t RnnCell(DType dtype, const ForwardCell& cell, cudaStream_t stream) {
  return LaunchCell(dtype, cell, Kernels{Rnn<float>, Rnn<double>}, stream);
}
cudaError_t LstmCell(DType dtype, const ForwardCell& cell, cudaStream_t stream) {
  return LaunchCell(dtype, cell, Kernels{Lstm<float>, Lstm<double>}, stream);
}
cudaError_t GruGates(DType dtype, const ForwardCell& cell, cudaStream_t stream) {
  return LaunchCell(dtype, cell, Kernels{Gates<float>, Gates<double>}, stream);
}
cudaError_t GruCell(DType dtype, const ForwardCell& cell, cudaStream_t stream) {
  return LaunchCell(dtype, cell, Kernels{Gru<float>, Gru<double>}, stream);
}

}  // namespace onward::cuda
