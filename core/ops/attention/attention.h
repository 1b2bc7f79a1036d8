// SPDX-License-Identifier: Apache-2.0
// Scaled dot-product attention as its kernels see it:
//   P = softmax(scale * Q K^T + mask),  Y = P V
// for every batch and head. Nothing of the size of P is kept: a block of rows of
// Q at a time has its scores in the workspace.
#ifndef ONWARD_CORE_OPS_ATTENTION_ATTENTION_H_
#define ONWARD_CORE_OPS_ATTENTION_ATTENTION_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/parallel.h"
#include "core/device/kernel.h"
#include "core/ops/cpu/adapt.h"
#include "core/ops/cpu/sgemm.h"
#include "core/tensor/tensor.h"

namespace onward {

// Distances between neighbours of a value seen as [batch, head, row, column].
struct AttentionStrides {
  int64_t batch = 0, head = 0, row = 0, column = 0;
  int64_t At(int64_t b, int64_t h) const { return b * batch + h * head; }
};

struct AttentionMask {
  AttentionStrides strides;  // 0 where it is broadcast
  bool present = false;
  bool boolean = false;  // false: this key is not looked at
};

struct AttentionShape {
  int64_t batch = 1, heads = 1;
  int64_t heads_per_key = 1;  // heads of Q that share one head of K and V
  int64_t queries = 0, keys = 0, depth = 0, value_depth = 0;
  AttentionStrides q, k, v;
  AttentionMask mask;
  float scale = 1;
  bool causal = false;      // query i looks at keys up to i
  bool empty_rows = false;  // a row that looks at nothing is zero, not NaN

  int64_t pairs() const { return batch * heads; }
  // Keys that the queries [0, end) look at.
  int64_t KeysBefore(int64_t end) const { return causal && end < keys ? end : keys; }
};

// How the work is dealt out: pairs of batch and head by turns where there are
// enough of them, else all threads on one pair after the other.
struct AttentionWork {
  explicit AttentionWork(const AttentionShape& shape);
  int64_t parts;       // that run side by side
  int threads;         // of each
  int64_t block_rows;  // of Q
};

// Q, K, V and the mask, which are inputs first .. first + 3, by the rules of
// ScaledDotProductAttention. `layouts` gets what to ask for, one per input.
// Unimplemented where the kernels cannot serve.
absl::StatusOr<AttentionShape> ReadAttention(const KernelRequest& r, int first,
                                             std::vector<Layout>* layouts);
// The strides of a value of rank 3 or 4 as it is, or those of its plain form;
// `layout` is what to ask for.
AttentionStrides StridesOf(const ValueSpec& value, Layout* layout);
// The same for an output, whose rows must be contiguous.
AttentionStrides OutputStrides(const ValueSpec& value, const Shape& shape, Layout* layout);
// Fills in how `mask` is read; false if it does not broadcast to the scores.
bool ReadMask(const ValueSpec& mask, AttentionShape* shape);

// One head's matrices.
struct AttentionPair {
  AttentionPair(const AttentionShape& shape, int64_t pair);
  int64_t b, h, key_head;
};

// f(pair, workspace of its part) for every pair; parts run side by side.
template <typename F>
void ForAttentionPairs(const AttentionShape& shape, const AttentionWork& work, void* workspace,
                       size_t part_bytes, const F& f) {
  ParallelFor(work.parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      const int64_t last = shape.pairs() * (part + 1) / work.parts;
      for (int64_t i = shape.pairs() * part / work.parts; i < last; ++i) {
        f(AttentionPair(shape, i), At<char>(workspace, part * part_bytes));
      }
    }
  });
}

// scores [rows, keys], `stride` apart, from products to exp(.. - max of the row);
// `inverse` gets 1 / sum of each. The rows are the queries from `first` on.
void SoftmaxOfScores(const AttentionShape& shape, const AttentionPair& pair, const Tensor* mask,
                     int64_t first, int64_t rows, int64_t keys, float* scores, int64_t stride,
                     float* inverse);

void RegisterAttentionGradKernels(KernelTable& table);  // attention_grad.cc

}  // namespace onward

#endif  // ONWARD_CORE_OPS_ATTENTION_ATTENTION_H_
