// SPDX-License-Identifier: Apache-2.0
#include "cli/compare_tensors.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace onward {
namespace {

constexpr double kBFloat16Rtol = 0x1p-6;

bool Close(double got, double expected, const Tolerance& t) {
  if (std::isnan(got) || std::isnan(expected)) return std::isnan(got) && std::isnan(expected);
  if (std::isinf(got) || std::isinf(expected)) return got == expected;
  return std::abs(got - expected) <= t.atol + t.rtol * std::abs(expected);
}

}  // namespace

std::string Difference::ToString() const {
  if (equal) return absl::StrFormat("max abs %.3g, max rel %.3g", max_absolute, max_relative);
  if (differing == 0) return mismatch;
  return absl::StrFormat("%d elements differ (max abs %.3g, max rel %.3g); %s", differing,
                         max_absolute, max_relative, mismatch);
}

Difference CompareTensors(const Tensor& got, const Tensor& expected, const Tolerance& tolerance) {
  Difference d;
  if (got.dtype() != expected.dtype() || got.shape() != expected.shape()) {
    d.equal = false;
    d.mismatch = absl::StrCat("got ", DTypeName(got.dtype()), got.shape().ToString(), ", expected ",
                              DTypeName(expected.dtype()), expected.shape().ToString());
    return d;
  }
  Tolerance t = tolerance;
  if (got.dtype() == DType::kBFloat16) t.rtol = std::max(t.rtol, kBFloat16Rtol);
  const auto a = ToDoubles(got), b = ToDoubles(expected);
  if (!a.ok() || !b.ok()) {
    d.equal = Identical(got, expected);
    if (!d.equal) d.mismatch = "the values differ";
    return d;
  }
  for (size_t i = 0; i < a->size(); ++i) {
    const double x = (*a)[i], y = (*b)[i];
    if (std::isfinite(x) && std::isfinite(y)) {
      d.max_absolute = std::max(d.max_absolute, std::abs(x - y));
      if (y != 0) d.max_relative = std::max(d.max_relative, std::abs(x - y) / std::abs(y));
    }
    if (Close(x, y, t)) continue;
    if (d.differing++ == 0)
      d.mismatch = absl::StrFormat("first at element %d: got %.9g, expected %.9g", i, x, y);
    d.equal = false;
  }
  return d;
}

namespace {

Difference Mismatch(const Value& got, const Value& expected) {
  Difference d;
  d.equal = false;
  d.mismatch = absl::StrCat("got ", got.ToString(), ", expected ", expected.ToString());
  return d;
}

// Adds what comparing part of the value found.
void Join(const std::string& place, const Difference& part, Difference* whole) {
  whole->max_absolute = std::max(whole->max_absolute, part.max_absolute);
  whole->max_relative = std::max(whole->max_relative, part.max_relative);
  whole->differing += part.differing;
  if (!part.equal && whole->equal) whole->mismatch = absl::StrCat(place, ": ", part.mismatch);
  whole->equal = whole->equal && part.equal;
}

}  // namespace

Difference CompareValues(const Value& got, const Value& expected, const Tolerance& tolerance) {
  if (got.tensor() != nullptr && expected.tensor() != nullptr) {
    return CompareTensors(*got.tensor(), *expected.tensor(), tolerance);
  }
  if (got.empty() && expected.empty()) return {};
  Difference whole;
  const auto compare_items = [&](const Sequence& a, const Sequence& b) {
    for (size_t i = 0; i < a.items.size(); ++i) {
      Join(absl::StrCat("item ", i), CompareValues(a.items[i], b.items[i], tolerance), &whole);
    }
  };
  if (const Sequence* a = got.sequence(), *b = expected.sequence(); a != nullptr && b != nullptr) {
    if (a->items.size() != b->items.size()) return Mismatch(got, expected);
    compare_items(*a, *b);
    return whole;
  }
  if (const Map* a = got.map(), *b = expected.map(); a != nullptr && b != nullptr) {
    if (!Identical(a->keys, b->keys)) return Mismatch(got, expected);
    compare_items(a->values, b->values);
    return whole;
  }
  const SparseTensor *a = got.sparse(), *b = expected.sparse();
  if (a == nullptr || b == nullptr || a->shape != b->shape) return Mismatch(got, expected);
  Join("indices", CompareTensors(a->indices, b->indices, {0, 0}), &whole);
  Join("values", CompareTensors(a->values, b->values, tolerance), &whole);
  return whole;
}

}  // namespace onward
