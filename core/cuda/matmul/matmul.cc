// SPDX-License-Identifier: Apache-2.0
// MatMul and Gemm through cuBLAS.
#include <memory>
#include <utility>

#include "core/base/status.h"
#include "core/cuda/call.h"
#include "core/cuda/libraries.h"
#include "core/cuda/matmul/product.h"
#include "core/cuda/matmul/spread.h"
#include "core/cuda/register.h"
#include "core/cuda/request.h"
#include "core/device/plan/product.h"

namespace onward::cuda {
namespace {

constexpr char kTypes[] = "float, double, float16, bfloat16";

absl::Status CheckOperands(const KernelRequest& r) {
  ONWARD_RETURN_IF_ERROR(CheckRequest(r, 2));
  for (const ValueSpec& input : r.inputs) {
    if (input.present() && (!IsReal(input.dtype) || input.dtype != r.inputs[0].dtype)) {
      return Unserved(r);
    }
  }
  return absl::OkStatus();
}

// A product over no elements is zero.
Kernel ZeroKernel(const KernelRequest& r) {
  return QueuedKernel(r, [](const KernelCall& call) {
    Tensor& y = *call.outputs[0];
    if (y.bytes() == 0) return cudaSuccess;
    return cudaMemsetAsync(y.raw(), 0, y.bytes(), StreamOf(call));
  });
}

const char* ByteOffset(const void* data, int64_t bytes) {
  return static_cast<const char*>(data) + bytes;
}

absl::StatusOr<Kernel> MakeMatMul(const Context& context, const KernelRequest& r) {
  ONWARD_RETURN_IF_ERROR(CheckOperands(r));
  ONWARD_ASSIGN_OR_RETURN(const MatMulPlan plan, PlanMatMul(r.node, r.in(0), r.in(1)));
  ONWARD_RETURN_IF_ERROR(CheckOutput(r, 0, plan.result));
  if (plan.result.elements() == 0 || plan.k == 0) return ZeroKernel(r);
  const DType dtype = r.inputs[0].dtype;
  Product product = DenseProduct(dtype, plan.m, plan.n, plan.k, false, false);
  product.tf32 = context.options.allow_tf32;
  // The innermost batch axis is one call; what is outside of it is a loop.
  if (!plan.batch.empty()) {
    const MatMulPlan::Axis& inner = plan.batch.back();
    product.batches = inner.size;
    product.a_batch = inner.a_repeats ? 0 : plan.m * plan.k;
    product.b_batch = inner.b_repeats ? 0 : plan.k * plan.n;
    product.c_batch = plan.m * plan.n;
  }
  if (!CanMultiply(product)) return Unserved(r);
  Kernel kernel;
  kernel.workspace_bytes = Libraries::kBlasBytes;
  kernel.run = [plan, product, libraries = context.libraries,
                size = static_cast<int64_t>(DTypeBits(dtype) / 8)](const KernelCall& call) {
    const auto multiply = [&](cublasHandle_t handle) -> absl::Status {
      for (int64_t i = 0; i < plan.batches(); i += product.batches) {
        ONWARD_RETURN_IF_ERROR(Multiply(
            handle, product, ByteOffset(In(call, 0), plan.MatrixOfA(i) * plan.m * plan.k * size),
            ByteOffset(In(call, 1), plan.MatrixOfB(i) * plan.k * plan.n * size),
            static_cast<char*>(Out(call, 0)) + i * plan.m * plan.n * size));
      }
      return absl::OkStatus();
    };
    return libraries->WithBlas(StreamOf(call), call.workspace, multiply);
  };
  return kernel;
}

// The addend is put in place first: the product is added to it in full precision and rounded once.
absl::StatusOr<Kernel> MakeGemm(const Context& context, const KernelRequest& r) {
  ONWARD_RETURN_IF_ERROR(CheckOperands(r));
  ONWARD_ASSIGN_OR_RETURN(const GemmPlan g, PlanGemm(r));
  ONWARD_RETURN_IF_ERROR(CheckOutput(r, 0, Shape{g.m, g.n}));
  const bool adds = g.has_c && g.beta != 0;
  if (g.m * g.n == 0 || (g.k == 0 && !adds)) return ZeroKernel(r);
  const DType dtype = r.inputs[0].dtype;
  const auto addend = [g, dtype](const KernelCall& call, double scale) {
    return SpreadAddend(dtype, In(call, 2), g.c_row, g.c_column, scale, g.m, g.n, Out(call, 0),
                        StreamOf(call));
  };
  if (g.k == 0) {
    return QueuedKernel(r, [addend, g](const KernelCall& call) { return addend(call, g.beta); });
  }
  Product product = DenseProduct(dtype, g.m, g.n, g.k, g.trans_a, g.trans_b);
  product.tf32 = context.options.allow_tf32;
  product.alpha = g.alpha;
  product.beta = adds ? g.beta : 0;
  if (!CanMultiply(product)) return Unserved(r);
  Kernel kernel;
  kernel.workspace_bytes = Libraries::kBlasBytes;
  kernel.run = [product, adds, addend, libraries = context.libraries,
                what = r.node.Describe()](const KernelCall& call) -> absl::Status {
    if (adds) ONWARD_RETURN_IF_ERROR(StatusOf(addend(call, 1), what));
    return libraries->WithBlas(StreamOf(call), call.workspace, [&](cublasHandle_t handle) {
      return Multiply(handle, product, In(call, 0), In(call, 1), Out(call, 0));
    });
  };
  return kernel;
}

}  // namespace

void RegisterMatMul(const Context& context, KernelTable& table) {
  table.Add(
      "MatMul",
      {"cublas", 1, [context](const KernelRequest& r) { return MakeMatMul(context, r); }, kTypes});
  table.Add("Gemm", {"cublas", 1,
                     [context](const KernelRequest& r) { return MakeGemm(context, r); }, kTypes});
}

}  // namespace onward::cuda
