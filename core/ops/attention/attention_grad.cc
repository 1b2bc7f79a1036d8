// SPDX-License-Identifier: Apache-2.0
// ScaledDotProductAttentionGrad. P is computed again from Q and K; then, with
// dP = dY V^T and dS = scale * P * (dP - sum over keys of P * dP),
//   dQ = dS K,  dK = dS^T Q,  dV = P^T dY
// and dS / scale is the gradient of the argument of softmax.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/parallel.h"
#include "core/base/status.h"
#include "core/ops/attention/attention.h"
#include "core/ops/cpu/adapt.h"
#include "core/ops/cpu/onednn.h"
#include "core/ops/cpu/vec.h"

namespace onward {
namespace {

constexpr int64_t kRowGrain = 1 << 13;  // scores that are worth a thread

struct AttentionGrad {
  AttentionGrad(AttentionShape s, AttentionStrides dy_in, std::vector<AttentionStrides> out)
      : shape(s), dy(dy_in), dq(out[0]), dk(out[1]), dv(out[2]), work(shape) {
    const int64_t rows = work.block_rows, keys = shape.keys;
    const int64_t widest = std::max(shape.depth, shape.value_depth);
    WorkspacePlan plan;
    scores_at = plan.Add(rows * keys * sizeof(float));
    slopes_at = plan.Add(rows * keys * sizeof(float));
    inverse_at = plan.Add(rows * sizeof(float));
    gemm_at = plan.Add(std::max({Sgemm::WorkspaceBound(rows, keys, widest, work.threads),
                                 Sgemm::WorkspaceBound(rows, widest, keys, work.threads),
                                 Sgemm::WorkspaceBound(keys, widest, rows, work.threads)}));
    part_bytes = plan.bytes();
  }

  AttentionShape shape;
  AttentionStrides dy, dq, dk, dv;
  AttentionWork work;
  size_t scores_at, slopes_at, inverse_at, gemm_at, part_bytes;  // in the workspace of a part

  void Run(const KernelCall& call) const {
    ForAttentionPairs(
        shape, work, call.workspace, part_bytes,
        [&](const AttentionPair& pair, void* workspace) { RunPair(pair, call, workspace); });
  }

  // Inputs dY, Q, K, V, mask; outputs dQ, dK, dV, dS / scale.
  void RunPair(const AttentionPair& p, const KernelCall& call, void* workspace) const {
    const float* slope = call.inputs[0]->data<float>() + dy.At(p.b, p.h);
    const float* q = call.inputs[1]->data<float>() + shape.q.At(p.b, p.h);
    const float* k = call.inputs[2]->data<float>() + shape.k.At(p.b, p.h);
    const float* v = call.inputs[3]->data<float>() + shape.v.At(p.b, p.h);
    const Tensor* mask = shape.mask.present ? call.inputs[4] : nullptr;
    float* scores = At<float>(workspace, scores_at);
    float* slopes = At<float>(workspace, slopes_at);
    float* inverse = At<float>(workspace, inverse_at);
    void* scratch = At<char>(workspace, gemm_at);
    const int64_t keys = shape.keys, depth = shape.depth, value_depth = shape.value_depth;
    const auto target = [&](size_t output, const AttentionStrides& strides) {
      Tensor* out = output < call.outputs.size() ? call.outputs[output] : nullptr;
      return out == nullptr ? nullptr : out->data<float>() + strides.At(p.b, p.h);
    };
    float *to_q = target(0, dq), *to_k = target(1, dk), *to_v = target(2, dv);
    const AttentionStrides by_pair = {shape.heads * shape.queries * keys, shape.queries * keys};
    float* to_scores = target(3, by_pair);
    for (int64_t i = 0; i < shape.queries; i += work.block_rows) {
      const int64_t rows = std::min(work.block_rows, shape.queries - i);
      const StridedMatrix qi = {q + i * shape.q.row, shape.q.row, shape.q.column};
      const StridedMatrix dyi = {slope + i * dy.row, dy.row, dy.column};
      Sgemm(rows, keys, depth, work.threads)
          .Run(qi, {k, shape.k.column, shape.k.row}, scores, {}, scratch);
      SoftmaxOfScores(shape, p, mask, i, rows, keys, scores, keys, inverse);
      Sgemm(rows, keys, value_depth, work.threads)
          .Run(dyi, {v, shape.v.column, shape.v.row}, slopes, {}, scratch);
      SlopesOfScores(rows, inverse, scores, slopes, to_scores);
      if (to_scores != nullptr) to_scores += rows * keys;
      const bool add = i > 0;
      if (to_v != nullptr) {
        Sgemm(keys, value_depth, rows, work.threads)
            .Run({scores, 1, keys}, dyi, to_v, {.row = dv.row, .add = add}, scratch);
      }
      if (to_q != nullptr) {
        Sgemm(rows, depth, keys, work.threads)
            .Run({slopes, keys, 1}, {k, shape.k.row, shape.k.column}, to_q + i * dq.row,
                 {.row = dq.row}, scratch);
      }
      if (to_k != nullptr) {
        Sgemm(keys, depth, rows, work.threads)
            .Run({slopes, 1, keys}, qi, to_k, {.row = dk.row, .add = add}, scratch);
      }
    }
  }

