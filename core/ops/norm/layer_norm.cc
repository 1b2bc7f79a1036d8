// SPDX-License-Identifier: Apache-2.0
// LayerNormalization and RMSNormalization. X is seen as rows: the axes from
// `axis` on make up a row.
//   layer: y = (x - mean) / sqrt(variance + epsilon) * scale + B
//   RMS:   y = x / sqrt(mean(x^2) + epsilon) * scale
// All arithmetic is in the type of X (float for the 16-bit types), which is at
// least as exact as stash_type asks for.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/parallel.h"
#include "core/base/status.h"
#include "core/ops/cpu/adapt.h"
#include "core/ops/cpu/strided_copy.h"
#include "core/ops/norm/norm.h"
#include "core/tensor/dispatch.h"

namespace onward {
namespace {

constexpr int64_t kGrain = 8192;  // elements

// A scale or bias as rows: used as it is where it has the shape of a row, else
// expanded in the workspace, to one row if all rows share it.
struct RowParameter {
  std::optional<StridedCopy> expand;
  size_t at = 0;
  int64_t row_stride = 0;

  template <typename T>
  const T* Rows(const Tensor* given, void* workspace) const {
    if (given == nullptr) return nullptr;
    if (!expand.has_value()) return given->data<T>();
    T* rows = At<T>(workspace, at);
    expand->Run(rows, given->raw());
    return rows;
  }
};

absl::StatusOr<RowParameter> ParameterOf(const KernelRequest& r, int input, int axis,
                                         WorkspacePlan& plan) {
  const Shape& x = r.in(0);
  const Shape& given = r.in(input);
  const int rank = x.rank(), missing = rank - given.rank();
  if (r.inputs[input].dtype != r.inputs[0].dtype) {
    return NodeUnimplemented(r.node, absl::StrCat("takes input ", input, " in the type of X"));
  }
  if (given == Shape(x.dims().subspan(axis))) return RowParameter{};
  Shape::Dims strides(rank, 0);
  const Shape::Dims own = given.Strides();
  bool per_row = false;
  for (int i = 0; i < rank; ++i) {
    const int64_t dim = i < missing ? 1 : given[i - missing];
    if (missing < 0 || (dim != x[i] && dim != 1)) {
      return NodeError(r.node, absl::StrCat("input ", input, " of shape ", given.ToString(),
                                            " does not broadcast to X of shape ", x.ToString()));
    }
    if (dim == 1) continue;
    strides[i] = own[i - missing];
    per_row |= i < axis;
  }
  const int first = per_row ? 0 : axis;
  RowParameter p;
  p.row_stride = per_row ? x.elements(axis, rank) : 0;
  p.expand.emplace(r.inputs[input].dtype, x.dims().subspan(first),
                   absl::MakeConstSpan(strides).subspan(first));
  p.at = plan.Add(x.elements(first, rank) * DTypeBits(r.inputs[input].dtype) / 8);
  return p;
}

// The statistics of a row may be wanted in another type than X's.
void Put(Tensor* t, int64_t i, double value) {
  if (t == nullptr) return;
  DispatchFloat(t->dtype(), [&]<typename T>() { t->data<T>()[i] = static_cast<T>(value); });
}

struct LayerNormState {
  bool rms;
  int64_t rows, length;
  double epsilon;
  RowParameter scale, bias;

  template <typename T>
  void Run(const KernelCall& call) const {
    const Tensor* bias_in = call.inputs.size() > 2 ? call.inputs[2] : nullptr;
    Tensor* mean_out = call.outputs.size() > 1 ? call.outputs[1] : nullptr;
    Tensor* deviation_out = call.outputs.size() > 2 ? call.outputs[2] : nullptr;
    const T* x = call.inputs[0]->data<T>();
    const T* w = scale.Rows<T>(call.inputs[1], call.workspace);
    const T* b = bias.Rows<T>(bias_in, call.workspace);
    T* y = call.outputs[0] == nullptr ? nullptr : call.outputs[0]->data<T>();
    const int64_t grain = kGrain / std::max<int64_t>(length, 1) + 1;
    ParallelFor(rows, grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const RowMoments<T> m = Moments(x + row * length);
        Put(mean_out, row, static_cast<double>(m.mean) + m.rest);
        Put(deviation_out, row, m.inverse_deviation);
        if (y == nullptr) continue;
        const T* row_b = b == nullptr ? nullptr : b + row * bias.row_stride;
        Apply(m, x + row * length, w + row * scale.row_stride, row_b, y + row * length);
      }
    });
  }

