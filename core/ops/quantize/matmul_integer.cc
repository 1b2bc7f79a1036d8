// SPDX-License-Identifier: Apache-2.0
// MatMulInteger and QLinearMatMul: rows of A (unsigned) with panels of B (signed).
#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/parallel.h"
#include "core/base/status.h"
#include "core/ops/cpu/adapt.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/movement/movement.h"
#include "core/ops/quantize/byte_operand.h"
#include "core/ops/quantize/granularity.h"
#include "core/ops/quantize/integer_gemm.h"
#include "core/ops/quantize/quantize.h"
#include "core/ops/quantize/requantize.h"

namespace onward {
namespace {

constexpr int64_t kRowsPerTask = 8 * kMaxRowBlock;
constexpr int64_t kWorkPerThread = int64_t{1} << 20;  // products

bool IsByte(DType dtype) { return dtype == DType::kInt8 || dtype == DType::kUint8; }

// B in panels, one matrix after the other, with the sums of their columns.
struct PackedColumns {
  uint8_t* panels;
  int32_t* sums;
};

// Receives corrected sums: of product, row and column of its matrix, n of them; those up to
// kPanelColumns can be read.
using Receive = std::function<void(int64_t product, int64_t row, int64_t column, int64_t n,
                                   const int32_t* sums)>;

// Which entry of a row's or a column's parameters belongs to a line of all matrices.
int64_t EntryOf(int64_t line, int64_t count) { return line % count; }

class Product {
 public:
  Product(MatMulPlan plan, int64_t a_matrices, int64_t b_matrices, ByteOperand a, ByteOperand b)
      : plan_(std::move(plan)),
        a_matrices_(a_matrices),
        b_matrices_(b_matrices),
        a_(a),
        b_(b),
        gemm_(plan_.k, IntegerGemm::Side::kRows),
        panels_((plan_.n + kPanelColumns - 1) / kPanelColumns) {
    rows_ = work_.Add(a_rows() * gemm_.row_bytes());
    row_sums_ = work_.Add(a_rows() * sizeof(int32_t));
  }

  const MatMulPlan& plan() const { return plan_; }
  int64_t a_rows() const { return a_matrices_ * plan_.m; }
  int64_t b_columns() const { return b_matrices_ * plan_.n; }
  size_t workspace_bytes() const { return work_.bytes(); }

  // Packs B beforehand, or reserves the workspace for doing it at each run.
  void PackBeforehand(const Tensor& b) {
    kept_panels_ = std::make_shared<std::vector<uint8_t>>(panel_bytes());
    kept_sums_ = std::make_shared<std::vector<int32_t>>(sum_count());
    PackColumns(b, {kept_panels_->data(), kept_sums_->data()});
  }
  void PackAtRuns() {
    columns_ = work_.Add(panel_bytes());
    column_sums_ = work_.Add(sum_count() * sizeof(int32_t));
  }

  void Run(const KernelCall& call, int a, int b, const Tensor* a_zero, const Tensor* b_zero,
           const Receive& receive) const;

 private:
  size_t panel_bytes() const { return b_matrices_ * panels_ * gemm_.panel_bytes(); }
  size_t sum_count() const { return b_matrices_ * panels_ * kPanelColumns; }
  void PackRows(const Tensor& a, uint8_t* rows, int32_t* sums) const;
  void PackColumns(const Tensor& b, const PackedColumns& to) const;

