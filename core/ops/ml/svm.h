// SPDX-License-Identifier: Apache-2.0
// Support vector machines: kernels between rows and support vectors, and the probabilities of
// classes from the scores of pairs.
#ifndef ONWARD_CORE_OPS_ML_SVM_H_
#define ONWARD_CORE_OPS_ML_SVM_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "core/graph/graph.h"

namespace onward {

struct SvmKernel {
  enum class Kind { kLinear, kPoly, kRbf, kSigmoid };
  Kind kind = Kind::kLinear;
  double gamma = 0, offset = 0, degree = 0;

  // values [rows, n]: the kernel between each row and each of the n vectors.
  template <typename T>
  void Apply(const T* x, int64_t rows, int64_t width, const T* vectors, int64_t n, T* values) const;
};
absl::StatusOr<SvmKernel> SvmKernelOf(const Node& node);

// Platt's probability that the first class of a pair holds.
double PairProbability(double score, double a, double b);
// From the probabilities pairs[i * k + j] of class i among i and j to those of k classes: the
// second method of Wu, Lin and Weng, as LIBSVM has it. `work` has k * k + k numbers.
void CouplePairs(int64_t k, const double* pairs, double* work, double* probabilities);

}  // namespace onward

#endif  // ONWARD_CORE_OPS_ML_SVM_H_
