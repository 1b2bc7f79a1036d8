// SPDX-License-Identifier: Apache-2.0
// Fourier transforms of any length in O(n log n): Eigen's where the length has small factors
// only, else as a convolution with a chirp (Bluestein), whose length is a power of two.
#ifndef ONWARD_CORE_OPS_SIGNAL_FFT_H_
#define ONWARD_CORE_OPS_SIGNAL_FFT_H_

#include <complex>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/functional/function_ref.h"

namespace onward {

inline constexpr int64_t kLongestTransform = int64_t{1} << 25;

// y_k = sum of x_j * exp(-2 pi i jk / n), or with a plus sign backward; nothing is divided by n.
// For one thread at a time, and never in place.
template <typename T>
class Fft {
 public:
  using Complex = std::complex<T>;

  explicit Fft(int64_t n);  // 1 to kLongestTransform
  ~Fft();

  void Forward(const Complex* x, Complex* y);
  void Backward(const Complex* x, Complex* y);
  // The n / 2 + 1 first y of a real x, and the real y of a spectrum of which these are given.
  void ForwardReal(const T* x, Complex* y);
  void BackwardReal(const Complex* x, T* y);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// What one thread works with.
template <typename T>
struct FftLine {
  explicit FftLine(int64_t n) : fft(n), real(n), x(n), y(n) {}
  Fft<T> fft;
  std::vector<T> real;
  std::vector<std::complex<T>> x, y;
};

// Transforms of one length for as many threads as run at once; they are kept.
template <typename T>
class FftLines {
 public:
  explicit FftLines(int64_t n) : n_(n) {}
  // Calls body(line, work) for each line in [0, lines).
  void Run(int64_t lines, absl::FunctionRef<void(int64_t line, FftLine<T>& work)> body);

 private:
  const int64_t n_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<FftLine<T>>> idle_;
};

}  // namespace onward

#endif  // ONWARD_CORE_OPS_SIGNAL_FFT_H_
