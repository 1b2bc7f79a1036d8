// SPDX-License-Identifier: Apache-2.0
#include "core/ops/signal/fft.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <unsupported/Eigen/FFT>
#include <utility>

#include "core/base/parallel.h"

namespace onward {
namespace {

// Eigen's time grows with the largest factor; from here on the chirp is faster.
constexpr int64_t kLargestFactor = 61;
// Complex elements that are worth a thread.
constexpr int64_t kGrain = 4096;

int64_t LargestFactor(int64_t n) {
  int64_t largest = 1;
  for (int64_t p = 2; p * p <= n; ++p) {
    for (; n % p == 0; n /= p) largest = std::max(largest, p);
  }
  return std::max(largest, n);
}

}  // namespace

template <typename T>
struct Fft<T>::State {
  // Eigen has no transform of one element.
  bool trivial() const { return n == 1; }

  int n = 1;
  Eigen::internal::kissfft_impl<T> eigen;
  // Of the chirp: w_k = exp(-pi i k^2 / n), the transform of its conjugate, and buffers.
  int m = 0;  // 0: none is needed
  std::vector<Complex> w, kernel, a, b, whole, result;

  void PrepareChirp() {
    m = 1;
    while (m < 2 * n - 1) m *= 2;
    w.resize(n);
    for (int64_t k = 0; k < n; ++k) {
      // The angle repeats with k^2 modulo 2n, which keeps it exact.
      const double angle = std::numbers::pi * static_cast<double>(k * k % (2 * n)) / n;
      w[k] = Complex(static_cast<T>(std::cos(angle)), static_cast<T>(-std::sin(angle)));
    }
    a.assign(m, Complex());
    b.resize(m);
    whole.resize(n);
    result.resize(n);
    kernel.resize(m);
    for (int k = 0; k < n; ++k) {
      a[k] = std::conj(w[k]);
      if (k > 0) a[m - k] = a[k];
    }
    eigen.fwd(kernel.data(), a.data(), m);
    for (Complex& c : kernel) c /= static_cast<T>(m);
  }

  // jk = (j^2 + k^2 - (k - j)^2) / 2, so that y_k = w_k * sum of (x_j w_j) conj(w_(k-j)).
  template <bool kBackward>
  void Chirp(const Complex* x, Complex* y) {
    const auto turned = [](Complex c) { return kBackward ? std::conj(c) : c; };
    for (int j = 0; j < n; ++j) a[j] = turned(x[j]) * w[j];
    std::fill(a.begin() + n, a.end(), Complex());
    eigen.fwd(b.data(), a.data(), m);
    for (int k = 0; k < m; ++k) b[k] *= kernel[k];
    eigen.inv(a.data(), b.data(), m);
    for (int k = 0; k < n; ++k) y[k] = turned(a[k] * w[k]);
  }
};

template <typename T>
Fft<T>::Fft(int64_t n) : state_(std::make_unique<State>()) {
  state_->n = static_cast<int>(n);
  if (LargestFactor(n) > kLargestFactor) state_->PrepareChirp();
}

template <typename T>
Fft<T>::~Fft() = default;

template <typename T>
void Fft<T>::Forward(const Complex* x, Complex* y) {
  if (state_->trivial()) return void(*y = *x);
  if (state_->m != 0) return state_->template Chirp<false>(x, y);
  state_->eigen.fwd(y, x, state_->n);
}

template <typename T>
void Fft<T>::Backward(const Complex* x, Complex* y) {
  if (state_->trivial()) return void(*y = *x);
  if (state_->m != 0) return state_->template Chirp<true>(x, y);
  state_->eigen.inv(y, x, state_->n);
}

template <typename T>
void Fft<T>::ForwardReal(const T* x, Complex* y) {
  if (state_->trivial()) return void(*y = *x);
  if (state_->m == 0) return state_->eigen.fwd(y, x, state_->n);
  std::copy_n(x, state_->n, state_->whole.begin());
  Forward(state_->whole.data(), state_->result.data());
  std::copy_n(state_->result.begin(), state_->n / 2 + 1, y);
}

template <typename T>
void Fft<T>::BackwardReal(const Complex* x, T* y) {
  if (state_->trivial()) return void(*y = x->real());
  if (state_->m == 0) return state_->eigen.inv(y, x, state_->n);
  const int n = state_->n;
  std::vector<Complex>& whole = state_->whole;
  std::copy_n(x, n / 2 + 1, whole.begin());
  for (int k = 1; k <= n / 2; ++k) whole[n - k] = std::conj(x[k]);
  Backward(whole.data(), state_->result.data());
  for (int k = 0; k < n; ++k) y[k] = state_->result[k].real();
}

template <typename T>
void FftLines<T>::Run(int64_t lines, absl::FunctionRef<void(int64_t line, FftLine<T>& work)> body) {
  const int64_t together = std::max<int64_t>(1, kGrain / n_);
  const int64_t items = (lines + together - 1) / together;
  const int64_t slots = std::min<int64_t>(items, Threads());
  // Made here: what fails to be allocated on another thread could not be reported.
  std::vector<std::unique_ptr<FftLine<T>>> work(slots);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto& line : work) {
      if (idle_.empty()) break;
      line = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  for (auto& line : work) {
    if (line == nullptr) line = std::make_unique<FftLine<T>>(n_);
  }
  ParallelItems(items, slots, [&](int64_t item, int64_t slot) {
    const int64_t end = std::min(lines, (item + 1) * together);
    for (int64_t line = item * together; line < end; ++line) body(line, *work[slot]);
  });
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto& line : work) idle_.push_back(std::move(line));
}

template class Fft<float>;
template class Fft<double>;
template class FftLines<float>;
template class FftLines<double>;

}  // namespace onward
