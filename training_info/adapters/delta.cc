// SPDX-License-Identifier: Apache-2.0
#include "training_info/adapters/delta.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/tensor/dispatch.h"

namespace onward {
namespace {

// c[m, n] += scale * a[m, k] b[k, n]
void AddProduct(const double* a, const double* b, int64_t m, int64_t k, int64_t n, double scale,
                double* c) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t p = 0; p < k; ++p) {
      const double factor = scale * a[i * k + p];
      for (int64_t j = 0; j < n; ++j) c[i * n + j] += factor * b[p * n + j];
    }
  }
}

std::vector<double> Transposed(const std::vector<double>& values, const Shape& shape,
                               const std::vector<int64_t>& perm) {
  const Shape::Dims strides = shape.Strides();
  const int rank = shape.rank();
  std::vector<double> out(values.size());
  std::vector<int64_t> at(rank);
  for (size_t i = 0; i < out.size(); ++i) {
    int64_t from = 0;
    for (int axis = 0; axis < rank; ++axis) from += at[axis] * strides[perm[axis]];
    out[i] = values[from];
    for (int axis = rank - 1; axis >= 0 && ++at[axis] == shape[static_cast<int>(perm[axis])];
         --axis) {
      at[axis] = 0;
    }
  }
  return out;
}

}  // namespace

absl::StatusOr<std::vector<double>> DeltaOf(const Site& site, const Tensor& a, const Tensor& b,
                                            double scale) {
  const bool conv = site.key.form == Site::Form::kConv;
  const bool left = site.key.form == Site::Form::kLeft;
  const int last = site.shape.rank() - 1;
  int64_t rank = 0;
  if (a.shape().rank() == site.shape.rank())
    rank = conv ? a.shape()[0] / site.key.groups : a.shape()[left ? last - 1 : last];
  if (rank < 1 || a.shape() != site.DownShape(rank) || b.shape() != site.UpShape(rank)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "A ", a.shape().ToString(), " and B ", b.shape().ToString(), " do not fit a weight ",
        site.shape.ToString(), ": expected ", site.DownShape(std::max<int64_t>(rank, 1)).ToString(),
        " and ", site.UpShape(std::max<int64_t>(rank, 1)).ToString()));
  }
  ONWARD_ASSIGN_OR_RETURN(const std::vector<double> down, ToDoubles(a));
  ONWARD_ASSIGN_OR_RETURN(const std::vector<double> up, ToDoubles(b));
  const int64_t in = site.in(), out = site.out();
  std::vector<double> delta(site.shape.elements());
  const int64_t matrices = site.shape.elements() / (in * out);
  for (int64_t i = 0; i < matrices; ++i) {
    const double *d = down.data() + i * in * rank, *u = up.data() + i * rank * out;
    double* to = delta.data() + i * in * out;
    // Of a convolution rows are outputs, as with the weight on the left.
    if (conv || left) {
      AddProduct(u, d, out, rank, in, scale, to);
    } else {
      AddProduct(d, u, in, rank, out, scale, to);
    }
  }
  if (!site.key.transposed) return delta;
  return Transposed(delta, {site.shape[1], site.shape[0]}, {1, 0});
}

std::optional<std::vector<double>> DeltaOfSource(const Site& site, const Sight& sight,
                                                 std::vector<double> delta) {
  const auto types = ChainTypes(site, sight);
  if (!types.has_value()) return std::nullopt;
  for (size_t i = site.chain.size(); i-- > 0;) {
    if (!site.chain[i]->Is("Transpose")) continue;
    const std::vector<int64_t> perm = PermOf(*site.chain[i], (*types)[i].shape.rank());
    if (!IsPermutation(perm, (*types)[i + 1].shape.rank())) return std::nullopt;
    std::vector<int64_t> back(perm.size());
    for (size_t axis = 0; axis < perm.size(); ++axis) back[perm[axis]] = static_cast<int64_t>(axis);
    delta = Transposed(delta, (*types)[i + 1].shape, back);
  }
  return delta;
}

absl::StatusOr<Tensor> Sum(const Tensor& tensor, const std::vector<double>& delta) {
  Tensor sum(tensor.dtype(), tensor.shape());
  ONWARD_ASSIGN_OR_RETURN(const std::vector<double> values, ToDoubles(tensor));
  if (values.size() != delta.size() || !IsFloating(tensor.dtype())) {
    return absl::InternalError(absl::StrCat("a change of ", delta.size(), " numbers to ",
                                            DTypeName(tensor.dtype()), tensor.shape().ToString()));
  }
  DispatchNumeric(tensor.dtype(), [&]<typename T>() {
    for (size_t i = 0; i < values.size(); ++i)
      sum.data<T>()[i] = FromDouble<T>(values[i] + delta[i]);
  });
  return sum;
}

}  // namespace onward
