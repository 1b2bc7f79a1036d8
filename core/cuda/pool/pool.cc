// SPDX-License-Identifier: Apache-2.0
// MaxPool, AveragePool, LpPool, the global pools, and the gradients that the CPU has kernels for.
#include <algorithm>
#include <limits>
#include <utility>

#include "core/base/status.h"
#include "core/cuda/call.h"
#include "core/cuda/pool/kernels.h"
#include "core/cuda/register.h"
#include "core/cuda/request.h"
#include "core/device/plan/window.h"

namespace onward::cuda {
namespace {

constexpr char kTypes[] = "float, double, float16, bfloat16";
constexpr char kMaxTypes[] = "float, double, float16, bfloat16, int8, uint8";

struct Pool {
  PoolShape shape;
  Shape y;
};

absl::StatusOr<Pool> PlanPool(const KernelRequest& r, const Shape& x) {
  ONWARD_ASSIGN_OR_RETURN(const Window w, GeometryOfPool(r.node, x));
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  if (w.in_elements() > kMost || w.out_elements() > kMost) return Unserved(r);
  Pool pool = {{x[0] * x[1], {}, r.node.Int("count_include_pad", 0) != 0 ? 1 : 0},
               WithSpatial(x[0], x[1], w.out)};
  for (int i = 0; i < w.rank(); ++i) {
    pool.shape.axes[3 - w.rank() + i] = {
        static_cast<int>(w.in[i]),        static_cast<int>(w.out[i]),
        static_cast<int>(w.kernel[i]),    static_cast<int>(w.strides[i]),
        static_cast<int>(w.dilations[i]), static_cast<int>(w.pads_begin[i]),
        static_cast<int>(w.pads_end[i])};
  }
  return pool;
}

Kernel Infallible(Kernel kernel) {
  kernel.infallible = true;
  return kernel;
}

absl::StatusOr<Kernel> MakeMaxPool(const KernelRequest& r) {
  ONWARD_RETURN_IF_ERROR(CheckRequest(r, 1));
  const DType dtype = r.inputs[0].dtype;
  if (!IsReal(dtype) && dtype != DType::kInt8 && dtype != DType::kUint8) return Unserved(r);
  ONWARD_ASSIGN_OR_RETURN(const Pool pool, PlanPool(r, r.in(0)));
  ONWARD_RETURN_IF_ERROR(CheckOutput(r, 0, pool.y));
  ONWARD_RETURN_IF_ERROR(CheckOutput(r, 1, pool.y));
  const bool column_major = r.node.Int("storage_order", 0) != 0;
  return Infallible(QueuedKernel(r, [=](const KernelCall& call) {
    return MaxPool(dtype, pool.shape, In(call, 0), Out(call, 0),
                   static_cast<int64_t*>(Out(call, 1)), column_major, StreamOf(call));
  }));
}

// (dY, X) -> dX
absl::StatusOr<Pool> PlanPoolGrad(const KernelRequest& r) {
  ONWARD_RETURN_IF_ERROR(CheckRequest(r, 2));
  if (!IsReal(r.inputs[0].dtype) || r.inputs[1].dtype != r.inputs[0].dtype) return Unserved(r);
  ONWARD_ASSIGN_OR_RETURN(const Pool pool, PlanPool(r, r.in(1)));
  if (r.in(0) != pool.y) return Unserved(r);
  ONWARD_RETURN_IF_ERROR(CheckOutput(r, 0, r.in(1)));
  return pool;
}

absl::StatusOr<Kernel> MakeMaxPoolGrad(const KernelRequest& r) {
  ONWARD_ASSIGN_OR_RETURN(const Pool pool, PlanPoolGrad(r));
  Kernel kernel = QueuedKernel(r, [=, dtype = r.inputs[0].dtype](const KernelCall& call) {
    return MaxPoolGrad(dtype, pool.shape, In(call, 0), In(call, 1), Out(call, 0),
                       static_cast<int*>(call.workspace), StreamOf(call));
  });
  kernel.workspace_bytes = pool.y.elements() * sizeof(int);
  return Infallible(std::move(kernel));
}

absl::StatusOr<Kernel> MakeAveragePoolGrad(const KernelRequest& r) {
  ONWARD_ASSIGN_OR_RETURN(const Pool pool, PlanPoolGrad(r));
  return Infallible(QueuedKernel(r, [=, dtype = r.inputs[0].dtype](const KernelCall& call) {
    return AveragePoolGrad(dtype, pool.shape, In(call, 0), Out(call, 0), StreamOf(call));
  }));
}

// `launch(dtype, pool, x, y, stream)` for a pool of real numbers.
template <class Launch>
absl::StatusOr<Kernel> MakeRealPool(const KernelRequest& r, Launch launch) {
  ONWARD_RETURN_IF_ERROR(CheckRequest(r, 1));
  if (!IsReal(r.inputs[0].dtype)) return Unserved(r);
  ONWARD_ASSIGN_OR_RETURN(const Pool pool, PlanPool(r, r.in(0)));
  ONWARD_RETURN_IF_ERROR(CheckOutput(r, 0, pool.y));
  return Infallible(QueuedKernel(r, [=, dtype = r.inputs[0].dtype](const KernelCall& call) {
    return launch(dtype, pool.shape, In(call, 0), Out(call, 0), StreamOf(call));
  }));
}

absl::StatusOr<Kernel> MakeAveragePool(const KernelRequest& r) {
  return MakeRealPool(r, AveragePool);
}

absl::StatusOr<Kernel> MakeLpPool(const KernelRequest& r) {
  const int64_t p = r.node.Int("p", 2);
  if (p < 1) return Unserved(r);
  return MakeRealPool(
      r, [p](DType dtype, const PoolShape& pool, const void* x, void* y, cudaStream_t stream) {
        return LpPool(dtype, pool, static_cast<double>(p), x, y, stream);
      });
}

Shape ReducedShape(const Shape& x) {
  Shape shape{x[0], x[1]};
  for (int i = 2; i < x.rank(); ++i) shape.push_back(1);
  return shape;
}

// `launch(dtype, planes, positions, x, y, stream)`
template <class Launch>
absl::StatusOr<Kernel> MakeGlobalPool(const KernelRequest& r, Launch launch) {
  ONWARD_RETURN_IF_ERROR(CheckRequest(r, 1));
  const Shape& x = r.in(0);
  if (!IsReal(r.inputs[0].dtype) || x.rank() < 3) return Unserved(r);
  ONWARD_RETURN_IF_ERROR(CheckOutput(r, 0, ReducedShape(x)));
  const int64_t planes = x[0] * x[1], positions = x.elements(2, x.rank());
  return Infallible(QueuedKernel(r, [=, dtype = r.inputs[0].dtype](const KernelCall& call) {
    return launch(dtype, planes, positions, In(call, 0), Out(call, 0), StreamOf(call));
  }));
}

absl::StatusOr<Kernel> MakeGlobalAveragePool(const KernelRequest& r) {
  return MakeGlobalPool(r, GlobalAveragePool);
}

absl::StatusOr<Kernel> MakeGlobalMaxPool(const KernelRequest& r) {
  return MakeGlobalPool(r, GlobalMaxPool);
}

absl::StatusOr<Kernel> MakeGlobalLpPool(const KernelRequest& r) {
  const int64_t p = r.node.Int("p", 2);
  if (p < 1) return Unserved(r);
  return MakeGlobalPool(r, [p](DType dtype, int64_t planes, int64_t positions, const void* x,
                               void* y, cudaStream_t stream) {
    return GlobalLpPool(dtype, planes, positions, static_cast<double>(p), x, y, stream);
  });
}

// (dY, X for its shape) -> dX
absl::StatusOr<Kernel> MakeGlobalAveragePoolGrad(const KernelRequest& r) {
  ONWARD_RETURN_IF_ERROR(CheckRequest(r, 2));
  const Shape& x = r.in(1);
  const DType dtype = r.inputs[0].dtype;
  if (!IsReal(dtype) || x.rank() < 3 || r.in(0) != ReducedShape(x)) return Unserved(r);
  ONWARD_RETURN_IF_ERROR(CheckOutput(r, 0, x));
  const int64_t planes = x[0] * x[1], positions = x.elements(2, x.rank());
  return Infallible(QueuedKernel(r, [=](const KernelCall& call) {
    return GlobalAveragePoolGrad(dtype, planes, positions, In(call, 0), Out(call, 0),
                                 StreamOf(call));
  }));
}

}  // namespace

void RegisterPool(const Context&, KernelTable& table) {
  table.Add("MaxPool", {"cuda", 1, MakeMaxPool, kMaxTypes});
  table.Add("AveragePool", {"cuda", 1, MakeAveragePool, kTypes});
  table.Add("LpPool", {"cuda", 1, MakeLpPool, kTypes});
  table.Add("GlobalAveragePool", {"cuda", 1, MakeGlobalAveragePool, kTypes});
  table.Add("GlobalMaxPool", {"cuda", 1, MakeGlobalMaxPool, kTypes});
  table.Add("GlobalLpPool", {"cuda", 1, MakeGlobalLpPool, kTypes});
  table.Add("MaxPoolGrad", {"cuda", 1, MakeMaxPoolGrad, kTypes}, kOnwardDomain);
  table.Add("AveragePoolGrad", {"cuda", 1, MakeAveragePoolGrad, kTypes}, kOnwardDomain);
  table.Add("GlobalAveragePoolGrad", {"cuda", 1, MakeGlobalAveragePoolGrad, kTypes}, kOnwardDomain);
}

}  // namespace onward::cuda
