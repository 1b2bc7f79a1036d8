// SPDX-License-Identifier: Apache-2.0
// LayerNormalizationGrad. Per row of n elements, with xh the normalised row,
// s = 1 / sqrt(variance + epsilon) and g = dy * scale:
//   dx = s * (g - mean(g) - xh * mean(g * xh))
// and over all rows dscale = sum(dy * xh), dB = sum(dy).
#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/parallel.h"
#include "core/base/status.h"
#include "core/ops/cpu/adapt.h"
#include "core/ops/norm/norm.h"
#include "core/tensor/dispatch.h"

namespace onward {
namespace {

constexpr int64_t kGrain = 8192;  // elements
// Rows whose sums are kept in T before they go to double.
constexpr int64_t kRowBlock = 32;

// Sums over rows, in the workspace of one part.
template <typename T>
struct RowSums {
  T *dscale, *dbias;
  double *dscale_total, *dbias_total;

  void Flush(int64_t n) const {
    for (int64_t i = 0; i < n; ++i) {
      dscale_total[i] += dscale[i];
      dbias_total[i] += dbias[i];
    }
    std::fill_n(dscale, n, T(0));
    std::fill_n(dbias, n, T(0));
  }
};

template <typename T>
void GradRow(const T* dy, const T* x, const T* w, int64_t n, double epsilon, T* dx,
             const RowSums<T>& sums) {
  const RowMoments<T> m = MomentsOfRow(x, n, epsilon);
  auto normal = [&](int64_t i, int c) -> Vec<T> {
    return ((Load(x + i, c) - m.mean) - m.rest) * m.inverse_deviation;
  };
  const auto [sum, product] = Sums<T, 2>(n, [&](int64_t i, int c, Vec<T>* term) {
    term[0] = Load(dy + i, c) * Load(w + i, c);
    term[1] = term[0] * normal(i, c);
  });
  const T mean_g = sum / static_cast<T>(n), mean_gx = product / static_cast<T>(n);
  ForVecs<T>(n, [&](int64_t i, int c) {
    const Vec<T> xh = normal(i, c), d = Load(dy + i, c);
    Store<T>(sums.dscale + i, Load(sums.dscale + i, c) + d * xh, c);
    Store<T>(sums.dbias + i, Load(sums.dbias + i, c) + d, c);
    if (dx == nullptr) return;
    Store<T>(dx + i, m.inverse_deviation * ((d * Load(w + i, c) - mean_g) - xh * mean_gx), c);
  });
}

struct LayerNormGradState {
  int64_t rows, length, parts;
  double epsilon;
  size_t sums_at;   // parts of [dscale, dbias] in T
  size_t total_at;  // the same in double

  template <typename T>
  RowSums<T> SumsOf(void* workspace, int64_t part) const {
    T* sums = At<T>(workspace, sums_at) + part * 2 * length;
    double* totals = At<double>(workspace, total_at) + part * 2 * length;
    return {sums, sums + length, totals, totals + length};
  }

  // Inputs dY, X, scale; outputs dX, dscale, dB.
  template <typename T>
  void Run(const KernelCall& call) const {
    const T* dy = call.inputs[0]->data<T>();
    const T* x = call.inputs[1]->data<T>();
    const T* w = call.inputs[2]->data<T>();
    T* dx = call.outputs[0] == nullptr ? nullptr : call.outputs[0]->data<T>();
    ParallelFor(parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) {
        const RowSums<T> sums = SumsOf<T>(call.workspace, part);
        std::fill_n(sums.dscale, 2 * length, T(0));
        std::fill_n(sums.dscale_total, 2 * length, 0.0);
        int64_t kept = 0;
        for (int64_t row = rows * part / parts; row < rows * (part + 1) / parts; ++row) {
          const int64_t at = row * length;
          GradRow(dy + at, x + at, w, length, epsilon, dx == nullptr ? nullptr : dx + at, sums);
          if (++kept % kRowBlock == 0) sums.Flush(length);
        }
        sums.Flush(length);
      }
    });
    for (int i = 1; i < static_cast<int>(call.outputs.size()) && i <= 2; ++i) {
      if (call.outputs[i] == nullptr) continue;
      T* out = call.outputs[i]->data<T>();
      for (int64_t c = 0; c < length; ++c) {
        double total = 0;
        for (int64_t part = 0; part < parts; ++part) {
          total += SumsOf<T>(call.workspace, part).dscale_total[(i - 1) * length + c];
        }
        out[c] = static_cast<T>(total);
      }
    }
  }
};

absl::StatusOr<Kernel> MakeLayerNormGrad(const KernelRequest& r) {
  if (!r.HasInput(0) || !r.HasInput(1) || !r.HasInput(2)) {
    return NodeError(r.node, "dY, X and scale are required");
  }
  const Shape& x = r.in(1);
  auto axis = NormalizeAxis(r.node.Int("axis", -1), x.rank());
  if (!axis.ok()) return Annotate(axis.status(), r.node.Describe());
  if (r.in(0) != x || r.inputs[0].dtype != r.inputs[1].dtype) {
    return NodeError(r.node,
                     absl::StrCat("dY has shape ", r.in(0).ToString(), ", X ", x.ToString()));
  }
  if (r.in(2) != Shape(x.dims().subspan(*axis)) || r.inputs[2].dtype != r.inputs[1].dtype) {
    return NodeUnimplemented(r.node, absl::StrCat("takes a scale with the shape and type of a row "
                                                  "of X, got shape ",
                                                  r.in(2).ToString()));
  }
  auto state = std::make_shared<LayerNormGradState>();
  state->rows = x.elements(0, *axis);
  state->length = x.elements(*axis, x.rank());
  state->epsilon = r.node.Float("epsilon", 1e-5f);
  state->parts =
      std::clamp<int64_t>(std::min<int64_t>(x.elements() / kGrain, state->rows), 1, Threads());
  WorkspacePlan plan;
  Kernel kernel;
  kernel.infallible = true;
  kernel.in_place = {{0, 0}, {0, 1}};
  const bool known = DispatchFloat(r.inputs[1].dtype, [&]<typename T>() {
    state->sums_at = plan.Add(state->parts * 2 * state->length * sizeof(T));
    state->total_at = plan.Add(state->parts * 2 * state->length * sizeof(double));
    kernel.run = [state](const KernelCall& call) {
      state->Run<T>(call);
      return absl::OkStatus();
    };
  });
  if (!known) return NodeUnimplemented(r.node, "takes floating-point tensors");
  kernel.workspace_bytes = plan.bytes();
  return kernel;
}

}  // namespace

void RegisterLayerNormGradKernels(KernelTable& table) {
  auto shape = [](const KernelRequest& r, int output) { return r.in(output == 0 ? 1 : 2); };
  table.Add("LayerNormalizationGrad",
            Adapted("reference", 1, MakeLayerNormGrad, shape, "float, double, float16, bfloat16"),
            kOnwardDomain);
}

}  // namespace onward
