// SPDX-License-Identifier: Apache-2.0
// MatMul and Gemm of floats through oneDNN's matmul. Operands keep the strides
// they have; only a constant B may be asked for in a layout of oneDNN's choice.
#include <utility>

#include "core/base/status.h"
#include "core/ops/matmul.h"
#include "core/ops/onednn.h"

namespace onward {
namespace {

constexpr int kMaxRank = DNNL_MAX_NDIMS;

absl::Status CheckFloat(const KernelRequest& r) {
  for (const ValueSpec& v : r.inputs) {
    if (v.present() && (v.dtype != DType::kFloat || !v.shape.has_value())) {
      return NodeUnimplemented(r.node, "oneDNN serves floats of known shape");
    }
    if (v.present() && !FitsDnnl(*v.shape)) {
      return NodeUnimplemented(r.node, "empty or very large operand");
    }
  }
  return absl::OkStatus();
}

// A matrix [rows, columns], stored transposed or not.
DnnlDesc MatrixDesc(int64_t rows, int64_t columns, bool transposed) {
  return DnnlDesc({rows, columns}, dnnl::memory::data_type::f32,
                  transposed ? dnnl::memory::dims{1, rows} : dnnl::memory::dims{columns, 1});
}

struct Product {
  DnnlDesc a, b, bias, c;  // an empty bias: none
};

absl::StatusOr<Kernel> MakeProduct(const KernelRequest& r, const Product& p) {
  const dnnl::matmul::primitive_desc desc =
      p.bias.is_zero()
          ? dnnl::matmul::primitive_desc(DnnlEngine(), p.a, p.b, p.c, DnnlAttributes())
          : dnnl::matmul::primitive_desc(DnnlEngine(), p.a, p.b, p.bias, p.c, DnnlAttributes());
  if (IsSlowDnnl(desc)) return NodeUnimplemented(r.node, "oneDNN has no fast matmul here");
  WorkspacePlan plan;
  auto call = std::make_shared<DnnlCall>(dnnl::matmul(desc));
  call->Input(DNNL_ARG_SRC, p.a, 0);
  call->Input(DNNL_ARG_WEIGHTS, desc.weights_desc(), 1);
  if (!p.bias.is_zero()) call->Input(DNNL_ARG_BIAS, p.bias, 2);
  call->Output(DNNL_ARG_DST, p.c, 0);
  call->Scratchpad(desc.scratchpad_desc(), plan);
  Kernel kernel = KernelOf(std::move(call), plan);
  if (desc.weights_desc() != p.b) kernel.input_layouts = {nullptr, LayoutOf(desc.weights_desc())};
  return kernel;
}

}  // namespace

absl::StatusOr<Kernel> MakeDnnlMatMul(const KernelRequest& r) {
  ONWARD_RETURN_IF_ERROR(CheckFloat(r));
  ONWARD_ASSIGN_OR_RETURN(const MatMulPlan plan, PlanMatMul(r.node, r.in(0), r.in(1)));
  ONWARD_RETURN_IF_ERROR(CheckOutputShape(r, 0, plan.result));
  const int batch_rank = static_cast<int>(plan.batch.size());
  if (batch_rank + 2 > kMaxRank || !FitsDnnl(plan.result)) {
    return NodeUnimplemented(r.node, "too large for oneDNN");
  }
  Shape a, b, c;
  for (const MatMulPlan::Axis& axis : plan.batch) {
    a.push_back(axis.a_repeats ? 1 : axis.size);
    b.push_back(axis.b_repeats ? 1 : axis.size);
    c.push_back(axis.size);
  }
  for (int64_t d : {plan.m, plan.k}) a.push_back(d);
  for (int64_t d : {plan.k, plan.n}) b.push_back(d);
  for (int64_t d : {plan.m, plan.n}) c.push_back(d);
  const bool choose_b = r.inputs[1].constant != nullptr && batch_rank == 0;
  return TryDnnl(r.node, [&] {
    return MakeProduct(
        r, {PlainDesc(a), choose_b ? AnyDesc(b) : PlainDesc(b), DnnlDesc(), PlainDesc(c)});
  });
}

absl::StatusOr<Kernel> MakeDnnlGemm(const KernelRequest& r) {
  ONWARD_RETURN_IF_ERROR(CheckFloat(r));
  ONWARD_ASSIGN_OR_RETURN(const GemmPlan g, PlanGemm(r));
  ONWARD_RETURN_IF_ERROR(CheckOutputShape(r, 0, Shape{g.m, g.n}));
  if (!FitsDnnl(Shape{g.m, g.n})) return NodeUnimplemented(r.node, "too large for oneDNN");
  const bool fused = g.has_c && g.alpha == 1 && g.beta == 1 && g.c_row == 0 && g.c_column == 1;
  // A chosen layout is stated for B as it is stored, so only B as it is stored
  // can be left to oneDNN.
  const bool choose_b = r.inputs[1].constant != nullptr && !g.trans_b;
  absl::StatusOr<Kernel> kernel = TryDnnl(r.node, [&] {
    Product p;
    p.a = MatrixDesc(g.m, g.k, g.trans_a);
    p.b = choose_b ? AnyDesc({g.k, g.n}) : MatrixDesc(g.k, g.n, g.trans_b);
    p.c = MatrixDesc(g.m, g.n, false);
    if (fused) p.bias = PlainDesc({1, g.n});
    return MakeProduct(r, p);
  });
  if (!kernel.ok() || fused || g.plain_product()) return kernel;
  kernel->run = [product = std::move(kernel->run), g](const KernelCall& call) -> absl::Status {
    ONWARD_RETURN_IF_ERROR(product(call));
    ScaleAndAdd<float>(g, g.has_c ? call.inputs[2] : nullptr, *call.outputs[0]);
    return absl::OkStatus();
  };
  return kernel;
}

}  // namespace onward
