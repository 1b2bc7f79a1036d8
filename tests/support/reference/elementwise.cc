// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>

#include "tests/support/reference/evaluate.h"
#include "tests/support/reference/small.h"

namespace onward::reference {
namespace {

constexpr Number kPi = 3.14159265358979323846264338327950288L;

bool IsFloat(const Array& a) { return IsFloating(a.dtype); }

Number Logistic(Number x) { return 1 / (1 + std::exp(-x)); }

// The larger of two; NaN if one is.
Number Larger(Number a, Number b) { return std::isnan(a) || a > b ? a : b; }
Number Smaller(Number a, Number b) { return std::isnan(a) || a < b ? a : b; }

// To the nearest, halves to even.
Number Rounded(Number x) {
  const Number below = std::floor(x), rest = x - below;
  if (rest != 0.5L) return rest < 0.5L ? below : below + 1;
  return std::fmod(below, 2) == 0 ? below : below + 1;
}

template <typename F>
Arrays Map(const Call& c, DType dtype, F f) {
  Array y(dtype, c.in[0].shape);
  for (size_t i = 0; i < y.values.size(); ++i) y.values[i] = f(c.in[0].values[i]);
  return {y};
}

// A function of one number.
template <Number (*F)(Number)>
Arrays Unary(const Call& c) {
  return Map(c, c.in[0].dtype, F);
}

// A function of one number and attributes.
template <Number (*F)(Number, const Node&)>
Arrays UnaryWith(const Call& c) {
  return Map(c, c.in[0].dtype, [&](Number x) { return F(x, c.node); });
}

template <bool (*F)(Number)>
Arrays Predicate(const Call& c) {
  return Map(c, DType::kBool, [](Number x) { return static_cast<Number>(F(x)); });
}

template <typename F>
Array Zip(DType dtype, const Array& a, const Array& b, F f) {
  return Make(dtype, Broadcast(a.shape, b.shape),
              [&](const Index& at) { return f(a.Broadcast(at), b.Broadcast(at)); });
}

template <Number (*F)(Number, Number)>
Arrays Binary(const Call& c) {
  return {Zip(c.in[0].dtype, c.in[0], c.in[1], F)};
}

template <bool (*F)(Number, Number)>
Arrays Compare(const Call& c) {
  return {Zip(DType::kBool, c.in[0], c.in[1],
              [](Number a, Number b) { return static_cast<Number>(F(a, b)); })};
}

template <uint64_t (*F)(uint64_t, uint64_t)>
Arrays Bitwise(const Call& c) {
  return {Zip(c.in[0].dtype, c.in[0], c.in[1], [](Number a, Number b) {
    const auto bits = [](Number v) {
      return v < 0 ? static_cast<uint64_t>(static_cast<int64_t>(v)) : static_cast<uint64_t>(v);
    };
    return static_cast<Number>(F(bits(a), bits(b)));
  })};
}

template <Number (*F)(Number, Number)>
Arrays Fold(const Call& c) {
  Array y = c.in[0];
  for (size_t i = 1; i < c.in.size(); ++i) y = Zip(y.dtype, y, c.in[i], F);
  return {y};
}

Number Plus(Number a, Number b) { return a + b; }

Arrays Mean(const Call& c) {
  Arrays y = Fold<Plus>(c);
  for (Number& v : y[0].values) v /= static_cast<Number>(c.in.size());
  return y;
}

Arrays Div(const Call& c) {
  const bool integers = !IsFloat(c.in[0]);
  return {Zip(c.in[0].dtype, c.in[0], c.in[1], [&](Number a, Number b) {
    if (integers && b == 0) throw NotDefined("an integer divided by zero");
    return integers ? std::trunc(a / b) : a / b;
  })};
}

Arrays Mod(const Call& c) {
  const bool like_c = c.node.Int("fmod", 0) != 0;
  return {Zip(c.in[0].dtype, c.in[0], c.in[1], [&](Number a, Number b) {
    if (!IsFloat(c.in[0]) && b == 0) throw NotDefined("an integer modulo zero");
    const Number rest = std::fmod(a, b);
    return like_c || rest == 0 || (rest < 0) == (b < 0) ? rest : rest + b;
  })};
}

Arrays Pow(const Call& c) {
  return {Zip(c.in[0].dtype, c.in[0], c.in[1], [&](Number a, Number b) {
    if (!IsFloat(c.in[0]) && b < 0) throw NotDefined("an integer to a negative power");
    return std::pow(a, b);
  })};
}

Arrays PRelu(const Call& c) {
  return {Make(c.in[0].dtype, c.in[0].shape, [&](const Index& at) {
    const Number x = c.in[0][at];
    return x < 0 ? x * c.in[1].Broadcast(at) : x;
  })};
}

Arrays Clip(const Call& c) {
  return Map(c, c.in[0].dtype, [&](Number x) {
    if (c.Has(1)) x = Larger(x, c.in[1].values[0]);
    return c.Has(2) ? Smaller(x, c.in[2].values[0]) : x;
  });
}

Arrays Where(const Call& c) {
  const Shape shape = Broadcast(c.in[0].shape, Broadcast(c.in[1].shape, c.in[2].shape));
  return {Make(c.in[1].dtype, shape, [&](const Index& at) {
    return c.in[c.in[0].Broadcast(at) != 0 ? 1 : 2].Broadcast(at);
  })};
}

Arrays BitShift(const Call& c) {
  const bool left = c.node.String("direction", "") == "LEFT";
  const int bits = DTypeBits(c.in[0].dtype);
  return {Zip(c.in[0].dtype, c.in[0], c.in[1], [&](Number a, Number b) {
    if (a < 0 || b < 0 || b >= bits) throw NotDefined("a shift of or by something negative");
    return left ? std::ldexp(a, static_cast<int>(b))
                : std::floor(std::ldexp(a, -static_cast<int>(b)));
  })};
}

Arrays IsInf(const Call& c) {
  const bool down = c.node.Int("detect_negative", 1) != 0;
  const bool up = c.node.Int("detect_positive", 1) != 0;
  return Map(c, DType::kBool,
             [&](Number x) { return static_cast<Number>(std::isinf(x) && (x < 0 ? down : up)); });
}

Array CastTo(const Array& x, DType to, bool saturate = true) {
  Array y = x;
  y.dtype = to;
  for (Number& v : y.values) {
    const Number before = v;
    if (IsSmallType(to)) v = ToSmall(to, v, saturate);
    const bool whole = IsSmallType(to) && !std::isnan(v) && v == before;
    if (IsSmallType(to) && x.dtype == DType::kString && !whole)
      throw NotDefined("beyond the range");
    if (to == DType::kBool) v = v != 0;
    if (IsInteger(to)) v = std::trunc(v);
  }
  return y;
}

Arrays Cast(const Call& c) {
  return {CastTo(c.in[0], static_cast<DType>(c.node.Int("to", 0)), c.node.Int("saturate", 1) != 0)};
}
// Between signed and unsigned integers of one width: the only pairs that numbers can tell.
Arrays BitCast(const Call& c) {
  Array y = c.in[0];
  y.dtype = static_cast<DType>(c.node.Int("to", 0));
  if (!IsInteger(y.dtype) || DTypeBits(y.dtype) != DTypeBits(c.in[0].dtype) ||
      !IsInteger(c.in[0].dtype)) {
    throw NotDefined("other bits");
  }
  return {y};
}
Arrays CastLike(const Call& c) { return {CastTo(c.in[0], c.in[1].dtype)}; }
Arrays Identity(const Call& c) { return {c.in[0]}; }

// Without random numbers: outside of training nothing is dropped.
Arrays Dropout(const Call& c) {
  const bool training = c.Has(2) && c.in[2].values[0] != 0;
  if (training && c.Has(1) && c.in[1].values[0] != 0) throw NotDefined("random numbers");
  Array mask(DType::kBool, c.in[0].shape);
  for (Number& v : mask.values) v = 1;
  return {c.in[0], mask};
}

Number Neg(Number x) { return -x; }
Number Abs(Number x) { return std::fabs(x); }
Number Sign(Number x) { return x > 0 ? 1 : x < 0 ? -1 : x; }
Number Reciprocal(Number x) { return 1 / x; }
Number BitwiseNot(Number x) { return -1 - x; }
Number Relu(Number x) { return Larger(0, x); }
Number Softplus(Number x) { return std::log1p(std::exp(x)); }
Number Softsign(Number x) { return x / (1 + std::fabs(x)); }
Number Mish(Number x) { return x * std::tanh(Softplus(x)); }
Number HardSwish(Number x) { return x * Larger(0, Smaller(1, x / 6 + 0.5L)); }

Number LeakyRelu(Number x, const Node& n) { return x < 0 ? x * n.Float("alpha", 0.01f) : x; }
Number ThresholdedRelu(Number x, const Node& n) { return x > n.Float("alpha", 1) ? x : 0; }
Number Elu(Number x, const Node& n) { return x < 0 ? n.Float("alpha", 1) * std::expm1(x) : x; }
Number Celu(Number x, const Node& n) {
  const Number alpha = n.Float("alpha", 1);
  return x < 0 ? alpha * std::expm1(x / alpha) : x;
}
Number Selu(Number x, const Node& n) {
  const Number alpha = n.Float("alpha", 1.67326319217681884765625f);
  return n.Float("gamma", 1.05070102214813232421875f) * (x > 0 ? x : alpha * std::expm1(x));
}
Number HardSigmoid(Number x, const Node& n) {
  return Larger(0, Smaller(1, x * n.Float("alpha", 0.2f) + n.Float("beta", 0.5f)));
}
Number Swish(Number x, const Node& n) { return x * Logistic(n.Float("alpha", 1) * x); }
Number Gelu(Number x, const Node& n) {
  if (n.String("approximate", "none") != "tanh") {
    return x * (1 + std::erf(x / std::sqrt(Number{2}))) / 2;
  }
  return x * (1 + std::tanh(std::sqrt(2 / kPi) * (x + 0.044715L * x * x * x))) / 2;
}
Number Shrink(Number x, const Node& n) {
  const Number lambd = n.Float("lambd", 0.5f), bias = n.Float("bias", 0);
  return x < -lambd ? x + bias : x > lambd ? x - bias : 0;
}

Number Minus(Number a, Number b) { return a - b; }
Number Times(Number a, Number b) { return a * b; }
bool IsNaN(Number x) { return std::isnan(x); }
bool Not(Number x) { return x == 0; }
bool Equal(Number a, Number b) { return a == b; }
bool Greater(Number a, Number b) { return a > b; }
bool GreaterOrEqual(Number a, Number b) { return a >= b; }
bool Less(Number a, Number b) { return a < b; }
bool LessOrEqual(Number a, Number b) { return a <= b; }
bool And(Number a, Number b) { return a != 0 && b != 0; }
bool Or(Number a, Number b) { return a != 0 || b != 0; }
bool Xor(Number a, Number b) { return (a != 0) != (b != 0); }
uint64_t BitAnd(uint64_t a, uint64_t b) { return a & b; }
uint64_t BitOr(uint64_t a, uint64_t b) { return a | b; }
uint64_t BitXor(uint64_t a, uint64_t b) { return a ^ b; }

Number Exp(Number x) { return std::exp(x); }
Number Log(Number x) { return std::log(x); }
Number Sqrt(Number x) { return std::sqrt(x); }
Number Erf(Number x) { return std::erf(x); }
Number Sin(Number x) { return std::sin(x); }
Number Cos(Number x) { return std::cos(x); }
Number Tan(Number x) { return std::tan(x); }
Number Asin(Number x) { return std::asin(x); }
Number Acos(Number x) { return std::acos(x); }
Number Atan(Number x) { return std::atan(x); }
Number Sinh(Number x) { return std::sinh(x); }
Number Cosh(Number x) { return std::cosh(x); }
Number Tanh(Number x) { return std::tanh(x); }
Number Asinh(Number x) { return std::asinh(x); }
Number Acosh(Number x) { return std::acosh(x); }
Number Atanh(Number x) { return std::atanh(x); }
Number Floor(Number x) { return std::floor(x); }
Number Ceil(Number x) { return std::ceil(x); }

}  // namespace

const Table& ElementwiseTable() {
  static const auto* const table = new Table{
      {"Neg", Unary<Neg>},
      {"Abs", Unary<Abs>},
      {"Sign", Unary<Sign>},
      {"Reciprocal", Unary<Reciprocal>},
      {"Sqrt", Unary<Sqrt>},
      {"Floor", Unary<Floor>},
      {"Ceil", Unary<Ceil>},
      {"Round", Unary<Rounded>},
      {"Exp", Unary<Exp>},
      {"Log", Unary<Log>},
      {"Erf", Unary<Erf>},
      {"Sin", Unary<Sin>},
      {"Cos", Unary<Cos>},
      {"Tan", Unary<Tan>},
      {"Asin", Unary<Asin>},
      {"Acos", Unary<Acos>},
      {"Atan", Unary<Atan>},
      {"Sinh", Unary<Sinh>},
      {"Cosh", Unary<Cosh>},
      {"Tanh", Unary<Tanh>},
      {"Asinh", Unary<Asinh>},
      {"Acosh", Unary<Acosh>},
      {"Atanh", Unary<Atanh>},
      {"BitwiseNot", Unary<BitwiseNot>},
      {"Relu", Unary<Relu>},
      {"Sigmoid", Unary<Logistic>},
      {"Softplus", Unary<Softplus>},
      {"Softsign", Unary<Softsign>},
      {"Mish", Unary<Mish>},
      {"HardSwish", Unary<HardSwish>},
      {"LeakyRelu", UnaryWith<LeakyRelu>},
      {"ThresholdedRelu", UnaryWith<ThresholdedRelu>},
      {"Elu", UnaryWith<Elu>},
      {"Celu", UnaryWith<Celu>},
      {"Selu", UnaryWith<Selu>},
      {"HardSigmoid", UnaryWith<HardSigmoid>},
      {"Swish", UnaryWith<Swish>},
      {"Gelu", UnaryWith<Gelu>},
      {"Shrink", UnaryWith<Shrink>},
      {"Not", Predicate<Not>},
      {"IsNaN", Predicate<IsNaN>},
      {"IsInf", IsInf},
      {"Add", Binary<Plus>},
      {"Sub", Binary<Minus>},
      {"Mul", Binary<Times>},
      {"Div", Div},
      {"Mod", Mod},
      {"Pow", Pow},
      {"PRelu", PRelu},
      {"Clip", Clip},
      {"Where", Where},
      {"Max", Fold<Larger>},
      {"Min", Fold<Smaller>},
      {"Sum", Fold<Plus>},
      {"Mean", Mean},
      {"Equal", Compare<Equal>},
      {"Greater", Compare<Greater>},
      {"GreaterOrEqual", Compare<GreaterOrEqual>},
      {"Less", Compare<Less>},
      {"LessOrEqual", Compare<LessOrEqual>},
      {"And", Compare<And>},
      {"Or", Compare<Or>},
      {"Xor", Compare<Xor>},
      {"BitwiseAnd", Bitwise<BitAnd>},
      {"BitwiseOr", Bitwise<BitOr>},
      {"BitwiseXor", Bitwise<BitXor>},
      {"BitShift", BitShift},
      {"Cast", Cast},
      {"CastLike", CastLike},
      {"BitCast", BitCast},
      {"Identity", Identity},
      {"Dropout", Dropout},
  };
  return *table;
}

}  // namespace onward::reference
