// SPDX-License-Identifier: Apache-2.0
// MatMul and Gemm of floats through oneDNN's matmul, or our own product where
// that is faster. Operands keep the strides they have.
#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/device/arrangements.h"
#include "core/ops/cpu/onednn.h"
#include "core/ops/cpu/sgemm.h"
#include "core/ops/matmul/matmul.h"

namespace onward {
namespace {

constexpr int kMaxRank = DNNL_MAX_NDIMS;
constexpr int64_t kLeastOwn = 16;  // rows and columns of stacked matrices that are worth packing

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

struct Product {
  DnnlDesc a, b, bias, c;  // an empty bias: none
};

DnnlDesc SwapLastTwo(const DnnlDesc& desc) {
  std::vector<int> order(desc.get_ndims());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return desc.permute_axes(order);
}

// Whether the matrices lie in rows or in columns without gaps inside them.
bool HasUnitStride(const DnnlDesc& desc) {
  const dnnl::memory::dims strides = desc.get_strides();
  return strides[strides.size() - 1] == 1 || strides[strides.size() - 2] == 1;
}

// The descriptor of an operand as it is stored, if products can read that, and
// else that of its plain form; `layout` is what to ask for.
DnnlDesc OperandDesc(const ValueSpec& value, Layout* layout) {
  DnnlDesc desc = StridedDescOf(*value.shape, value.layout);
  const bool usable = !desc.is_zero() && value.shape->rank() >= 2 && HasUnitStride(desc);
  *layout = usable ? value.layout : nullptr;
  return usable ? desc : PlainDesc(*value.shape);
}

// The same with the wish for an output.
DnnlDesc ResultDesc(const ValueSpec& value, const Shape& shape, Layout* layout) {
  *layout = nullptr;
  if (value.layout == nullptr) return PlainDesc(shape);
  return OperandDesc({value.dtype, shape, value.layout, nullptr}, layout);
}

SgemmEpilogue EpilogueOf(const Node& node) {
  SgemmEpilogue after;
  if (const auto bounds = ReadActivation(node)) {
    after.bounded = true;
    after.low = bounds->low;
    after.high = bounds->high;
  }
  return after;
}

int64_t SizeOf(const dnnl::memory::dims& dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

// The own product is about as fast as oneDNN's with AVX2 everywhere, and threads help each
// other in it or leave it to one where others hold the cores (stall_guard.h).
bool IsOwnProduct(const Product& p) { return p.c.get_ndims() == 2; }

Kernel MakeOwnProduct(const KernelRequest& r, const Product& p, int a, int b) {
  const dnnl::memory::dims a_strides = p.a.get_strides(), b_strides = p.b.get_strides();
  auto gemm =
      std::make_shared<const Sgemm>(p.c.get_dims()[0], p.c.get_dims()[1], p.a.get_dims()[1]);
  const SgemmEpilogue after = EpilogueOf(r.node);
  Kernel kernel;
  kernel.infallible = true;
  kernel.workspace_bytes = gemm->workspace_bytes();
  const bool bias = !p.bias.is_zero(), residual = r.HasInput(kResidual);
  const auto strided = [](const float* data, const dnnl::memory::dims& strides) {
    return StridedMatrix{data, strides[0], strides[1]};
  };
  std::shared_ptr<const std::vector<float>> packed;
  if (const ConstantInput constant = r.ConstantAt(b)) {
    const std::string form = absl::StrCat("columns ", p.b.get_dims()[0], " ", p.b.get_dims()[1],
                                          " by ", b_strides[0], " ", b_strides[1]);
    packed = constant.Arranged<std::vector<float>>(
        form, [&] { return gemm->Pack(strided((*constant).data<float>(), b_strides)); });
  }
  kernel.run = [=](const KernelCall& call) {
    SgemmEpilogue epilogue = after;
    if (bias) epilogue.bias = call.inputs[2]->data<float>();
    if (residual) epilogue.residual = call.inputs[kResidual]->data<float>();
    const StridedMatrix left = strided(call.inputs[a]->data<float>(), a_strides);
    float* result = call.outputs[0]->data<float>();
    if (packed != nullptr) {
      gemm->RunPacked(left, *packed, result, epilogue, call.workspace);
    } else {
      gemm->Run(left, strided(call.inputs[b]->data<float>(), b_strides), result, epilogue,
                call.workspace);
    }
    return absl::OkStatus();
  };
  return kernel;
}

// An operand of stacked products: where its matrices lie, a size of 1 repeating one.
struct Stack {
  explicit Stack(const DnnlDesc& desc) : steps(desc.get_strides()) {
    const dnnl::memory::dims dims = desc.get_dims();
    for (size_t i = 0; i < dims.size(); ++i) {
      if (dims[i] == 1) steps[i] = 0;
    }
    column = desc.get_strides().back();
    row = desc.get_strides()[dims.size() - 2];
    steps.resize(dims.size() - 2);
  }
  int64_t OffsetOf(int64_t matrix, const dnnl::memory::dims& sizes) const {
    int64_t offset = 0;
    for (size_t i = steps.size(); i-- > 0; matrix /= sizes[i])
      offset += matrix % sizes[i] * steps[i];
    return offset;
  }
  StridedMatrix At(const float* data, int64_t offset) const { return {data + offset, row, column}; }

  dnnl::memory::dims steps;
  int64_t row, column;
};

int64_t Multiplications(const Product& p) { return p.a.get_dims().back() * SizeOf(p.c.get_dims()); }

// oneDNN, held to AVX2, is left behind where the CPU has more.
bool IsOwnStack(const Product& p) {
  const dnnl::memory::dims dims = p.c.get_dims();
  return ThisCpu().avx512f && std::min(dims.back(), dims[dims.size() - 2]) >= kLeastOwn &&
         Multiplications(p) > kSmallDnnlWork;
}

// Matrix by matrix, each on one thread where there are enough of them.
Kernel MakeOwnStack(const KernelRequest& r, const Product& p, int a, int b) {
  dnnl::memory::dims sizes = p.c.get_dims();
  const int64_t n = sizes.back(), m = sizes[sizes.size() - 2], k = p.a.get_dims().back();
  sizes.resize(sizes.size() - 2);
  const int64_t count = SizeOf(sizes);
  const int64_t slots = count < Threads() ? 1 : Threads();
  auto gemm = std::make_shared<const Sgemm>(m, n, k, slots > 1 ? 1 : 0);
  SgemmEpilogue after = EpilogueOf(r.node);
  const Stack left(p.a), right(p.b), result(p.c);
  after.row = result.row;
  Kernel kernel;
  kernel.infallible = true;
  kernel.workspace_bytes = slots * gemm->workspace_bytes();
  const bool bias = !p.bias.is_zero(), residual = r.HasInput(kResidual);
  kernel.run = [=](const KernelCall& call) {
    const int64_t items = slots > 1 ? ItemsFor(count, slots) : 1;
    ParallelItems(items, slots, [&](int64_t item, int64_t slot) {
      void* workspace = static_cast<char*>(call.workspace) + slot * gemm->workspace_bytes();
      for (int64_t i = count * item / items; i < count * (item + 1) / items; ++i) {
        const int64_t to = result.OffsetOf(i, sizes);
        SgemmEpilogue epilogue = after;
        if (bias) epilogue.bias = call.inputs[2]->data<float>();
        if (residual) epilogue.residual = call.inputs[kResidual]->data<float>() + to;
        gemm->Run(left.At(call.inputs[a]->data<float>(), left.OffsetOf(i, sizes)),
                  right.At(call.inputs[b]->data<float>(), right.OffsetOf(i, sizes)),
                  call.outputs[0]->data<float>() + to, epilogue, workspace);
      }
    });
    return absl::OkStatus();
  };
  return kernel;
}

absl::StatusOr<Kernel> MakeProduct(const KernelRequest& r, Product p) {
  // oneDNN writes rows; columns are the rows of the transposed product.
  const bool columns = p.c.get_strides().back() != 1 && p.c.get_dims().back() != 1;
  if (columns && !p.bias.is_zero()) return NodeUnimplemented(r.node, "a bias on rows");
  int a = 0, b = 1;
  if (columns) {
    std::swap(p.a, p.b);
    std::swap(a, b);
    for (DnnlDesc* desc : {&p.a, &p.b, &p.c}) *desc = SwapLastTwo(*desc);
  }
  if (IsOwnProduct(p)) return MakeOwnProduct(r, p, a, b);
  if (IsOwnStack(p)) return MakeOwnStack(r, p, a, b);
  return WithActivation(
      r, p.c, p.a.get_dims().back(), [&](bool activation) -> absl::StatusOr<Kernel> {
        const dnnl::primitive_attr attributes = Followers(r, p.c, activation);
        const dnnl::matmul::primitive_desc desc =
            p.bias.is_zero()
                ? dnnl::matmul::primitive_desc(DnnlEngine(), p.a, p.b, p.c, attributes)
                : dnnl::matmul::primitive_desc(DnnlEngine(), p.a, p.b, p.bias, p.c, attributes);
        if (IsSlowDnnl(desc)) return NodeUnimplemented(r.node, "oneDNN has no fast matmul here");
        WorkspacePlan plan;
        auto call = std::make_shared<DnnlCall>(dnnl::matmul(desc));
        call->Input(DNNL_ARG_SRC, p.a, a);
        call->Input(DNNL_ARG_WEIGHTS, p.b, b);
        if (!p.bias.is_zero()) call->Input(DNNL_ARG_BIAS, p.bias, 2);
        if (r.HasInput(kResidual)) call->Input(kResidualArgument, p.c, kResidual);
        call->Output(DNNL_ARG_DST, p.c, 0);
        call->Scratchpad(desc.scratchpad_desc(), plan);
        return KernelOf(std::move(call), plan);
      });
}

// Input 2 of a fused product: one number per column. Empty: none.
DnnlDesc ColumnBias(const KernelRequest& r, int rank, int64_t columns) {
  if (!r.HasInput(2)) return DnnlDesc();
  Shape shape;
  for (int i = 0; i + 1 < rank; ++i) shape.push_back(1);
  shape.push_back(columns);
  return PlainDesc(shape);
}

// Both operands and the result as stacks of matrices of one rank, in whatever
// order their axes are stored. Unimplemented where a reorder is needed or
// nothing is permuted.
absl::StatusOr<Kernel> MakeStridedMatMul(const KernelRequest& r) {
  const bool permuted = r.inputs[0].layout != nullptr || r.inputs[1].layout != nullptr ||
                        r.outputs[0].layout != nullptr;
  const int rank = r.in(0).rank();
  if (!permuted || rank < 2 || r.in(1).rank() < 2 || r.in(1).rank() > rank || rank > kMaxRank) {
    return NodeUnimplemented(r.node, "nothing is permuted");
  }
  Layout a, b, c;
  Product p;
  p.a = OperandDesc(r.inputs[0], &a);
  p.b = OperandDesc(r.inputs[1], &b);
  p.c = ResultDesc(r.outputs[0], r.out(0), &c);
  if (r.in(1).rank() < rank) {
    // [..., M, K] x [K, N]: the matrices of A are one under the other.
    const int64_t k = r.in(0)[rank - 1], n = r.in(1)[r.in(1).rank() - 1];
    const int64_t m = r.in(0).elements() / std::max<int64_t>(k, 1);
    if (r.in(1).rank() != 2 || a != nullptr || c != nullptr) {
      return NodeUnimplemented(r.node, "ranks differ");
    }
    p.a = PlainDesc({m, k});
    p.c = PlainDesc({m, n});
  }
  p.bias = ColumnBias(r, p.c.get_ndims(), p.c.get_dims().back());
  ONWARD_ASSIGN_OR_RETURN(Kernel kernel, MakeProduct(r, p));
  kernel.input_layouts = {a, b, nullptr, c};
  kernel.output_layouts = {c};
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
  const bool bias_fits = !r.HasInput(2) || r.in(2) == Shape{plan.n};
  if (!bias_fits || (r.HasInput(kResidual) && r.in(kResidual) != plan.result)) {
    return NodeUnimplemented(r.node, "a bias or residual that has to be broadcast");
  }
  const int64_t work = plan.result.elements() * plan.k;
  absl::StatusOr<Kernel> strided = TryDnnl(r.node, work, [&] { return MakeStridedMatMul(r); });
  if (strided.ok()) return strided;
  return TryDnnl(r.node, work, [&] {
    return MakeProduct(r,
                       {PlainDesc(a), PlainDesc(b), ColumnBias(r, c.rank(), plan.n), PlainDesc(c)});
  });
}

absl::StatusOr<Kernel> MakeDnnlGemm(const KernelRequest& r) {
  ONWARD_RETURN_IF_ERROR(CheckFloat(r));
  ONWARD_ASSIGN_OR_RETURN(const GemmPlan g, PlanGemm(r));
  ONWARD_RETURN_IF_ERROR(CheckOutputShape(r, 0, Shape{g.m, g.n}));
  if (!FitsDnnl(Shape{g.m, g.n})) return NodeUnimplemented(r.node, "too large for oneDNN");
  const bool fused = g.has_c && g.alpha == 1 && g.beta == 1 && g.c_row == 0 && g.c_column == 1;
  const bool followed = r.HasInput(kResidual) || r.node.Has("activation");
  if (followed && !fused && !g.plain_product())
    return NodeUnimplemented(r.node, "scales or a wide C");
  if (r.HasInput(kResidual) && r.in(kResidual) != Shape{g.m, g.n}) {
    return NodeUnimplemented(r.node, "a residual that has to be broadcast");
  }
  Layout a, b, c;
  absl::StatusOr<Kernel> kernel = TryDnnl(r.node, [&]() -> absl::StatusOr<Kernel> {
    Product p;
    p.a = OperandDesc(r.inputs[0], &a);
    p.b = OperandDesc(r.inputs[1], &b);
    if (g.trans_a) p.a = SwapLastTwo(p.a);
    if (g.trans_b) p.b = SwapLastTwo(p.b);
    p.c = g.plain_product() ? ResultDesc(r.outputs[0], {g.m, g.n}, &c) : PlainDesc({g.m, g.n});
    if (fused) p.bias = PlainDesc({1, g.n});
    ONWARD_ASSIGN_OR_RETURN(Kernel made, MakeProduct(r, p));
    made.input_layouts.resize(4);
    made.input_layouts[0] = a;
    made.input_layouts[kResidual] = c;
    made.input_layouts[1] = b;
    made.output_layouts = {c};
    return made;
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
