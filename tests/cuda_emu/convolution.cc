// SPDX-License-Identifier: Apache-2.0
// Convolution and its gradients.
#include "tests/cuda_emu/convolution.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <type_traits>

#include "tests/cuda_emu/gemm.h"

namespace onward::cuda_emu {
namespace {

template <class C>
std::vector<C> Unfold(const Unfolded& u, const C* image) {
  std::vector<C> columns(u.taps * u.positions);
  const int64_t window = u.taps / u.channels;
  ForEachWindow(u.windows, [&](int64_t output, int64_t tap, int64_t input) {
    for (int64_t c = 0; c < u.channels; ++c) {
      columns[(c * window + tap) * u.positions + output] =
          input < 0 ? C(0) : image[c * u.pixels + input];
    }
  });
  return columns;
}

template <class C>
void FoldInto(const Unfolded& u, const std::vector<C>& columns, C* image) {
  const int64_t window = u.taps / u.channels;
  ForEachWindow(u.windows, [&](int64_t output, int64_t tap, int64_t input) {
    if (input < 0) return;
    for (int64_t c = 0; c < u.channels; ++c) {
      image[c * u.pixels + input] += columns[(c * window + tap) * u.positions + output];
    }
  });
}

template <class C>
constexpr Element kElement = std::is_same_v<C, double> ? Element::kDouble : Element::kFloat;

template <class C>
Matrix MatrixOf(const C* data, int64_t stride, bool transposed) {
  return {const_cast<C*>(data), kElement<C>, stride, transposed};
}

bool Tf32(const Convolution& p) {
  return p.convolution.math == CUDNN_TENSOR_OP_MATH && p.x.type == CUDNN_DATA_FLOAT;
}

}  // namespace

// In columns: y (positions x filters) = columns (positions x taps) * w (taps x filters).
template <class C>
std::vector<C> Forward(const Convolution& p, const std::vector<C>& x, const std::vector<C>& w) {
  const Unfolded u(p);
  std::vector<C> y(u.images * u.groups * u.filters * u.positions);
  for (int64_t i = 0; i < u.images * u.groups; ++i) {
    const std::vector<C> columns = Unfold(u, x.data() + i * u.channels * u.pixels);
    const C* filters = w.data() + i % u.groups * u.filters * u.taps;
    Multiply({u.positions, u.filters, u.taps, 1, 0, MatrixOf(columns.data(), u.positions, false),
              MatrixOf(filters, u.taps, false),
              MatrixOf(y.data() + i * u.filters * u.positions, u.positions, false), Tf32(p)});
  }
  return y;
}

template <class C>
std::vector<C> BackwardData(const Convolution& p, const std::vector<C>& dy,
                            const std::vector<C>& w) {
  const Unfolded u(p);
  std::vector<C> dx(u.images * u.groups * u.channels * u.pixels, C(0));
  std::vector<C> columns(u.positions * u.taps);
  for (int64_t i = 0; i < u.images * u.groups; ++i) {
    const C* filters = w.data() + i % u.groups * u.filters * u.taps;
    Multiply({u.positions, u.taps, u.filters, 1, 0,
              MatrixOf(dy.data() + i * u.filters * u.positions, u.positions, false),
              MatrixOf(filters, u.taps, true), MatrixOf(columns.data(), u.positions, false),
              Tf32(p)});
    FoldInto(u, columns, dx.data() + i * u.channels * u.pixels);
  }
  return dx;
}

template <class C>
std::vector<C> BackwardFilter(const Convolution& p, const std::vector<C>& x,
                              const std::vector<C>& dy, bool fixed_order) {
  const Unfolded u(p);
  std::vector<C> dw(u.groups * u.filters * u.taps, C(0));
  std::vector<int64_t> order(u.images * u.groups);
  std::iota(order.begin(), order.end(), int64_t{0});
  if (!fixed_order && GetState().shuffles()) {
    std::shuffle(order.begin(), order.end(), GetState().random);
  }
  for (const int64_t i : order) {
    const std::vector<C> columns = Unfold(u, x.data() + i * u.channels * u.pixels);
    C* filters = dw.data() + i % u.groups * u.filters * u.taps;
    Multiply({u.taps, u.filters, u.positions, 1, 1, MatrixOf(columns.data(), u.positions, true),
              MatrixOf(dy.data() + i * u.filters * u.positions, u.positions, false),
              MatrixOf(filters, u.taps, false), Tf32(p)});
  }
  return dw;
}

template std::vector<float> Forward(const Convolution&, const std::vector<float>&,
                                    const std::vector<float>&);
template std::vector<float> BackwardData(const Convolution&, const std::vector<float>&,
                                         const std::vector<float>&);
template std::vector<float> BackwardFilter(const Convolution&, const std::vector<float>&,
                                           const std::vector<float>&, bool);
template std::vector<double> Forward(const Convolution&, const std::vector<double>&,
                                     const std::vector<double>&);
template std::vector<double> BackwardData(const Convolution&, const std::vector<double>&,
                                          const std::vector<double>&);
template std::vector<double> BackwardFilter(const Convolution&, const std::vector<double>&,
                                            const std::vector<double>&, bool);

}  // namespace onward::cuda_emu
