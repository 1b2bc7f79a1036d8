// SPDX-License-Identifier: Apache-2.0
// Quantization. Quotients and rescaled sums are rounded to float before they are rounded to
// integers, as the standard has it: only so are halves the same halves.
#include <algorithm>
#include <cmath>

#include "tests/support/reference/evaluate.h"
#include "tests/support/reference/small.h"

namespace onward::reference {
namespace {

// The parameter of an element: of a scalar, a vector along the axis, or blocks of the axis.
Number ParameterAt(const Call& c, const Array& parameter, const Index& at) {
  if (parameter.size() == 1) return parameter.values[0];
  const int axis = Axis(c.node.Int("axis", 1), c.in[0].rank());
  const int64_t block = c.node.Int("block_size", 0);
  if (block == 0) return parameter.values[at[axis]];
  return parameter[With(at, axis, at[axis] / block)];
}

Number Quotient(DType precision, DType x_type, Number x, Number scale) {
  if (precision == DType::kFloat16) {
    return Float16(static_cast<float>(Float16(static_cast<float>(x))) /
                   static_cast<float>(Float16(static_cast<float>(scale))));
  }
  if (precision == DType::kBFloat16) {
    return BFloat16(static_cast<float>(BFloat16(static_cast<float>(x))) /
                    static_cast<float>(BFloat16(static_cast<float>(scale))));
  }
  if (x_type == DType::kInt32) return static_cast<double>(x) / static_cast<double>(scale);
  return static_cast<float>(x) / static_cast<float>(scale);
}

Number Saturated(DType dtype, Number value) {
  const int bits = DTypeBits(dtype);
  const bool is_signed = dtype == DType::kInt2 || dtype == DType::kInt4 || dtype == DType::kInt8 ||
                         dtype == DType::kInt16;
  const Number low = is_signed ? -std::ldexp(Number{1}, bits - 1) : 0;
  const Number high = std::ldexp(Number{1}, is_signed ? bits - 1 : bits) - 1;
  return std::isnan(value) ? low : std::clamp(value, low, high);
}

bool IsWholeType(DType dtype) {
  return IsInteger(dtype) || dtype == DType::kInt4 || dtype == DType::kUint4 ||
         dtype == DType::kInt2 || dtype == DType::kUint2;
}

Arrays QuantizeLinear(const Call& c) {
  const int64_t stated = c.node.Int("output_dtype", 0);
  DType to = stated == 0 ? DType::kUint8 : static_cast<DType>(stated);
  if (c.Has(2)) to = c.in[2].dtype;
  const int64_t given = c.node.Int("precision", 0);
  const DType precision = given == 0 ? c.in[1].dtype : static_cast<DType>(given);
  return {Make(to, c.in[0].shape, [&](const Index& at) {
    const Number q = Quotient(precision, c.in[0].dtype, c.in[0][at], ParameterAt(c, c.in[1], at));
    const Number zero = c.Has(2) ? ParameterAt(c, c.in[2], at) : 0;
    if (IsWholeType(to)) return Saturated(to, std::nearbyint(q) + zero);
    return ToSmall(to, q + zero, c.node.Int("saturate", 1) != 0);
  })};
}

Arrays DequantizeLinear(const Call& c) {
  const int64_t stated = c.node.Int("output_dtype", 0);
  const DType to = stated == 0 ? c.in[1].dtype : static_cast<DType>(stated);
  return {Make(to, c.in[0].shape, [&](const Index& at) {
    const Number zero = c.Has(2) ? ParameterAt(c, c.in[2], at) : 0;
    return (c.in[0][at] - zero) * ParameterAt(c, c.in[1], at);
  })};
}

Arrays DynamicQuantizeLinear(const Call& c) {
  const Array& x = c.in[0];
  float low = 0, high = 0;
  for (const Number v : x.values) {
    low = std::min(low, static_cast<float>(v));
    high = std::max(high, static_cast<float>(v));
  }
  const float scale = (high - low) / 255;
  Array scales(DType::kFloat, {}), zeros(DType::kUint8, {});
  scales.values = {scale};
  zeros.values = {Saturated(DType::kUint8, std::nearbyint(-low / scale))};
  Array y = Make(DType::kUint8, x.shape, [&](const Index& at) {
    const Number q = std::nearbyint(static_cast<float>(x[at]) / scale);
    return Saturated(DType::kUint8, q + zeros.values[0]);
  });
  return {y, scales, zeros};
}

// x - zero, where the zero point goes along `axis` if it is a vector.
Array Without(const Array& x, const Array* zero, int axis) {
  Array y = Make(DType::kInt32, x.shape, [&](const Index& at) {
    if (zero == nullptr) return x[at];
    if (zero->size() == 1) return x[at] - zero->values[0];
    return x[at] - (zero->rank() == 1 ? zero->values[at[axis]] : zero->Broadcast(at));
  });
  return y;
}

Array Apply(const char* op, const Call& c, const Array& a, const Array& b) {
  Node node = c.node;
  node.op_type = op;
  return Evaluate(node, {a, b})[0];
}

const Array* Optional(const Call& c, size_t i) { return c.Has(i) ? &c.in[i] : nullptr; }

Array Product(const Call& c, int a, int b, int a_zero, int b_zero) {
  const int rank_a = c.in[a].rank(), rank_b = c.in[b].rank();
  return Apply("MatMul", c, Without(c.in[a], Optional(c, a_zero), std::max(rank_a - 2, 0)),
               Without(c.in[b], Optional(c, b_zero), rank_b - 1));
}

Array Convolution(const Call& c, int x, int w, int x_zero, int w_zero) {
  return Apply("Conv", c, Without(c.in[x], Optional(c, x_zero), 0),
               Without(c.in[w], Optional(c, w_zero), 0));
}

// Scales of sums: of x, of w along `axis` of the result, of y.
Arrays Rescaled(const Call& c, const Array& sums, int axis) {
  const Array &xs = c.in[1], &ws = c.in[4], &zero = c.in[7];
  const auto y_scale = static_cast<float>(c.in[6].values[0]);
  return {Make(zero.dtype, sums.shape, [&](const Index& at) {
    const auto w_scale = static_cast<float>(ws.values[ws.size() == 1 ? 0 : at[axis]]);
    const float scale = static_cast<float>(xs.values[0]) * w_scale / y_scale;
    const float rescaled = static_cast<float>(sums[at]) * scale;
    return Saturated(zero.dtype, std::nearbyint(rescaled) + zero.values[0]);
  })};
}

Arrays MatMulInteger(const Call& c) { return {Product(c, 0, 1, 2, 3)}; }
Arrays ConvInteger(const Call& c) { return {Convolution(c, 0, 1, 2, 3)}; }

Arrays QLinearMatMul(const Call& c) {
  const Array sums = Product(c, 0, 3, 2, 5);
  return Rescaled(c, sums, sums.rank() - 1);
}

Arrays QLinearConv(const Call& c) {
  Array sums = Convolution(c, 0, 3, 2, 5);
  if (c.Has(8)) {
    sums = Make(sums.dtype, sums.shape,
                [&](const Index& at) { return sums[at] + c.in[8].values[at[1]]; });
  }
  return Rescaled(c, sums, 1);
}

}  // namespace

const Table& QuantizeTable() {
  static const auto* const table = new Table{
      {"QuantizeLinear", QuantizeLinear},
      {"DequantizeLinear", DequantizeLinear},
      {"DynamicQuantizeLinear", DynamicQuantizeLinear},
      {"MatMulInteger", MatMulInteger},
      {"QLinearMatMul", QLinearMatMul},
      {"ConvInteger", ConvInteger},
      {"QLinearConv", QLinearConv},
  };
  return *table;
}

}  // namespace onward::reference
