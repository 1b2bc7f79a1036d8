// SPDX-License-Identifier: Apache-2.0
// Determinants of stacked matrices, and their gradient. Both eliminate in double.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/ops/cpu/adapt.h"
#include "core/ops/elementwise/elementwise.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/movement/movement.h"
#include "core/tensor/dispatch.h"

namespace onward {
namespace {

// A square matrix in rows.
class Square {
 public:
  explicit Square(int64_t n) : n_(n), values_(static_cast<size_t>(n * n)) {}
  template <typename T>
  void Read(const T* from) {
    std::copy_n(from, n_ * n_, values_.begin());
  }
  double* row(int64_t i) { return values_.data() + i * n_; }
  double& at(int64_t i, int64_t j) { return values_[i * n_ + j]; }
  int64_t n() const { return n_; }

  void SwapRows(int64_t a, int64_t b) {
    if (a != b) std::swap_ranges(row(a), row(a) + n_, row(b));
  }
  void SwapColumns(int64_t a, int64_t b) {
    for (int64_t i = 0; a != b && i < n_; ++i) std::swap(at(i, a), at(i, b));
  }
  // Takes row p out of those below it; the factors stay where the zeros would be.
  void Eliminate(int64_t p) {
    for (int64_t i = p + 1; i < n_; ++i) {
      const double factor = at(i, p) /= at(p, p);
      if (factor == 0) continue;
      for (int64_t j = p + 1; j < n_; ++j) at(i, j) -= factor * at(p, j);
    }
  }