  template <typename T>
  RowMoments<T> Moments(const T* x) const {
    if (!rms) return MomentsOfRow(x, length, epsilon);
    const auto [squares] = Sums<T, 1>(length, [&](int64_t i, int c, Vec<T>* term) {
      const Vec<T> v = Load(x + i, c);
      term[0] = v * v;
    });
    const double mean = squares / static_cast<double>(length);
    return {0, 0, static_cast<T>(1 / std::sqrt(mean + epsilon))};
  }

  template <typename T>
  void Apply(const RowMoments<T>& m, const T* x, const T* w, const T* b, T* y) const {
    ForVecs<T>(length, [&](int64_t i, int c) {
      const Vec<T> normal = ((Load(x + i, c) - m.mean) - m.rest) * m.inverse_deviation;
      const Vec<T> scaled = normal * Load(w + i, c);
      Store<T>(y + i, b == nullptr ? scaled : scaled + Load(b + i, c), c);
    });
  }
};

absl::StatusOr<Kernel> MakeLayerNorm(const KernelRequest& r, bool rms) {
  if (!r.HasInput(0) || !r.HasInput(1)) return NodeError(r.node, "X and scale are required");
  const Shape& x = r.in(0);
  auto axis = NormalizeAxis(r.node.Int("axis", -1), x.rank());
  if (!axis.ok()) return Annotate(axis.status(), r.node.Describe());
  auto state = std::make_shared<LayerNormState>();
  state->rms = rms;
  state->rows = x.elements(0, *axis);
  state->length = x.elements(*axis, x.rank());
  state->epsilon = r.node.Float("epsilon", 1e-5f);
  WorkspacePlan plan;
  ONWARD_ASSIGN_OR_RETURN(state->scale, ParameterOf(r, 1, *axis, plan));
  if (!rms && r.HasInput(2)) {
    ONWARD_ASSIGN_OR_RETURN(state->bias, ParameterOf(r, 2, *axis, plan));
  }
  Kernel kernel;
  kernel.infallible = true;
  kernel.in_place = {{0, 0}};
  kernel.workspace_bytes = plan.bytes();
  const bool known = DispatchFloat(r.inputs[0].dtype, [&]<typename T>() {
    kernel.run = [state](const KernelCall& call) {
      state->Run<T>(call);
      return absl::OkStatus();
    };
  });
  if (!known) return NodeUnimplemented(r.node, "takes floating-point tensors");
  return kernel;
}

// Mean and InvStdDev have ones in place of the normalised axes.
absl::StatusOr<Shape> LayerNormShape(const KernelRequest& r, int output) {
  Shape shape = r.in(0);
  if (output == 0) return shape;
  ONWARD_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(r.node.Int("axis", -1), shape.rank()));
  for (int i = axis; i < shape.rank(); ++i) shape[i] = 1;
  return shape;
}

}  // namespace

void RegisterLayerNormKernels(KernelTable& table) {
  const char* types = "float, double, float16, bfloat16";
  auto layer = [](const KernelRequest& r) { return MakeLayerNorm(r, false); };
  auto rms = [](const KernelRequest& r) { return MakeLayerNorm(r, true); };
  table.Add("LayerNormalization", Adapted("reference", 17, layer, LayerNormShape, types));
  table.Add("RMSNormalization", Adapted("reference", 23, rms, LikeInput(0), types));
}

}  // namespace onward
