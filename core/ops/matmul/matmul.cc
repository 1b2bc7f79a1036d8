// SPDX-License-Identifier: Apache-2.0
// MatMul and Gemm: Eigen products for floats, loops for integers.
#include "core/ops/matmul/matmul.h"

#include <Eigen/Core>
#include <algorithm>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/ops/cpu/adapt.h"
#include "core/ops/cpu/register.h"
#include "core/ops/cpu/scalar_math.h"
#include "core/ops/cpu/type_list.h"

namespace onward {
namespace {

using MatMulTypes = TypeList<float, double, int32_t, uint32_t, int64_t, uint64_t>;
constexpr char kTypes[] = "float, double, float16, bfloat16, int32, uint32, int64, uint64";

// A row-major matrix, perhaps read transposed.
template <typename T>
struct Operand {
  const T* data;
  bool transposed = false;
};

template <typename T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// c = a * b.
template <typename T>
void FloatProduct(Operand<T> a, Operand<T> b, T* c, int64_t m, int64_t n, int64_t k) {
  using Map = Eigen::Map<const Matrix<T>>;
  Eigen::Map<Matrix<T>> result(c, m, n);
  const Map left(a.data, a.transposed ? k : m, a.transposed ? m : k);
  const Map right(b.data, b.transposed ? n : k, b.transposed ? k : n);
  if (a.transposed && b.transposed) {
    result.noalias() = left.transpose() * right.transpose();
  } else if (a.transposed) {
    result.noalias() = left.transpose() * right;
  } else if (b.transposed) {
    result.noalias() = left * right.transpose();
  } else {
    result.noalias() = left * right;
  }
}

// Rows [begin, end) of c = a * b; wraps around as unsigned arithmetic does.
template <typename T>
void IntegerProduct(Operand<T> a, Operand<T> b, T* c, int64_t m, int64_t n, int64_t k,
                    int64_t begin, int64_t end) {
  using U = std::make_unsigned_t<T>;
  const int64_t a_row = a.transposed ? 1 : k, a_column = a.transposed ? m : 1;
  const int64_t b_row = b.transposed ? 1 : n, b_column = b.transposed ? k : 1;
  for (int64_t i = begin; i < end; ++i) {
    U* row = reinterpret_cast<U*>(c + i * n);
    std::fill_n(row, n, U{0});
    for (int64_t p = 0; p < k; ++p) {
      const U factor = static_cast<U>(a.data[i * a_row + p * a_column]);
      const T* from = b.data + p * b_row;
      for (int64_t j = 0; j < n; ++j) row[j] += factor * static_cast<U>(from[j * b_column]);
    }
  }
}

// Multiplications that are worth a second thread.
constexpr int64_t kGrain = 1 << 16;

template <typename T>
void Product(Operand<T> a, Operand<T> b, T* c, int64_t m, int64_t n, int64_t k) {
  if (m == 0 || n == 0) return;
  if constexpr (std::is_integral_v<T>) {
    ParallelFor(m, kGrain / std::max<int64_t>(n * k, 1) + 1,
                [&](int64_t begin, int64_t end) { IntegerProduct(a, b, c, m, n, k, begin, end); });
  } else {
    FloatProduct(a, b, c, m, n, k);
  }
}

template <typename T>
void BatchProduct(const MatMulPlan& plan, const T* a, const T* b, T* c) {
  const int64_t size_a = plan.m * plan.k, size_b = plan.k * plan.n, size_c = plan.m * plan.n;
  const auto range = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      Product<T>({a + plan.MatrixOfA(i) * size_a}, {b + plan.MatrixOfB(i) * size_b}, c + i * size_c,
                 plan.m, plan.n, plan.k);
    }
  };
  const int64_t work = std::max<int64_t>(plan.m * plan.n * plan.k, 1);
  // Few large products share the threads one by one, many small ones by turns.
  if (plan.batches() < 2 * Threads()) {
    range(0, plan.batches());
  } else {
    ParallelFor(plan.batches(), kGrain / work + 1, range);
  }
}