  MatMulPlan plan_;
  int64_t a_matrices_, b_matrices_;
  ByteOperand a_, b_;
  IntegerGemm gemm_;
  int64_t panels_;
  WorkspacePlan work_;
  size_t rows_ = 0, row_sums_ = 0, columns_ = 0, column_sums_ = 0;
  std::shared_ptr<std::vector<uint8_t>> kept_panels_;
  std::shared_ptr<std::vector<int32_t>> kept_sums_;
};

void Product::PackRows(const Tensor& a, uint8_t* rows, int32_t* sums) const {
  const uint8_t* numbers = a.data<uint8_t>();
  ParallelFor(a_rows(), 65536 / (plan_.k + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      sums[r] = gemm_.PackRow(numbers + r * plan_.k, a_.flip(), rows + r * gemm_.row_bytes());
    }
  });
}

void Product::PackColumns(const Tensor& b, const PackedColumns& to) const {
  std::vector<int64_t> offsets(plan_.k);
  for (int64_t k = 0; k < plan_.k; ++k) offsets[k] = k * plan_.n;
  std::vector<uint8_t> ones(gemm_.row_bytes());
  gemm_.PackOnes(ones.data());
  ParallelFor(b_matrices_ * panels_, 2048 / (plan_.k + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const int64_t first = p % panels_ * kPanelColumns;
      const uint8_t* from = b.data<uint8_t>() + p / panels_ * plan_.k * plan_.n + first;
      uint8_t* panel = to.panels + p * gemm_.panel_bytes();
      gemm_.PackPanel(from, offsets.data(), std::min(kPanelColumns, plan_.n - first), b_.flip(),
                      panel);
      gemm_.Multiply(ones.data(), 1, panel, kNoStarts, to.sums + p * kPanelColumns);
    }
  });
}

void Product::Run(const KernelCall& call, int a, int b, const Tensor* a_zero, const Tensor* b_zero,
                  const Receive& receive) const {
  auto* rows = At<uint8_t>(call.workspace, rows_);
  auto* row_sums = At<int32_t>(call.workspace, row_sums_);
  PackRows(*call.inputs[a], rows, row_sums);
  PackedColumns columns = {At<uint8_t>(call.workspace, columns_),
                           At<int32_t>(call.workspace, column_sums_)};
  if (kept_panels_ != nullptr) {
    columns = {kept_panels_->data(), kept_sums_->data()};
  } else {
    PackColumns(*call.inputs[b], columns);
  }
  const int64_t a_zeros = a_zero == nullptr ? 1 : a_zero->elements();
  const int64_t b_zeros = b_zero == nullptr ? 1 : b_zero->elements();
  const int64_t chunks = (plan_.m + kRowsPerTask - 1) / kRowsPerTask;
  const int64_t task_rows = std::min(plan_.m, kRowsPerTask);
  const int64_t grain = kWorkPerThread / (task_rows * kPanelColumns * plan_.k + 1) + 1;
  ParallelFor(plan_.batches() * panels_ * chunks, grain, [&](int64_t begin, int64_t end) {
    alignas(64) int32_t tile[kMaxRowBlock * kPanelColumns], zeros[kPanelColumns];
    for (int64_t task = begin; task < end; ++task) {
      const int64_t product = task / chunks / panels_, panel = task / chunks % panels_;
      const int64_t first_row = task % chunks * kRowsPerTask;
      const int64_t last_row = std::min(plan_.m, first_row + kRowsPerTask);
      const int64_t matrix_a = plan_.MatrixOfA(product), matrix_b = plan_.MatrixOfB(product);
      const int64_t column = panel * kPanelColumns;
      const int64_t n = std::min(kPanelColumns, plan_.n - column);
      const int64_t packed = matrix_b * panels_ + panel;
      for (int64_t c = 0; c < n; ++c) {
        zeros[c] = b_.Number(b_zero, EntryOf(matrix_b * plan_.n + column + c, b_zeros));
      }
      for (int64_t r = first_row; r < last_row; r += kMaxRowBlock) {
        const int64_t count = std::min(kMaxRowBlock, last_row - r);
        const int64_t line = matrix_a * plan_.m + r;
        gemm_.Multiply(rows + line * gemm_.row_bytes(), count,
                       columns.panels + packed * gemm_.panel_bytes(), kNoStarts, tile);
        for (int64_t i = 0; i < count; ++i) {
          int32_t* sums = tile + i * kPanelColumns;
          const int32_t zero = a_.Number(a_zero, EntryOf(line + i, a_zeros));
          for (int64_t c = 0; c < n; ++c) {
            sums[c] = static_cast<int32_t>(
                static_cast<uint32_t>(sums[c]) +
                static_cast<uint32_t>(OfColumnZero(zeros[c], zero, row_sums[line + i], plan_.k)));
          }
          if (zero != 0) {
            RemoveRowZero(zero, columns.sums + packed * kPanelColumns, n, sums);
          }
          receive(product, r + i, column, n, sums);
        }
      }
    }
  });
}

