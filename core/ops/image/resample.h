// SPDX-License-Identifier: Apache-2.0
// Applies the sparse matrices of resized axes to a tensor, one axis after the other. Every
// output is gathered by itself, so results do not depend on how the work is dealt out.
#ifndef ONWARD_CORE_OPS_IMAGE_RESAMPLE_H_
#define ONWARD_CORE_OPS_IMAGE_RESAMPLE_H_

#include <cstdint>
#include <vector>

#include "core/ops/image/resize.h"

namespace onward {

// A matrix with weights in the type of the arithmetic.
template <typename A>
struct AxisTaps {
  int64_t in = 1, out = 1;
  std::vector<int64_t> starts;  // of each output's taps in `index` and `weight`
  std::vector<int32_t> index;
  std::vector<A> weight;
  int64_t span = 1;  // inputs from the first to the last of an output, at most
  // The same with `even` taps for every output, as [tap][output]; 0: the numbers differ
  // too much. An output with fewer has some of its taps in halves, which is exact.
  int64_t even = 0;
  std::vector<int32_t> even_index;
  std::vector<A> even_weight;

  explicit AxisTaps(const AxisMap& map);
  // The outputs of one line of inputs.
  void Apply(const A* x, A* y) const;
  // Output o of lines: y[i] = sum of weight * row(index)[i].
  template <typename Row>
  void Combine(int64_t o, const Row& row, int64_t n, A* y) const;
};

// A is float or double.
template <typename A>
class Resampler {
 public:
  // The matrices lead from `in` to `out`.
  Resampler(const Shape& in, const Shape& out, const std::vector<AxisMap>& maps,
            bool rounds = false);
  // T is any number; integers are cut off, or rounded where asked, and clamped.
  template <typename T>
  void Run(const T* x, T* y) const;

 private:
  // Axis by axis, through whole tensors: [outer, n, inner] becomes [outer, m, inner].
  struct Pass {
    AxisTaps<A> taps;
    int64_t outer, inner;
  };
  void RunPass(const Pass& pass, const A* x, A* y) const;
  template <typename T>
  void RunLines(const T* x, T* y) const;
  template <typename T>
  void RunPlanes(const T* x, T* y) const;

  int64_t in_elements_, out_elements_;
  bool rounds_;
  bool planes_ = false, lines_ = false;  // only the last two axes, or the last one
  int64_t outer_ = 1;                    // planes or lines
  std::vector<Pass> passes_;             // of planes: down, across
};

}  // namespace onward

#endif  // ONWARD_CORE_OPS_IMAGE_RESAMPLE_H_
