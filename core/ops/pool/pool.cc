// SPDX-License-Identifier: Apache-2.0
// MaxPool, AveragePool, LpPool and the gradients of the first two. Floats in
// channel blocks are pooled 8 channels at a time, in the layout they come in.
// oneDNN's max pool is not used: it drops NaN, which would hide a diverging
// model, and its gradient needs a forward pass of its own.
#include <algorithm>
#include <cmath>
#include <memory>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/ops/cpu/adapt.h"
#include "core/ops/cpu/onednn.h"
#include "core/ops/cpu/register.h"
#include "core/ops/cpu/type_list.h"
#include "core/ops/pool/pool_lines.h"
#include "core/ops/pool/pool_planes.h"

namespace onward {
namespace {

using PoolTypes = TypeList<float, double>;
using MaxPoolTypes = PoolTypes::With<int8_t, uint8_t>;
constexpr char kTypes[] = "float, double, float16, bfloat16";
constexpr char kMaxTypes[] = "float, double, float16, bfloat16, int8, uint8";
absl::Status CheckGradient(const KernelRequest& r) {
  if (!r.HasInput(0) || !r.HasInput(1)) return NodeError(r.node, "an input is missing");
  ONWARD_ASSIGN_OR_RETURN(const Shape expected, PooledShape(r, r.in(1)));
  if (r.in(0) != expected) {
    return NodeError(r.node, absl::StrCat("dY has shape ", r.in(0).ToString(), ", the pool gives ",
                                          expected.ToString()));
  }
  if (r.inputs[0].dtype != r.inputs[1].dtype) {
    return NodeError(r.node, "dY and X must have the same element type");
  }
  return absl::OkStatus();
}

// Y and the index of each winner in X flattened, its spatial part row-major or
// column-major.
template <typename T>
void MaxWithIndices(const Pool& pool, bool column_major, const T* x, T* y, int64_t* indices) {
  const auto& [d, h, w] = pool.plan.axes;
  ForPlanes<T>(pool.planes, pool.plan.work, [&]<typename C>(int64_t i) {
    const T* x_plane = x + i * pool.plan.in;
    ForWindows(pool.plan, [&](int64_t out, const PoolWindow& window) {
      T best = LowestValue<T>();
      int64_t winner = -1;
      ForTaps(pool.plan, window, [&](int64_t p) {
        if (winner >= 0 && !Exceeds(x_plane[p], best)) return;
        best = x_plane[p];
        winner = p;
      });
      if (y != nullptr) y[i * pool.plan.out + out] = best;
      if (column_major && winner >= 0) {
        const int64_t iw = winner % w.in, ih = winner / w.in % h.in, id = winner / w.in / h.in;
        winner = id + (ih + iw * h.in) * d.in;
      }
      indices[i * pool.plan.out + out] = winner < 0 ? -1 : i * pool.plan.in + winner;
    });
  });
}

absl::StatusOr<Kernel> MakeMaxPool(const KernelRequest& r) {
  const bool with_indices = r.HasOutput(1);
  ONWARD_ASSIGN_OR_RETURN(Pool made, MakePool(r, r.in(0), with_indices ? 1 : BlockOf(r, 0)));
  const bool column_major = r.node.Int("storage_order", 0) != 0;
  const auto pool = std::make_shared<const Pool>(std::move(made));
  Kernel kernel;
  kernel.infallible = true;
  const Shape y_shape = WithSpatial(r.in(0)[0], r.in(0)[1], pool->window.out);
  kernel.input_layouts = {BlockLayout(r.in(0), pool->planes.block)};
  kernel.output_layouts = {BlockLayout(y_shape, pool->planes.block)};
  const bool known = MaxPoolTypes::Dispatch(r.inputs[0].dtype, [&]<typename T>() {
    kernel.run = [pool, column_major, line = PoolLine(pool->window)](const KernelCall& call) {
      const T* x = call.inputs[0]->data<T>();
      T* y = call.outputs[0] == nullptr ? nullptr : call.outputs[0]->data<T>();
      if (call.outputs.size() > 1 && call.outputs[1] != nullptr) {
        MaxWithIndices(*pool, column_major, x, y, call.outputs[1]->data<int64_t>());
        return absl::OkStatus();
      }
      const Planes& planes = pool->planes;
      const bool by_lines = planes.block == 1 && line.fits();
      ForPlanes<T>(planes, pool->plan.work, [&]<typename C>(int64_t i) {
        const T* from = x + planes.Begin(i, planes.in);
        T* to = y + planes.Begin(i, planes.out);
        by_lines ? MaxByLines(pool->plan, line, from, to) : MaxPlane<C>(pool->plan, from, to);
      });
      return absl::OkStatus();
    };
  });
  return known ? absl::StatusOr<Kernel>(std::move(kernel)) : NoPoolKernel(r);
}

// The blocked one of X's and dY's layouts serves for both.
absl::StatusOr<Kernel> MakeMaxPoolGrad(const KernelRequest& r) {
  ONWARD_RETURN_IF_ERROR(CheckGradient(r));
  ONWARD_ASSIGN_OR_RETURN(Pool made, MakePool(r, r.in(1), std::max(BlockOf(r, 1), BlockOf(r, 0))));
  const auto pool = std::make_shared<const Pool>(std::move(made));
  const int block = pool->planes.block;
  Kernel kernel;
  kernel.infallible = true;
  kernel.input_layouts = {BlockLayout(r.in(0), block), BlockLayout(r.in(1), block)};
  kernel.output_layouts = {BlockLayout(r.in(1), block)};
  const bool known = PoolTypes::Dispatch(r.inputs[1].dtype, [&]<typename T>() {
    kernel.run = [pool](const KernelCall& call) {
      const T *dy = call.inputs[0]->data<T>(), *x = call.inputs[1]->data<T>();
      T* dx = call.outputs[0]->data<T>();
      const Planes& planes = pool->planes;
      ForPlanes<T>(planes, 2 * pool->plan.work, [&]<typename C>(int64_t i) {
        const int64_t at = planes.Begin(i, planes.in);
        ZeroPlane<C>(dx + at, planes.in);
        MaxGradPlane<C>(pool->plan, dy + planes.Begin(i, planes.out), x + at, dx + at);
      });
      return absl::OkStatus();
    };
  });
  return known ? absl::StatusOr<Kernel>(std::move(kernel)) : NoPoolKernel(r);
}

absl::StatusOr<Kernel> MakeAveragePool(const KernelRequest& r) {
  ONWARD_ASSIGN_OR_RETURN(Pool made, MakePool(r, r.in(0), BlockOf(r, 0)));
  const auto pool = std::make_shared<const Pool>(std::move(made));
  Kernel kernel;
  kernel.infallible = true;
  const Shape y_shape = WithSpatial(r.in(0)[0], r.in(0)[1], pool->window.out);
  kernel.input_layouts = {BlockLayout(r.in(0), pool->planes.block)};
  kernel.output_layouts = {BlockLayout(y_shape, pool->planes.block)};
  const bool known = PoolTypes::Dispatch(r.inputs[0].dtype, [&]<typename T>() {
    kernel.run = [pool, line = PoolLine(pool->window)](const KernelCall& call) {
      const T* x = call.inputs[0]->data<T>();
      T* y = call.outputs[0]->data<T>();
      const Planes& planes = pool->planes;
      const bool by_lines = planes.block == 1 && line.fits();
      ForPlanes<T>(planes, pool->plan.work, [&]<typename C>(int64_t i) {
        const T* from = x + planes.Begin(i, planes.in);
        T* to = y + planes.Begin(i, planes.out);
        by_lines ? AverageByLines(pool->plan, line, from, to)
                 : AveragePlane<C>(pool->plan, from, to);
      });
      return absl::OkStatus();
    };
  });
  return known ? absl::StatusOr<Kernel>(std::move(kernel)) : NoPoolKernel(r);
}

// X serves for its shape, and tells in which layout its neighbours are.
absl::StatusOr<Kernel> MakeAveragePoolGrad(const KernelRequest& r) {
  ONWARD_RETURN_IF_ERROR(CheckGradient(r));
  ONWARD_ASSIGN_OR_RETURN(Pool made, MakePool(r, r.in(1), std::max(BlockOf(r, 1), BlockOf(r, 0))));
  const auto pool = std::make_shared<const Pool>(std::move(made));
  const int block = pool->planes.block;
  Kernel kernel;
  kernel.infallible = true;
  kernel.input_layouts = {BlockLayout(r.in(0), block), r.inputs[1].layout};
  kernel.output_layouts = {BlockLayout(r.in(1), block)};
  const bool known = PoolTypes::Dispatch(r.inputs[0].dtype, [&]<typename T>() {
    kernel.run = [pool](const KernelCall& call) {
      const T* dy = call.inputs[0]->data<T>();
      T* dx = call.outputs[0]->data<T>();
      const Planes& planes = pool->planes;
      ForPlanes<T>(planes, pool->plan.work, [&]<typename C>(int64_t i) {
        T* plane = dx + planes.Begin(i, planes.in);
        ZeroPlane<C>(plane, planes.in);
        AverageGradPlane<C>(pool->plan, dy + planes.Begin(i, planes.out), plane);
      });
      return absl::OkStatus();
    };
  });
  return known ? absl::StatusOr<Kernel>(std::move(kernel)) : NoPoolKernel(r);
}

// y = (sum |x|^p)^(1/p).
absl::StatusOr<Kernel> MakeLpPool(const KernelRequest& r) {
  const int64_t p = r.node.Int("p", 2);
  if (p < 1) return NodeError(r.node, absl::StrCat("attribute p = ", p, " must be at least 1"));
  ONWARD_ASSIGN_OR_RETURN(Pool made, MakePool(r, r.in(0), 1));
  const auto pool = std::make_shared<const Pool>(std::move(made));
  Kernel kernel;
  kernel.infallible = true;
  const bool known = PoolTypes::Dispatch(r.inputs[0].dtype, [&]<typename T>() {
    kernel.run = [pool, p = static_cast<T>(p)](const KernelCall& call) {
      const T* x = call.inputs[0]->data<T>();
      T* y = call.outputs[0]->data<T>();
      ForPlanes<T>(pool->planes, pool->plan.work * 16, [&]<typename C>(int64_t i) {
        const T* plane = x + i * pool->plan.in;
        ForWindows(pool->plan, [&](int64_t out, const PoolWindow& window) {
          T sum = 0;
          ForTaps(pool->plan, window, [&](int64_t at) { sum += std::pow(std::abs(plane[at]), p); });
          y[i * pool->plan.out + out] = std::pow(sum, T{1} / p);
        });
      });
      return absl::OkStatus();
    };
  });
  return known ? absl::StatusOr<Kernel>(std::move(kernel)) : NoPoolKernel(r);
}

}  // namespace

absl::StatusOr<Pool> MakePool(const KernelRequest& r, const Shape& x, int block) {
  ONWARD_ASSIGN_OR_RETURN(Window window, GeometryOfPool(r.node, x));
  PoolPlan plan(window, r.node.Int("count_include_pad", 0) != 0);
  const Planes planes(x, plan, plan.empty_windows ? 1 : block);
  return Pool{std::move(window), std::move(plan), planes};
}

int BlockOf(const KernelRequest& r, int input) {
  if (r.inputs[input].dtype != DType::kFloat) return 1;
  return std::max(ChannelBlock(r.in(input), r.inputs[input].layout), 1);
}

Layout BlockLayout(const Shape& shape, int block) {
  return block == 1 ? nullptr : LayoutOf(BlockedDesc(shape, block));
}

absl::StatusOr<Shape> PooledShape(const KernelRequest& r, const Shape& x) {
  ONWARD_ASSIGN_OR_RETURN(const Window window, GeometryOfPool(r.node, x));
  return WithSpatial(x[0], x[1], window.out);
}

absl::Status NoPoolKernel(const KernelRequest& r) {
  return NodeUnimplemented(r.node, "no kernel for this element type");
}

PoolPlan::PoolPlan(const Window& window, bool count_include_pad) {
  for (int i = 0; i < window.rank(); ++i) {
    PoolAxis& axis = axes[3 - window.rank() + i];
    const int64_t kernel = window.kernel[i];
    axis.in = window.in[i];
    axis.dilation = window.dilations[i];
    axis.spans.resize(window.out[i]);
    for (int64_t o = 0; o < window.out[i]; ++o) {
      const int64_t start = o * window.strides[i] - window.pads_begin[i];
      // The number of taps t in [0, kernel) with start + t*dilation < end.
      const auto taps_before = [&](int64_t end) {
        const int64_t room = std::max<int64_t>(end - start, 0);
        return std::min((room + axis.dilation - 1) / axis.dilation, kernel);
      };
      const int64_t first = taps_before(0), last = taps_before(axis.in);
      axis.spans[o] = {
          start + first * axis.dilation, last - first,
          count_include_pad ? taps_before(axis.in + window.pads_end[i]) : last - first};
      empty_windows |= last == first;
    }
  }
  in = window.in_elements();
  out = window.out_elements();
  work = static_cast<double>(out);
  for (int i = 0; i < window.rank(); ++i) {
    work *= static_cast<double>(std::min(window.kernel[i], window.in[i]));
  }
}

void RegisterPoolKernels(KernelTable& table) {
  const auto pooled = [](const KernelRequest& r, int) { return PooledShape(r, r.in(0)); };
  table.Add("MaxPool", Adapted("reference", 1, MakeMaxPool, pooled, kMaxTypes));
  table.Add("AveragePool", Adapted("reference", 1, MakeAveragePool, pooled, kTypes));
  table.Add("LpPool", Adapted("reference", 1, MakeLpPool, pooled, kTypes));
  table.Add("MaxPoolGrad", Adapted("reference", 1, MakeMaxPoolGrad, LikeInput(1), kTypes),
            kOnwardDomain);
  table.Add("AveragePoolGrad",
            Adapted("reference", 1, MakeAveragePoolGrad, LikeInput(1), kTypes, {{1}}),
            kOnwardDomain);
  RegisterMaxPoolWinnerKernels(table);
  RegisterGlobalPoolKernels(table);
}

}  // namespace onward
