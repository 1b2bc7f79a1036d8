// SPDX-License-Identifier: Apache-2.0
// Matrix products of the recurrent networks: those of one time step, small and
// many, and those over all steps at once. The right matrix is packed beforehand,
// so that a step does nothing but multiply.
#ifndef ONWARD_CORE_OPS_RNN_RNN_GEMM_H_
#define ONWARD_CORE_OPS_RNN_RNN_GEMM_H_

#include <cstdint>

#include "absl/types/span.h"
#include "core/base/cpu_features.h"

namespace onward {

// A row-major matrix, perhaps read transposed, with its row stride.
template <typename T>
struct GemmOperand {
  const T* data;
  int64_t stride;
  bool transposed = false;
};

// A matrix [k, n] in panels of two vectors' (32 bytes) width, each panel row by row, the
// last one filled up with zeros.
template <typename T>
struct PackedMatrix {
  static constexpr int kWidth = 2 * 32 / sizeof(T);
  const T* panels;
  int64_t k, n;
  bool wide = ThisCpu().avx512f;  // multiplied in AVX-512, which gives the same bits

  static int64_t PanelCount(int64_t n) { return (n + kWidth - 1) / kWidth; }
  static int64_t Elements(int64_t k, int64_t n) { return PanelCount(n) * kWidth * k; }
};

// Packs b [k, n] into `to`, which has room for PackedMatrix::Elements(k, n). On
// all threads. What `cpu` has changes the speed of products, not the results.
template <typename T>
PackedMatrix<T> Pack(GemmOperand<T> b, int64_t k, int64_t n, T* to,
                     const CpuFeatures& cpu = ThisCpu());

// c [m, n] += a [m, k] * b + bias (null: none), on the calling thread.
template <typename T>
void AddProduct(const T* a, int64_t a_stride, int64_t m, const PackedMatrix<T>& b, const T* bias,
                T* c, int64_t c_stride);

// A right matrix and where its product goes: c [m, n].
template <typename T>
struct ProductPart {
  PackedMatrix<T> b;
  T* c;
  int64_t c_stride;
};

// c = a [m, k] * b of each part, all of depth k, added to what is there if
// `accumulate`. On all threads.
template <typename T>
void LargeProduct(GemmOperand<T> a, int64_t m, absl::Span<const ProductPart<T>> parts,
                  bool accumulate = false);

// Specialised by hand: instantiations of templates stay inside the kernels (cmake/Kernels.cmake),
// and tests call these.
template <>
PackedMatrix<float> Pack(GemmOperand<float> b, int64_t k, int64_t n, float* to,
                         const CpuFeatures& cpu);
template <>
void LargeProduct(GemmOperand<float> a, int64_t m, absl::Span<const ProductPart<float>> parts,
                  bool accumulate);

}  // namespace onward

#endif  // ONWARD_CORE_OPS_RNN_RNN_GEMM_H_
