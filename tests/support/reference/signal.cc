// SPDX-License-Identifier: Apache-2.0
// Transforms as sums over all elements.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "tests/support/reference/evaluate.h"

namespace onward::reference {
namespace {

struct Complex {
  Number real = 0, imaginary = 0;
};

Number Angle(int64_t j, int64_t k, int64_t n) {
  return 2 * std::numbers::pi_v<Number> * static_cast<Number>(j * k % n) / static_cast<Number>(n);
}

// sum of x_j * exp(sign * 2 pi i jk / n)
Complex Sum(const std::vector<Complex>& x, int64_t k, int64_t n, int sign) {
  Complex sum;
  for (int64_t j = 0; j < static_cast<int64_t>(x.size()); ++j) {
    const Number c = std::cos(Angle(j, k, n)), s = sign * std::sin(Angle(j, k, n));
    sum.real += x[j].real * c - x[j].imaginary * s;
    sum.imaginary += x[j].real * s + x[j].imaginary * c;
  }
  return sum;
}

Number Part(const Complex& c, int64_t part) { return part == 0 ? c.real : c.imaginary; }

// The whole spectrum that the first half of one stands for.
std::vector<Complex> Mirrored(std::vector<Complex> half, int64_t n) {
  half.resize(n / 2 + 1);
  std::vector<Complex> whole(n);
  for (int64_t k = 0; k < n; ++k) {
    const bool second = k > n / 2;
    const Complex& c = half[second ? n - k : k];
    const bool own_mirror = k == 0 || 2 * k == n;
    whole[k] = {c.real, own_mirror ? 0 : second ? -c.imaginary : c.imaginary};
  }
  return whole;
}

Arrays Dft(const Call& c) {
  const Array& x = c.in[0];
  const int axis = Axis(c.Has(2) ? c.in[2].Ints()[0] : -2, x.rank());
  const bool inverse = c.node.Int("inverse", 0) != 0, onesided = c.node.Int("onesided", 0) != 0;
  const int last = x.rank() - 1;
  const int64_t length = x.shape[axis];
  int64_t n = inverse && onesided ? 2 * (length - 1) : length;
  if (c.Has(1)) n = c.in[1].Ints()[0];
  Shape shape;
  for (int i = 0; i < last; ++i) {
    shape.push_back(i == axis ? (onesided && !inverse ? n / 2 + 1 : n) : x.shape[i]);
  }
  shape.push_back(inverse && onesided ? 1 : 2);
  return {Make(x.dtype, shape, [&](const Index& at) {
    std::vector<Complex> line;
    for (int64_t j = 0; j < std::min(length, n); ++j) {
      const Index from = With(With(at, axis, j), last, 0);
      line.push_back({x[from], x.shape[last] == 2 ? x[With(from, last, 1)] : 0});
    }
    if (inverse && onesided) line = Mirrored(std::move(line), n);
    const Number value = Part(Sum(line, at[axis], n, inverse ? 1 : -1), at[last]);
    return inverse ? value / static_cast<Number>(n) : value;
  })};
}

Arrays Stft(const Call& c) {
  const Array& signal = c.in[0];
  const int64_t step = c.in[1].Ints()[0], parts = signal.shape[2];
  int64_t n = c.Has(2) ? c.in[2].shape[0] : signal.shape[1];
  if (c.Has(3)) n = c.in[3].Ints()[0];
  const int64_t frames = (signal.shape[1] - n) / step + 1;
  const int64_t bins = c.node.Int("onesided", 1) != 0 ? n / 2 + 1 : n;
  return {Make(signal.dtype, {signal.shape[0], frames, bins, 2}, [&](const Index& at) {
    std::vector<Complex> frame;
    for (int64_t j = 0; j < n; ++j) {
      const Number weight = c.Has(2) ? c.in[2].values[j] : 1;
      const int64_t from = at[1] * step + j;
      frame.push_back(
          {weight * signal[{at[0], from, 0}], parts == 2 ? weight * signal[{at[0], from, 1}] : 0});
    }
    return Part(Sum(frame, at[2], n, -1), at[3]);
  })};
}

Arrays MelWeightMatrix(const Call& c) {
  const int64_t bands = c.in[0].Ints()[0], n = c.in[1].Ints()[0], rate = c.in[2].Ints()[0];
  const auto mel = [](Number hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const Number low = mel(c.in[3].values[0]), high = mel(c.in[4].values[0]);
  const auto corner = [&](int64_t b) {
    const Number at = low + static_cast<Number>(b) * (high - low) / static_cast<Number>(bands + 2);
    const Number hertz = 700 * (std::pow(Number(10), at / 2595) - 1);
    return std::floor(static_cast<Number>(n + 1) * hertz / static_cast<Number>(rate));
  };
  const DType dtype = static_cast<DType>(c.node.Int("output_datatype", 1));
  return {Make(dtype, {n / 2 + 1, bands}, [&](const Index& at) -> Number {
    const Number left = corner(at[1]), top = corner(at[1] + 1), right = corner(at[1] + 2);
    const Number bin = static_cast<Number>(at[0]);
    if (bin == top) return 1;
    if (bin > left && bin < top) return (bin - left) / (top - left);
    return bin > top && bin < right ? (right - bin) / (right - top) : 0;
  })};
}

}  // namespace

const Table& SignalTable() {
  static const auto* const table =
      new Table{{"DFT", Dft}, {"STFT", Stft}, {"MelWeightMatrix", MelWeightMatrix}};
  return *table;
}

}  // namespace onward::reference