  // From exponentials to P, from dP to dS; `unscaled` gets dS / scale unless null.
  void SlopesOfScores(int64_t rows, const float* inverse, float* scores, float* slopes,
                      float* unscaled) const {
    const int64_t n = shape.keys;
    ParallelFor(rows, kRowGrain / n + 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        float *p = scores + i * n, *ds = slopes + i * n;
        const float r = inverse[i], scale = shape.scale;
        const auto [sum] = Sums<float, 1>(n, [&](int64_t j, int c, Vec<float>* term) {
          term[0] = Load(p + j, c) * Load(ds + j, c);
        });
        const float mean = sum * r;
        ForVecs<float>(n, [&](int64_t j, int c) {
          const Vec<float> probability = Load(p + j, c) * r;
          const Vec<float> slope = probability * (Load(ds + j, c) - mean);
          Store<float>(p + j, probability, c);
          Store<float>(ds + j, slope * scale, c);
          if (unscaled != nullptr) Store<float>(unscaled + i * n + j, slope, c);
        });
      }
    });
  }
};

absl::StatusOr<Kernel> MakeAttentionGrad(const KernelRequest& r) {
  return TryDnnl(r.node, [&]() -> absl::StatusOr<Kernel> {
    std::vector<Layout> layouts;
    ONWARD_ASSIGN_OR_RETURN(const AttentionShape shape, ReadAttention(r, 1, &layouts));
    Shape y = r.in(1);
    y[y.rank() - 1] = shape.value_depth;
    if (r.in(0) != y) return NodeUnimplemented(r.node, "dY has another shape than Y");
    if (r.HasOutput(3)) {
      Shape scores = r.in(1);
      scores[scores.rank() - 1] = shape.keys;
      ONWARD_RETURN_IF_ERROR(CheckOutputShape(r, 3, scores));
    }
    const AttentionStrides dy = StridesOf(r.inputs[0], &layouts[0]);
    std::vector<Layout> results(3);
    std::vector<AttentionStrides> strides(3);
    for (int i = 0; i < 3; ++i) {
      if (r.HasOutput(i)) strides[i] = OutputStrides(r.outputs[i], r.in(i + 1), &results[i]);
    }
    auto state = std::make_shared<const AttentionGrad>(shape, dy, strides);
    Kernel kernel;
    kernel.infallible = true;
    kernel.workspace_bytes = state->work.parts * state->part_bytes;
    kernel.input_layouts = std::move(layouts);
    kernel.output_layouts = std::move(results);
    kernel.run = [state](const KernelCall& call) {
      state->Run(call);
      return absl::OkStatus();
    };
    return kernel;
  });
}

}  // namespace

void RegisterAttentionGradKernels(KernelTable& table) {
  table.Add("ScaledDotProductAttentionGrad", {"reference", 1, MakeAttentionGrad, "float"},
            kOnwardDomain);
}

}  // namespace onward
