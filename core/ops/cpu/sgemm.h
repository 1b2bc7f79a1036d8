// SPDX-License-Identifier: Apache-2.0
// Products of float matrices with any strides. oneDNN's kernels halve their
// speed where the left matrix is stored transposed, as in every gradient by a
// weight; here both operands are packed first, which makes all orders alike.
#ifndef ONWARD_CORE_OPS_CPU_SGEMM_H_
#define ONWARD_CORE_OPS_CPU_SGEMM_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/cpu_features.h"

namespace onward {

struct StridedMatrix {
  const float* data;
  int64_t row, column;  // distances between neighbours
};

// What happens to c before it is stored: bias per column, then an addend stored
// like c, then bounds. Null pointers: nothing.
struct SgemmEpilogue {
  const float* bias = nullptr;
  const float* residual = nullptr;
  bool bounded = false;
  float low = 0, high = 0;
  int64_t row = 0;   // distance between rows of c; 0: n
  bool add = false;  // the product to what c holds
};

// c [m, n] = a [m, k] * b [k, n], each row of c contiguous. The split over threads
// is decided once, so results repeat.
class Sgemm {
 public:
  // On at most so many threads; 0: all. What `cpu` has changes the speed, not the results.
  Sgemm(int64_t m, int64_t n, int64_t k, int threads = 0, const CpuFeatures& cpu = ThisCpu());
  // Whether one thread computes all of it.
  static bool IsSmall(int64_t m, int64_t n, int64_t k);
  size_t workspace_bytes() const { return threads() * part_bytes(); }
  // Enough for every product of at most these sizes.
  static size_t WorkspaceBound(int64_t m, int64_t n, int64_t k, int threads);
  void Run(StridedMatrix a, StridedMatrix b, float* c, const SgemmEpilogue& epilogue,
           void* workspace) const;

  // b packed once, where it does not change, and the product with it.
  std::vector<float> Pack(StridedMatrix b) const;
  void RunPacked(StridedMatrix a, const std::vector<float>& b, float* c,
                 const SgemmEpilogue& epilogue, void* workspace) const;

 private:
  struct Operands;
  struct Part;
  int64_t threads() const { return row_parts_ * column_parts_; }
  size_t part_bytes() const;
  void RunParts(const Operands& operands) const;
  void RunPart(const Part& part, const Operands& operands, void* workspace) const;

  int64_t m_, n_, k_;
  int64_t depth_;                             // of the pieces of a sum
  bool wide_;                                 // in AVX-512 where columns suffice
  int64_t block_rows_;                        // of results held in registers: as even as m allows
  int64_t row_parts_ = 1, column_parts_ = 1;  // one for each thread
};

}  // namespace onward

#endif  // ONWARD_CORE_OPS_CPU_SGEMM_H_