// A parameter of A's rows or B's columns: one number, one per line of a matrix, or one per
// line of all matrices.
absl::Status CheckLines(const KernelRequest& request, int input, int64_t per_matrix,
                        int64_t of_all) {
  if (!request.HasInput(input)) return absl::OkStatus();
  const int64_t count = request.in(input).elements();
  if (count == 1 || (count > 0 && (count == per_matrix || count == of_all))) {
    return absl::OkStatus();
  }
  return NodeError(request.node,
                   absl::StrCat("input ", input, " has shape ", request.in(input).ToString(),
                                ", expected one element, or one per row or column: ", per_matrix));
}

struct Inputs {
  int a, b, a_zero, b_zero;
};

absl::StatusOr<Product> MakeProduct(const KernelRequest& request, const Inputs& at) {
  for (int i : {at.a, at.b}) {
    if (!request.HasInput(i)) return NodeError(request.node, absl::StrCat("needs input ", i));
    if (!IsByte(request.inputs[i].dtype)) {
      return NodeUnimplemented(request.node, "no kernel for products of other than 8-bit integers");
    }
  }
  ONWARD_RETURN_IF_ERROR(CheckSameType(request, at.a, {at.a_zero}));
  ONWARD_RETURN_IF_ERROR(CheckSameType(request, at.b, {at.b_zero}));
  const Shape &a = request.in(at.a), &b = request.in(at.b);
  ONWARD_ASSIGN_OR_RETURN(MatMulPlan plan, PlanMatMul(request.node, a, b));
  const int64_t a_matrices = plan.m * plan.k == 0 ? 0 : a.elements() / (plan.m * plan.k);
  const int64_t b_matrices = plan.n * plan.k == 0 ? 0 : b.elements() / (plan.n * plan.k);
  const bool a_signed = request.inputs[at.a].dtype == DType::kInt8;
  const bool b_signed = request.inputs[at.b].dtype == DType::kInt8;
  Product product(std::move(plan), a_matrices, b_matrices, {a_signed, false}, {b_signed, true});
  ONWARD_RETURN_IF_ERROR(
      CheckLines(request, at.a_zero, a.rank() < 2 ? 1 : a[a.rank() - 2], product.a_rows()));
  ONWARD_RETURN_IF_ERROR(
      CheckLines(request, at.b_zero, b.rank() < 2 ? 1 : b[b.rank() - 1], product.b_columns()));
  if (request.inputs[at.b].constant != nullptr) {
    product.PackBeforehand(*request.inputs[at.b].constant);
  } else {
    product.PackAtRuns();
  }
  return product;
}

// Where the depth or the result is empty there is nothing to multiply.
bool IsEmpty(const MatMulPlan& plan) { return plan.result.elements() == 0 || plan.k == 0; }

absl::StatusOr<Kernel> MakeInteger(const KernelRequest& request) {
  ONWARD_ASSIGN_OR_RETURN(Product made, MakeProduct(request, {0, 1, 2, 3}));
  if (request.outputs[0].dtype != DType::kInt32) return NodeError(request.node, "Y must be int32");
  auto product = std::make_shared<const Product>(std::move(made));
  Kernel kernel;
  kernel.infallible = true;
  kernel.workspace_bytes = product->workspace_bytes();
  kernel.run = [product](const KernelCall& call) {
    const MatMulPlan& plan = product->plan();
    int32_t* y = call.outputs[0]->data<int32_t>();
    if (IsEmpty(plan)) {
      std::fill_n(y, plan.result.elements(), 0);
      return absl::OkStatus();
    }
    product->Run(call, 0, 1, InputAt(call.inputs, 2), InputAt(call.inputs, 3),
                 [&](int64_t p, int64_t row, int64_t column, int64_t n, const int32_t* sums) {
                   std::copy_n(sums, n, y + (p * plan.m + row) * plan.n + column);
                 });
    return absl::OkStatus();
  };
  return kernel;
}