 private:
  int64_t n_;
  std::vector<double> values_;
};

// Whether x is a better pivot; NaN is the best, so that it is not lost among zeros.
bool IsLarger(double x, double than) { return std::abs(x) > std::abs(than) || x != x; }

double Determinant(Square& a) {
  double product = 1;
  for (int64_t p = 0; p < a.n(); ++p) {
    int64_t largest = p;
    for (int64_t i = p + 1; i < a.n(); ++i) {
      if (IsLarger(a.at(i, p), a.at(largest, p))) largest = i;
    }
    if (a.at(largest, p) == 0) return product * 0;
    if (largest != p) product = -product;
    a.SwapRows(p, largest);
    product *= a.at(p, p);
    a.Eliminate(p);
  }
  return product;
}

// P A Q = L U with the largest element left as each pivot, so that the last one is the
// smallest: a matrix of rank n - 1 has it 0 and no other, one of lower rank two or more.
struct FullPivots {
  std::vector<int64_t> rows, columns;  // the original ones, in their new order
  double sign = 1;                     // of both permutations
  int64_t rank = 0;
};

FullPivots EliminateFully(Square& a) {
  const int64_t n = a.n();
  FullPivots found;
  for (int64_t i = 0; i < n; ++i) {
    found.rows.push_back(i);
    found.columns.push_back(i);
  }
  for (int64_t p = 0; p < n; ++p) {
    int64_t row = p, column = p;
    for (int64_t i = p; i < n; ++i) {
      for (int64_t j = p; j < n; ++j) {
        if (IsLarger(a.at(i, j), a.at(row, column))) {
          row = i;
          column = j;
        }
      }
    }
    if (a.at(row, column) == 0) break;
    if ((row != p) != (column != p)) found.sign = -found.sign;
    a.SwapRows(p, row);
    a.SwapColumns(p, column);
    std::swap(found.rows[p], found.rows[row]);
    std::swap(found.columns[p], found.columns[column]);
    a.Eliminate(p);
    ++found.rank;
  }
  return found;
}

// Cofactors of A: C = det(A) A^-T, which has a limit where A is singular. With U = [V u; 0 d]
// and v = det(V), adj(U) = [d v V^-1, -v V^-1 u; 0, v] divides by no d; adj(A) is that times
// L^-1 and the permutations.
void Cofactors(Square& a, double* cofactors) {
  const int64_t n = a.n();
  const FullPivots pivots = EliminateFully(a);
  std::fill_n(cofactors, n * n, 0.0);
  if (pivots.rank < n - 1) return;
  const double d = a.at(n - 1, n - 1);
  double v = pivots.sign;
  for (int64_t i = 0; i + 1 < n; ++i) v *= a.at(i, i);
  std::vector<double> x(n);
  for (int64_t column = 0; column < n; ++column) {
    // L y = e_column, then x = adj(U) y.
    std::fill(x.begin(), x.end(), 0.0);
    x[column] = 1;
    for (int64_t i = column + 1; i < n; ++i) {
      for (int64_t j = column; j < i; ++j) x[i] -= a.at(i, j) * x[j];
    }
    const double last = x[n - 1];
    for (int64_t i = 0; i + 1 < n; ++i) x[i] = d * x[i] - a.at(i, n - 1) * last;
    for (int64_t i = n - 2; i >= 0; --i) {
      for (int64_t j = i + 1; j + 1 < n; ++j) x[i] -= a.at(i, j) * x[j];
      x[i] /= a.at(i, i);
    }
    // Column `column` of adj(PAQ) is column rows[column] of adj(A), up to the order of rows.
    for (int64_t i = 0; i < n; ++i) {
      cofactors[pivots.rows[column] * n + pivots.columns[i]] = v * x[i];
    }
  }
}

// Multiplications that are worth a second thread.
constexpr int64_t kGrain = 1 << 15;

absl::Status CheckMatrices(const KernelRequest& r, const Shape& x) {
  const int rank = x.rank();
  if (rank >= 2 && x[rank - 1] == x[rank - 2]) return absl::OkStatus();
  return NodeError(r.node, absl::StrCat("expected square matrices, got shape ", x.ToString()));
}

Shape StackOf(const Shape& x) { return Shape(x.dims().subspan(0, x.rank() - 2)); }

// Calls body(matrix, scratch) for each matrix of the stack.
template <typename Body>
void ForMatrices(int64_t count, int64_t n, const Body& body) {
  ParallelFor(count, kGrain / std::max<int64_t>(1, n * n * n) + 1, [&](int64_t begin, int64_t end) {
    Square scratch(n);
    for (int64_t i = begin; i < end; ++i) body(i, scratch);
  });
}

absl::StatusOr<Kernel> MakeDet(const KernelRequest& r) {
  const Shape& x = r.in(0);
  ONWARD_RETURN_IF_ERROR(CheckMatrices(r, x));
  const int64_t n = x[x.rank() - 1], count = StackOf(x).elements();
  Kernel kernel;
  const bool known = DispatchFloat(r.inputs[0].dtype, [&]<typename T>() {
    kernel.run = [n, count](const KernelCall& call) {
      const T* from = call.inputs[0]->data<T>();
      T* to = call.outputs[0]->data<T>();
      ForMatrices(count, n, [&](int64_t i, Square& scratch) {
        scratch.Read(from + i * n * n);
        to[i] = static_cast<T>(Determinant(scratch));
      });
      return absl::OkStatus();
    };
  });
  if (!known) return UnservedType(r);
  return kernel;
}

// dX = dY * cofactors(X).
absl::StatusOr<Kernel> MakeDetGrad(const KernelRequest& r) {
  const Shape& x = r.in(1);
  ONWARD_RETURN_IF_ERROR(CheckMatrices(r, x));
  if (r.in(0) != StackOf(x) || r.inputs[0].dtype != r.inputs[1].dtype) {
    return NodeError(r.node, absl::StrCat("a gradient of shape ", r.in(0).ToString(),
                                          " for matrices of shape ", x.ToString()));
  }
  const int64_t n = x[x.rank() - 1], count = StackOf(x).elements();
  Kernel kernel;
  const bool known = DispatchFloat(r.inputs[1].dtype, [&]<typename T>() {
    kernel.run = [n, count](const KernelCall& call) {
      const T* dy = call.inputs[0]->data<T>();
      const T* from = call.inputs[1]->data<T>();
      T* to = call.outputs[0]->data<T>();
      ForMatrices(count, n, [&](int64_t i, Square& scratch) {
        scratch.Read(from + i * n * n);
        std::vector<double> cofactors(n * n);
        if (n > 0) Cofactors(scratch, cofactors.data());
        for (int64_t k = 0; k < n * n; ++k) {
          to[i * n * n + k] = static_cast<T>(static_cast<double>(dy[i]) * cofactors[k]);
        }
      });
      return absl::OkStatus();
    };
  });
  if (!known) return UnservedType(r);
  return kernel;
}

}  // namespace

void RegisterDetKernels(KernelTable& table) {
  const std::string types = FloatingTypes::Names();
  const auto stack = [](const KernelRequest& r, int) { return StackOf(r.in(0)); };
  table.Add("Det", {"reference", 11, Adapt(MakeDet, stack), types});
  table.Add("DetGrad", {"reference", 1, Adapt(MakeDetGrad, LikeInput(1)), types}, kOnwardDomain);
}

}  // namespace onward
