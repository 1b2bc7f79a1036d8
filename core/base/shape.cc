// SPDX-License-Identifier: Apache-2.0
#include "core/base/shape.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace onward {

int64_t Shape::elements() const { return elements(0, rank()); }

int64_t Shape::elements(int from, int to) const {
  int64_t n = 1;
  for (int i = from; i < to; ++i) n *= dims_[i];
  return n;
}

Shape::Dims Shape::Strides() const {
  Dims strides(dims_.size(), 1);
  for (int i = rank() - 2; i >= 0; --i) strides[i] = strides[i + 1] * dims_[i + 1];
  return strides;
}

std::string Shape::ToString() const { return absl::StrCat("[", absl::StrJoin(dims_, ", "), "]"); }

absl::StatusOr<int64_t> CheckedElements(absl::Span<const int64_t> dims) {
  constexpr int64_t kMax = int64_t{1} << 48;
  if (dims.size() > 32) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor has rank ", dims.size(), "; at most 32 is supported"));
  }
  int64_t n = 1;
  bool empty = false;
  for (int64_t d : dims) {
    if (d < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("negative dimension in shape [", absl::StrJoin(dims, ", "), "]"));
    }
    if (d == 0) {
      empty = true;
    } else if (n > kMax / d) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape [", absl::StrJoin(dims, ", "), "] has too many elements"));
    } else {
      n *= d;
    }
  }
  return empty ? 0 : n;
}

absl::StatusOr<Shape> BroadcastShapes(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  Shape out;
  for (int i = 0; i < rank; ++i) {
    const int ia = i - (rank - a.rank());
    const int ib = i - (rank - b.rank());
    const int64_t da = ia < 0 ? 1 : a[ia];
    const int64_t db = ib < 0 ? 1 : b[ib];
    if (da != db && da != 1 && db != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("shapes ", a.ToString(), " and ", b.ToString(), " do not broadcast"));
    }
    out.push_back(da == 1 ? db : da);
  }
  return out;
}

absl::StatusOr<int> NormalizeAxis(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    return absl::InvalidArgumentError(
        absl::StrCat("axis ", axis, " is outside [-", rank, ", ", rank, ")"));
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

bool IsPermutation(absl::Span<const int64_t> perm, int rank) {
  if (static_cast<int64_t>(perm.size()) != rank) return false;
  std::vector<bool> seen(rank, false);
  for (int64_t axis : perm) {
    if (axis < 0 || axis >= rank || seen[axis]) return false;
    seen[axis] = true;
  }
  return true;
}

}  // namespace onward