// y = saturate(round(sum * a_scale * b_scale / y_scale) + y_zero)
template <typename T>
void RunQLinear(const Product& product, const KernelCall& call) {
  const MatMulPlan& plan = product.plan();
  const std::vector<float> a_scales = FloatsOf(*call.inputs[1]);
  const std::vector<float> b_scales = FloatsOf(*call.inputs[4]);
  const float y_scale = FloatsOf(*call.inputs[6])[0];
  const float zero = static_cast<float>(*call.inputs[7]->data<T>());
  T* y = call.outputs[0]->data<T>();
  if (IsEmpty(plan)) {
    std::fill_n(y, plan.result.elements(), static_cast<T>(zero));
    return;
  }
  const auto a_count = static_cast<int64_t>(a_scales.size());
  const auto b_count = static_cast<int64_t>(b_scales.size());
  const RequantizeFunction<T> requantize = RequantizeFor<T>();
  product.Run(call, 0, 3, call.inputs[2], call.inputs[5],
              [&](int64_t p, int64_t row, int64_t column, int64_t n, const int32_t* sums) {
                alignas(32) float scales[kPanelColumns] = {};
                const float a_scale = a_scales[EntryOf(plan.MatrixOfA(p) * plan.m + row, a_count)];
                const int64_t line = plan.MatrixOfB(p) * plan.n + column;
                for (int64_t c = 0; c < (b_count == 1 ? 1 : n); ++c) {
                  scales[c] = a_scale * b_scales[EntryOf(line + c, b_count)] / y_scale;
                }
                T* to = y + (p * plan.m + row) * plan.n + column;
                T panel[kPanelColumns];
                const bool whole = n == kPanelColumns;
                requantize(sums, 0, scales, b_count == 1, zero, whole ? to : panel);
                if (!whole) std::copy_n(panel, n, to);
              });
}

absl::StatusOr<Kernel> MakeQLinear(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 8));
  if (!IsByte(request.inputs[0].dtype)) return MakeFloat8MatMul(request);
  ONWARD_ASSIGN_OR_RETURN(Product made, MakeProduct(request, {0, 3, 2, 5}));
  const Shape &a = request.in(0), &b = request.in(3);
  ONWARD_RETURN_IF_ERROR(CheckLines(request, 1, a.rank() < 2 ? 1 : a[a.rank() - 2], made.a_rows()));
  ONWARD_RETURN_IF_ERROR(
      CheckLines(request, 4, b.rank() < 2 ? 1 : b[b.rank() - 1], made.b_columns()));
  for (int i : {6, 7}) ONWARD_RETURN_IF_ERROR(CheckLines(request, i, 1, 1));
  const DType dtype = request.outputs[0].dtype;
  if (!IsByte(dtype) || request.inputs[7].dtype != dtype) {
    return NodeError(request.node, "y and y_zero_point must be int8 or uint8, both the same");
  }
  for (int i : {1, 4, 6}) {
    if (!IsFloating(request.inputs[i].dtype)) return NodeError(request.node, "scales are floats");
  }
  auto product = std::make_shared<const Product>(std::move(made));
  Kernel kernel;
  kernel.workspace_bytes = product->workspace_bytes();
  kernel.run = [product, dtype](const KernelCall& call) {
    if (dtype == DType::kInt8) {
      RunQLinear<int8_t>(*product, call);
    } else {
      RunQLinear<uint8_t>(*product, call);
    }
    return absl::OkStatus();
  };
  return kernel;
}

// Shapes that are not known yet are, when the kernel is made again at each run.
absl::StatusOr<Kernel> WithShapes(const KernelRequest& request, int a, int b,
                                  const KernelFactory& factory) {
  const ShapeRule rule = [a, b](const KernelRequest& r, int) {
    return PlanMatMul(r.node, r.in(a), r.in(b))->result;
  };
  return Adapt(factory, rule)(request);
}

}  // namespace

absl::StatusOr<Kernel> MakeMatMulInteger(const KernelRequest& request) {
  return WithShapes(request, 0, 1, MakeInteger);
}

absl::StatusOr<Kernel> MakeQLinearMatMul(const KernelRequest& request) {
  return WithShapes(request, 0, 3, MakeQLinear);
}

}  // namespace onward
