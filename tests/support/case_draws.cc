// SPDX-License-Identifier: Apache-2.0
#include "tests/support/case_draws.h"

#include <algorithm>
#include <cmath>

#include "tests/support/reference/array.h"

namespace onward {
namespace {

constexpr double kKinkDistance = 0.05;

// One value in each of n equal parts of the range, shuffled: nothing ties. They
// are floats, so that both precisions compute with the same numbers.
std::vector<double> DistinctValues(const Arg& arg, Draws& draws) {
  const int64_t n = arg.shape.elements();
  std::vector<double> values(n);
  for (int64_t i = 0; i < n; ++i) {
    const double cell = static_cast<double>(i) + 0.25 + 0.5 * draws.Unit();
    double v = arg.low + (arg.high - arg.low) * cell / static_cast<double>(n);
    for (const double kink : arg.kinks) {
      const double distance = v - kink;
      if (std::abs(distance) < kKinkDistance) v += distance < 0 ? -kKinkDistance : kKinkDistance;
    }
    values[i] = static_cast<float>(v);
  }
  for (int64_t i = n - 1; i > 0; --i) std::swap(values[i], values[draws.Below(i + 1)]);
  return values;
}

bool IsUnsigned(DType dtype) {
  return dtype == DType::kUint8 || dtype == DType::kUint16 || dtype == DType::kUint32 ||
         dtype == DType::kUint64 || dtype == DType::kBool || dtype == DType::kString;
}

Tensor Rounded(const Shape& shape, const std::vector<double>& values, DType dtype) {
  reference::Array a(dtype, shape);
  std::copy(values.begin(), values.end(), a.values.begin());
  return reference::ToTensor(a);
}

// Whole numbers where a row asks for real ones.
std::optional<Tensor> DrawWhole(const Arg& arg, DType dtype, Draws& draws) {
  double low = std::ceil(3 * arg.low), high = std::floor(3 * arg.high);
  if (IsUnsigned(dtype)) low = std::max(low, 0.0);
  if (dtype == DType::kBool) high = std::min(high, 1.0);
  if (low > high) return std::nullopt;
  std::vector<double> values(arg.shape.elements());
  for (double& v : values) {
    v = low + static_cast<double>(draws.Below(static_cast<int64_t>(high - low) + 1));
  }
  return Rounded(arg.shape, values, dtype);
}

}  // namespace

Tensor Converted(const Tensor& doubles, DType dtype) {
  if (dtype == doubles.dtype()) return doubles;
  const auto values = doubles.values<double>();
  return Rounded(doubles.shape(), {values.begin(), values.end()}, dtype);
}

Tensor Doubles(const Shape& shape, const std::vector<double>& values) {
  return Tensor::FromValues<double>(shape, absl::MakeConstSpan(values));
}

Tensor Integers(const Shape& shape, const std::vector<double>& values, DType dtype) {
  return Rounded(shape, values, dtype);
}

Tensor DrawArg(const Arg& arg, Draws& draws) {
  if (arg.kind == Arg::Kind::kReal) return Doubles(arg.shape, DistinctValues(arg, draws));
  if (arg.kind == Arg::Kind::kFlags) {
    Tensor t(DType::kBool, arg.shape);
    for (int64_t i = 0; i < t.elements(); ++i) t.data<bool>()[i] = draws.Below(2) == 0;
    return t;
  }
  if (!arg.values.empty()) return Integers(arg.shape, arg.values, arg.integers);
  std::vector<double> values(arg.shape.elements());
  for (double& v : values) v = static_cast<double>(draws.Below(static_cast<int64_t>(arg.high)));
  return Integers(arg.shape, values, arg.integers);
}

std::optional<Tensor> DrawArgAs(const Arg& arg, DType dtype, Draws& draws) {
  switch (arg.kind) {
    case Arg::Kind::kOmitted: return Tensor();
    case Arg::Kind::kTrue: return Tensor::Scalar<bool>(true);
    case Arg::Kind::kConstant: return Integers(arg.shape, arg.values, arg.integers);
    case Arg::Kind::kConstantReal: {
      const auto fits = [&](double value) {
        return IsFloating(dtype) || (IsInteger(dtype) && value == std::floor(value) &&
                                     (value >= 0 || !IsUnsigned(dtype)));
      };
      if (!std::all_of(arg.values.begin(), arg.values.end(), fits)) return std::nullopt;
      return Rounded(arg.shape, arg.values, dtype);
    }
    case Arg::Kind::kReal:
      if (!IsFloating(dtype)) return DrawWhole(arg, dtype, draws);
      return Converted(DrawArg(arg, draws), dtype);
    default: return DrawArg(arg, draws);
  }
}

}  // namespace onward