absl::StatusOr<Kernel> MakePlainMatMul(const KernelRequest& r) {
  ONWARD_ASSIGN_OR_RETURN(const MatMulPlan plan, PlanMatMul(r.node, r.in(0), r.in(1)));
  Kernel kernel;
  const bool known = MatMulTypes::Dispatch(r.inputs[0].dtype, [&]<typename T>() {
    kernel.infallible = std::is_integral_v<T>;
    kernel.run = [plan](const KernelCall& call) {
      BatchProduct<T>(plan, call.inputs[0]->data<T>(), call.inputs[1]->data<T>(),
                      call.outputs[0]->data<T>());
      return absl::OkStatus();
    };
  });
  if (!known || r.inputs[1].dtype != r.inputs[0].dtype) {
    return NodeUnimplemented(r.node, "no kernel for these element types");
  }
  return kernel;
}

// alpha and beta are floats even for integers: the result is rounded towards
// zero and clamped.
template <typename T>
void ScaleAndAddIntegers(const GemmPlan& g, const Tensor* c, Tensor& y) {
  const T* add = g.has_c && g.beta != 0 ? c->data<T>() : nullptr;
  T* out = y.data<T>();
  for (int64_t i = 0; i < g.m; ++i) {
    for (int64_t j = 0; j < g.n; ++j) {
      T& v = out[i * g.n + j];
      const T extra = add == nullptr ? T{0} : add[i * g.c_row + j * g.c_column];
      if (g.alpha == 1 && g.beta == 1) {
        v = WrapAdd(v, extra);
      } else {
        v = Convert<T>(static_cast<double>(g.alpha) * static_cast<double>(v) +
                       static_cast<double>(g.beta) * static_cast<double>(extra));
      }
    }
  }
}

absl::StatusOr<Kernel> MakePlainGemm(const KernelRequest& r) {
  ONWARD_ASSIGN_OR_RETURN(const GemmPlan g, PlanGemm(r));
  Kernel kernel;
  const bool known = MatMulTypes::Dispatch(r.inputs[0].dtype, [&]<typename T>() {
    kernel.infallible = std::is_integral_v<T>;
    kernel.run = [g](const KernelCall& call) {
      Tensor& y = *call.outputs[0];
      const Tensor* c = g.has_c ? call.inputs[2] : nullptr;
      Product<T>({call.inputs[0]->data<T>(), g.trans_a}, {call.inputs[1]->data<T>(), g.trans_b},
                 y.data<T>(), g.m, g.n, g.k);
      if constexpr (std::is_integral_v<T>) {
        if (!g.plain_product()) ScaleAndAddIntegers<T>(g, c, y);
      } else {
        ScaleAndAdd<T>(g, c, y);
      }
      return absl::OkStatus();
    };
  });
  if (!known) return NodeUnimplemented(r.node, "no kernel for this element type");
  return kernel;
}

// oneDNN where it can, for the requests that Adapt rewrites.
KernelFactory FirstOf(KernelFactory first, KernelFactory second) {
  return [first = std::move(first),
          second = std::move(second)](const KernelRequest& r) -> absl::StatusOr<Kernel> {
    absl::StatusOr<Kernel> kernel = first(r);
    return absl::IsUnimplemented(kernel.status()) ? second(r) : std::move(kernel);
  };
}

}  // namespace

void RegisterMatMulKernels(KernelTable& table) {
  const auto product = [](const KernelRequest& r, int) -> absl::StatusOr<Shape> {
    ONWARD_ASSIGN_OR_RETURN(const MatMulPlan plan, PlanMatMul(r.node, r.in(0), r.in(1)));
    return plan.result;
  };
  const auto gemm = [](const KernelRequest& r, int) -> absl::StatusOr<Shape> {
    ONWARD_ASSIGN_OR_RETURN(const GemmPlan g, PlanGemm(r));
    return Shape{g.m, g.n};
  };
  table.Add("MatMul", {"onednn", 1, MakeDnnlMatMul, "float"});
  table.Add("FusedMatMul", {"onednn", 1, MakeDnnlMatMul, "float"}, kOnwardDomain);
  table.Add("FusedGemm", {"onednn", 1, MakeDnnlGemm, "float"}, kOnwardDomain);
  table.Add("MatMul",
            Adapted("eigen", 1, FirstOf(MakeDnnlMatMul, MakePlainMatMul), product, kTypes));
  table.Add("Gemm", {"onednn", 1, MakeDnnlGemm, "float"});
  table.Add("Gemm", Adapted("eigen", 1, FirstOf(MakeDnnlGemm, MakePlainGemm), gemm, kTypes));
  RegisterDetKernels(table);
}

}  // namespace onward
