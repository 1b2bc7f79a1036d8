// SPDX-License-Identifier: Apache-2.0
#include "core/cuda/rnn/activation.cuh"
#include "core/cuda/rnn/cells.h"

namespace onward::cuda {
namespace {

// What belongs to unit u of sequence b.
template <class T>
struct Unit {
  int64_t b, u, n;  // n: units
  const T* gates;
  T *dgates, *dstate;

  __device__ Unit(const BackwardCell& c, int64_t at)
      : b(at / c.hidden),
        u(at % c.hidden),
        n(c.hidden),
        gates(RowOf<T>(c.gates, b)),
        dgates(RowOf<T>(c.dgates, b)),
        dstate(RowOf<T>(c.dstate, b) + u) {}
  __device__ T gate(int i) const { return gates[i * n + u]; }
  __device__ T& dgate(int i) const { return dgates[i * n + u]; }
};

// The step before exists and the sequence has it.
__device__ bool HasLast(const BackwardCell& c, int64_t b, const CellRows& last, int64_t before) {
  return last.data != nullptr && (c.lengths == nullptr || before < c.lengths[b]);
}

template <class T>
__device__ T LastOf(const BackwardCell& c, const Unit<T>& at, const CellRows& last,
                    const CellRows& first) {
  if (HasLast(c, at.b, last, c.before)) return RowOf<T>(last, at.b)[at.u];
  return first.data == nullptr ? T(0) : RowOf<T>(first, at.b)[at.u];
}

// An ended sequence gives nothing and passes on what it got. Otherwise dy is added to dh.
template <class T>
__device__ bool Begin(const BackwardCell& c, const Unit<T>& at, int width) {
  if (Active(c, at.b)) {
    if (const T* dy = RowOf<T>(c.dy, at.b)) *at.dstate += dy[at.u];
    return true;
  }
  for (int i = 0; i < width; ++i) at.dgate(i) = T(0);
  if (T* reset = RowOf<T>(c.reset, at.b)) reset[at.u] = T(0);
  return false;
}

// h = F(a);  da = dh * F'(a)
template <class T>
__global__ void RnnGrad(BackwardCell c) {
  for (int64_t i = FirstElement(); i < c.batch * c.hidden; i += ElementStep()) {
    const Unit<T> at(c, i);
    if (!Begin(c, at, 1)) continue;
    at.dgate(0) =
        ActivateGrad(c.f, ClipOf<T>(c), at.gate(0), RowOf<T>(c.y, at.b)[at.u], *at.dstate);
    *at.dstate = T(0);
  }
}

// C = f*Cp + i*g, h = o * H(C);  with dC summed over both its uses
//   do = dh*H(C), dC += dh*o*H'(C), di = dC*g, df = dC*Cp, dg = dC*i, dCp = dC*f.
// Peepholes: the arguments hold Pi*Cp, Pf*Cp and Po*C. input_forget: f = 1 - i.
template <class T>
__global__ void LstmGrad(BackwardCell c) {
  const T clip = ClipOf<T>(c), unlimited = Infinity<T>();
  const T* p = static_cast<const T*>(c.peepholes);
  for (int64_t k = FirstElement(); k < c.batch * c.hidden; k += ElementStep()) {
    const Unit<T> at(c, k);
    if (!Begin(c, at, 4)) continue;
    const T cell = RowOf<T>(c.cells, at.b)[at.u];
    const T last = LastOf(c, at, c.last_cells, c.first_cell);
    const T i = Activate(c.f, clip, at.gate(0)), o = Activate(c.f, clip, at.gate(1));
    const T f = c.input_forget != 0 ? T(1) - i : Activate(c.f, clip, at.gate(2));
    const T g = Activate(c.g, clip, at.gate(3)), out = Activate(c.h, unlimited, cell);
    const T dh = *at.dstate;
    const T d_o = ActivateGrad(c.f, clip, at.gate(1), o, dh * out);
    T dout = ActivateGrad(c.h, unlimited, cell, out, dh * o);
    if (p != nullptr) dout += p[at.n + at.u] * d_o;
    T& dcell = RowOf<T>(c.dcell, at.b)[at.u];
    const T total = dcell + dout;
    T di = total * g, df = total * last;
    if (c.input_forget != 0) {
      di -= df;
      df = T(0);
    }
    di = ActivateGrad(c.f, clip, at.gate(0), i, di);
    if (c.input_forget == 0) df = ActivateGrad(c.f, clip, at.gate(2), f, df);
    dcell = total * f;
    if (p != nullptr) dcell += p[at.u] * di + p[2 * at.n + at.u] * df;
    at.dgate(0) = di;
    at.dgate(1) = d_o;
    at.dgate(2) = df;
    at.dgate(3) = ActivateGrad(c.g, clip, at.gate(3), g, total * i);
    *at.dstate = T(0);
  }
}

// h = (1-z)*g + z*hp;  dz = dh*(hp - g), dg = dh*(1-z), dhp = dh*z + what comes through the gates.
// With linear_before_reset the argument of g holds r*q, q = hp*R + Rb:  dr = da*q, dq = da*r.
// Otherwise it holds (r*hp)*R, and ResetGrad does the rest.
template <class T>
__global__ void GruGrad(BackwardCell c) {
  const T clip = ClipOf<T>(c);
  for (int64_t k = FirstElement(); k < c.batch * c.hidden; k += ElementStep()) {
    const Unit<T> at(c, k);
    if (!Begin(c, at, c.linear_before_reset != 0 ? 4 : 3)) continue;
    const T last = LastOf(c, at, c.last_y, c.first_state);
    const T z = Activate(c.f, clip, at.gate(0)), r = Activate(c.f, clip, at.gate(1));
    const T g = Activate(c.g, clip, at.gate(2)), dh = *at.dstate;
    const T dg = ActivateGrad(c.g, clip, at.gate(2), g, dh * (T(1) - z));
    at.dgate(0) = ActivateGrad(c.f, clip, at.gate(0), z, dh * (last - g));
    at.dgate(2) = dg;
    *at.dstate = dh * z;
    if (c.linear_before_reset != 0) {
      at.dgate(1) = ActivateGrad(c.f, clip, at.gate(1), r, dg * at.gate(3));
      at.dgate(3) = dg * r;
    } else {
      at.dgate(1) = T(0);
      RowOf<T>(c.reset, at.b)[at.u] = r * last;
    }
  }
}

// With e = dg*R:  dr = e*hp, dhp += e*r
template <class T>
__global__ void ResetGrad(BackwardCell c) {
  const T clip = ClipOf<T>(c);
  for (int64_t k = FirstElement(); k < c.batch * c.hidden; k += ElementStep()) {
    const Unit<T> at(c, k);
    if (!Active(c, at.b)) continue;
    const T e = RowOf<T>(c.dreset, at.b)[at.u], r = Activate(c.f, clip, at.gate(1));
    const T last = LastOf(c, at, c.last_y, c.first_state);
    at.dgate(1) = ActivateGrad(c.f, clip, at.gate(1), r, e * last);
    *at.dstate += e * r;
  }
}

using Kernels = CellKernels<BackwardCell>;

}  // namespace

cudaError_t RnnCellGrad(DType dtype, const BackwardCell& cell, cudaStream_t stream) {
  return LaunchCell(dtype, cell, Kernels{RnnGrad<float>, RnnGrad<double>}, stream);
}
cudaError_t LstmCellGrad(DType dtype, const BackwardCell& cell, cudaStream_t stream) {
  return LaunchCell(dtype, cell, Kernels{LstmGrad<float>, LstmGrad<double>}, stream);
}
cudaError_t GruCellGrad(DType dtype, const BackwardCell& cell, cudaStream_t stream) {
  return LaunchCell(dtype, cell, Kernels{GruGrad<float>, GruGrad<double>}, stream);
}
cudaError_t GruResetGrad(DType dtype, const BackwardCell& cell, cudaStream_t stream) {
  return LaunchCell(dtype, cell, Kernels{ResetGrad<float>, ResetGrad<double>}, stream);
}

}  // namespace onward::cuda
