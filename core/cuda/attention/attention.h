// SPDX-License-Identifier: Apache-2.0
// Launches of scaled dot-product attention, P = softmax(scale * Q K^T + mask), Y = P V for every
// batch and head, and of its gradient. Nothing of the size of P is kept.
#ifndef ONWARD_CORE_CUDA_ATTENTION_ATTENTION_H_
#define ONWARD_CORE_CUDA_ATTENTION_ATTENTION_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "core/base/dtype.h"

namespace onward::cuda {

// Distances between neighbours of a value seen as [batch, head, row, column]; columns are
// neighbours but in masks.
struct HeadStrides {
  int64_t batch = 0, head = 0, row = 0, column = 1;
};

struct AttentionShape {
  int64_t batch = 1, heads = 1;
  int64_t heads_per_key = 1;  // heads of Q that share one head of K and V
  int64_t queries = 0, keys = 0;
  int depth = 0, value_depth = 0;
  HeadStrides q, k, v, y;
  HeadStrides mask;  // 0 where it is broadcast
  bool masked = false;
  bool boolean_mask = false;  // false: this key is not looked at
  float scale = 1;
  bool causal = false;      // query i looks at keys up to i
  bool empty_rows = false;  // a row that looks at nothing is zero, not NaN
  DType dtype = DType::kFloat;
};

// float, float16 and bfloat16, in float; depths as shared memory allows.
bool ServesAttention(const AttentionShape& shape);

struct AttentionInputs {
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  const void* mask = nullptr;
};
cudaError_t Attention(const AttentionShape& shape, const AttentionInputs& inputs, void* y,
                      cudaStream_t stream);

// Gradients by Q, K, V and by the argument of softmax; null: not wanted. They have the strides of
// the inputs, dY that of Y, the last is [batch, heads, queries, keys]. Each head has its own key
// head.
struct AttentionGrads {
  const void* dy = nullptr;
  void* dq = nullptr;
  void* dk = nullptr;
  void* dv = nullptr;
  void* dscores = nullptr;
};
size_t AttentionGradWorkspace(const AttentionShape& shape);
cudaError_t AttentionGrad(const AttentionShape& shape, const AttentionInputs& inputs,
                          const AttentionGrads& grads, void* workspace, cudaStream_t stream);

}  // namespace onward::cuda

#endif  // ONWARD_CORE_CUDA_ATTENTION_ATTENTION_H_
