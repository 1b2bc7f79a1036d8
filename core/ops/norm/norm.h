// SPDX-License-Identifier: Apache-2.0
// What the files of the norm family share: statistics of a row, and their
// registration, which RegisterNormKernels in norm.cc calls.
#ifndef ONWARD_CORE_OPS_NORM_NORM_H_
#define ONWARD_CORE_OPS_NORM_NORM_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/device/kernel.h"
#include "core/ops/cpu/vec.h"

namespace onward {

// Mean (kept in two parts, so that rows far from zero lose nothing: an element's
// deviation is (x - mean) - rest) and 1 / sqrt(variance + epsilon).
template <typename T>
struct RowMoments {
  T mean, rest, inverse_deviation;
};

template <typename T>
RowMoments<T> MomentsOfRow(const T* x, int64_t n, double epsilon) {
  const double count = static_cast<double>(n);
  const auto [sum] =
      Sums<T, 1>(n, [&](int64_t i, int c, Vec<T>* term) { term[0] = Load(x + i, c); });
  const T mean = static_cast<T>(sum / count);
  const auto [rest, squares] = Sums<T, 2>(n, [&](int64_t i, int c, Vec<T>* term) {
    term[0] = Load(x + i, c) - mean;
    term[1] = term[0] * term[0];
  });
  const double off = rest / count;
  // Rounding may take the variance of a constant row below zero; NaN stays.
  const double variance = squares / count - off * off;
  return {mean, static_cast<T>(off),
          static_cast<T>(1 / std::sqrt((variance < 0 ? 0 : variance) + epsilon))};
}

void RegisterBatchNormKernels(KernelTable& table);      // batch_norm.cc
void RegisterBatchNormGradKernels(KernelTable& table);  // batch_norm_grad.cc
void RegisterLayerNormKernels(KernelTable& table);      // layer_norm.cc
void RegisterLayerNormGradKernels(KernelTable& table);  // layer_norm_grad.cc

}  // namespace onward

#endif  // ONWARD_CORE_OPS_NORM_NORM_H_
