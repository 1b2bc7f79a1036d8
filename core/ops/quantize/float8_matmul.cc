// SPDX-License-Identifier: Apache-2.0
// QLinearMatMul of 8-bit floats: their products are computed in float, by definition.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/parallel.h"
#include "core/base/small_float.h"
#include "core/base/status.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/movement/movement.h"
#include "core/ops/quantize/granularity.h"
#include "core/ops/quantize/quantize.h"
#include "core/tensor/packed.h"

namespace onward {
namespace {

constexpr int64_t kWorkPerThread = int64_t{1} << 16;  // products

// (x - zero) * scale with one zero point and scale.
std::vector<float> Dequantized(const Tensor& x, const Tensor& scale, const Tensor& zero) {
  std::vector<float> numbers = FloatsOf(x);
  const float factor = FloatsOf(scale)[0], offset = FloatsOf(zero)[0];
  for (float& v : numbers) v = (v - offset) * factor;
  return numbers;
}

void Run(const MatMulPlan& plan, const KernelCall& call) {
  const std::vector<float> a = Dequantized(*call.inputs[0], *call.inputs[1], *call.inputs[2]);
  const std::vector<float> b = Dequantized(*call.inputs[3], *call.inputs[4], *call.inputs[5]);
  const float scale = FloatsOf(*call.inputs[6])[0], zero = FloatsOf(*call.inputs[7])[0];
  Tensor* y = call.outputs[0];
  std::vector<float> quotients(plan.result.elements());
  const int64_t rows = plan.n == 0 ? 0 : plan.result.elements() / plan.n;
  ParallelFor(rows, kWorkPerThread / (plan.n * plan.k + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t product = r / plan.m;
      const float* left = a.data() + (plan.MatrixOfA(product) * plan.m + r % plan.m) * plan.k;
      const float* right = b.data() + plan.MatrixOfB(product) * plan.k * plan.n;
      float* row = quotients.data() + r * plan.n;
      for (int64_t k = 0; k < plan.k; ++k) {
        for (int64_t c = 0; c < plan.n; ++c) row[c] += left[k] * right[k * plan.n + c];
      }
      for (int64_t c = 0; c < plan.n; ++c) row[c] = row[c] / scale + zero;
    }
  });
  EncodeSmallFloats(y->dtype(), quotients.data(), y->elements(), {}, y->data<uint8_t>());
}

}  // namespace

absl::StatusOr<Kernel> MakeFloat8MatMul(const KernelRequest& request) {
  for (const int i : {0, 2, 3, 5, 7}) {
    const DType dtype = request.inputs[i].dtype;
    if (!IsSmallFloat(dtype) || DTypeBits(dtype) != 8) {
      return NodeUnimplemented(
          request.node, absl::StrCat("no kernel for products of ", std::string(DTypeName(dtype))));
    }
  }
  for (const int i : {1, 2, 4, 5, 6, 7}) {
    if (request.in(i).elements() == 1) continue;
    return NodeUnimplemented(request.node, "8-bit floats have one scale and zero point each");
  }
  if (request.outputs[0].dtype != request.inputs[7].dtype) {
    return NodeError(request.node, "y and y_zero_point must have the same type");
  }
  ONWARD_ASSIGN_OR_RETURN(const MatMulPlan plan,
                          PlanMatMul(request.node, request.in(0), request.in(3)));
  Kernel kernel;
  kernel.run = [plan](const KernelCall& call) {
    Run(plan, call);
    return absl::OkStatus();
  };
  return kernel;
}

}  // namespace onward
