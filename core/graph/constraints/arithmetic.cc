// SPDX-License-Identifier: Apache-2.0
// Constraints of element-wise operators, products, generators and quantisation.
#include <array>

#include "core/base/division.h"
#include "core/graph/constraints/rules.h"

namespace onward::constraints {
namespace {

// Before version 7, operands were broadcast only where an attribute said along which
// axis.
Rule OldBroadcast() {
  return [](Subject& s) {
    if (s.version < 7) Axis({})(s);
  };
}

void CheckGemm(Subject& s) {
  ExpectRank(s, 0, 2);
  ExpectRank(s, 1, 2);
  const int64_t a = s.Dim(0, s.node.Int("transA", 0) != 0 ? 0 : 1),
                b = s.Dim(1, s.node.Int("transB", 0) != 0 ? 1 : 0);
  if (s.Rank(0) == 2 && s.Rank(1) == 2 && a >= 0 && b >= 0 && a != b) {
    s.Fail("the inner sizes ", a, " and ", b, " differ");
  }
  if (s.version < 7 || s.Rank(2) < 0) return;
  ExpectBroadcast(s, 2, "the bias",
                  {s.Dim(0, s.node.Int("transA", 0) != 0 ? 1 : 0),
                   s.Dim(1, s.node.Int("transB", 0) != 0 ? 0 : 1)});
}

// A scale for the whole tensor, for each slice of an axis, or for each block of it.
void CheckQuantize(Subject& s) {
  InRange("block_size", 0)(s);
  for (const char* type : {"output_dtype", "precision"}) {
    if (s.node.Int(type, 0) != 0) ElementType(type)(s);
  }
  const int rank = s.Rank(0), scales = s.Rank(1);
  const int64_t block = s.node.Int("block_size", 0), axis = s.node.Int("axis", 1);
  const bool whole = scales == 0 || (scales == 1 && s.Dim(1, 0) == 1 && block == 0);
  if (whole || scales < 0) return InRange("axis", -kMaxRank, kMaxRank - 1)(s);
  SameRank(1, 2)(s);
  Axis({.otherwise = 1})(s);
  if (rank < 0 || axis < -rank || axis >= rank) return;
  const int64_t size = s.Dim(0, static_cast<int>(axis));
  if (block > 0) {
    SameRank(0, 1)(s);
    const int64_t blocks = s.Dim(1, static_cast<int>(axis));
    if (scales == rank && size >= 0 && blocks >= 0 && CeilDiv(size, block) != blocks) {
      s.Fail("axis ", axis, " of size ", size, " has ", blocks, " scales for blocks of ", block);
    }
    return;
  }
  ExpectShape(s, 1, "one scale for each slice", {size});
}

// A zero point for the whole matrix, or for each row or column.
void CheckIntegerProduct(Subject& s) {
  RankAtLeast(0, 1)(s);
  RankAtLeast(1, 1)(s);
}

constexpr double kMostElements = 0x1p48;

void CheckRange(Subject& s) {
  for (int input : {0, 1, 2}) Scalar(input)(s);
  std::array<double, 3> number;
  for (int input : {0, 1, 2}) {
    const auto given = s.ConstantNumbers(input);
    if (!given.has_value() || given->size() != 1) return;
    number[input] = (*given)[0];
  }
  const double length = (number[1] - number[0]) / number[2];
  if (number[2] != 0 && length < kMostElements) return;  // neither NaN
  s.Fail("there is no finite range from ", number[0], " to ", number[1], " by ", number[2]);
}

void CheckConstant(Subject& s) {
  int given = 0;
  for (const char* name : {"value", "sparse_value", "value_int", "value_ints", "value_float",
                           "value_floats", "value_string", "value_strings"}) {
    given += s.node.Has(name);
  }
  if (given != 1) s.Fail("has ", given, " attributes with a value, expected one");
}

void CheckConstantOfShape(Subject& s) {
  const Tensor* value = s.node.TensorAttribute("value");
  if (value != nullptr && value->elements() != 1) {
    s.Fail("value has ", value->elements(), " elements, expected one");
  }
  for (int64_t dim : s.Constant(0).value_or(std::vector<int64_t>())) {
    if (dim < 0) return s.Fail("input 0 holds ", dim, ", which is no size");
  }
}

// "ij,jk->ik": letters, at most one "->", and dots in threes.
void CheckEinsum(Subject& s) {
  const std::string equation = s.node.String("equation", "");
  size_t terms = 1, arrows = 0, ellipses = 0;  // the last ones of a term
  for (size_t i = 0; i < equation.size(); ++i) {
    const char c = equation[i];
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (letter || c == ' ') continue;
    if (c == ',' && arrows == 0) {
      ++terms;
      ellipses = 0;
    } else if (equation.compare(i, 3, "...") == 0 && ellipses++ == 0) {
      i += 2;
    } else if (equation.compare(i, 2, "->") == 0 && arrows++ == 0) {
      ++i;
      ellipses = 0;
    } else {
      return s.Fail("equation '", equation.substr(0, 60), "' cannot be read at character ", i);
    }
  }
  if (terms != s.node.inputs.size()) {
    s.Fail("equation '", equation.substr(0, 60), "' has ", terms, " terms for ",
           s.node.inputs.size(), " inputs");
  }
}

Rule Rounding() { return OneOf("round_mode", {"up", "down", "nearest"}); }

}  // namespace

void AddArithmeticRows(Table& table) {
  AddRows(table, {"Abs",         "Acos",
                  "Acosh",       "Asin",
                  "Asinh",       "Atan",
                  "Atanh",       "BitwiseAnd",
                  "BitwiseNot",  "BitwiseOr",
                  "BitwiseXor",  "Ceil",
                  "Celu",        "Clip",
                  "Cos",         "Cosh",
                  "Elu",         "Erf",
                  "Exp",         "Floor",
                  "HardSigmoid", "HardSwish",
                  "IsInf",       "IsNaN",
                  "LeakyRelu",   "Log",
                  "Max",         "Mean",
                  "Min",         "Mish",
                  "Neg",         "Not",
                  "Reciprocal",  "Relu",
                  "Round",       "Selu",
                  "Shrink",      "Sigmoid",
                  "Sign",        "Sin",
                  "Sinh",        "Softplus",
                  "Softsign",    "Sqrt",
                  "Sum",         "SwiGLU",
                  "Swish",       "Tan",
                  "Tanh",        "ThresholdedRelu",
                  "PRelu",       "GreaterOrEqual",
                  "LessOrEqual"},
          {});
  AddRows(table,
          {"Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Equal", "Greater", "Less"},
          {OldBroadcast()});
  AddRows(table, {"Mod"}, {OneOfNumbers("fmod", {0, 1})});
  AddRows(table, {"BitShift"}, {OneOf("direction", {"LEFT", "RIGHT"})});
  AddRows(table, {"Gelu"}, {OneOf("approximate", {"none", "tanh"})});
  AddRows(table, {"MatMul"}, {RankAtLeast(0, 1), RankAtLeast(1, 1)});
  AddRows(table, {"Gemm"}, {CheckGemm});
  AddRows(table, {"MatMulInteger"}, {CheckIntegerProduct});
  AddRows(table, {"QLinearMatMul"}, {RankAtLeast(0, 1), RankAtLeast(3, 1)});
  AddRows(table, {"Einsum"}, {CheckEinsum});
  AddRows(table, {"Det"}, {RankAtLeast(0, 2), [](Subject& s) {
                             const int64_t rows = s.Dim(0, -2), columns = s.Dim(0, -1);
                             if (rows >= 0 && columns >= 0 && rows != columns) {
                               s.Fail("a matrix of ", rows, " x ", columns, " is not square");
                             }
                           }});
  // A number in opset 6 and later; before that, a name.
  AddRows(table, {"Cast"}, {ElementType("to"), Rounding()});
  AddRows(table, {"CastLike"}, {Rounding()});
  AddRows(table, {"BitCast"}, {ElementType("to")});
  AddRows(table, {"RandomNormal", "RandomUniform"},
          {FloatingType("dtype"), EachInRange("shape", 0, int64_t{1} << 48)});
  AddRows(table, {"RandomNormalLike", "RandomUniformLike"}, {FloatingType("dtype")});
  AddRows(table, {"Bernoulli"}, {ElementType("dtype")});
  AddRows(table, {"Multinomial"},
          {RankIs(0, 2), InRange("sample_size", 1), OneOfNumbers("dtype", {6, 7})});
  AddRows(table, {"EyeLike"}, {RankIs(0, 2), ElementType("dtype")});
  AddRows(table, {"Range"}, {CheckRange, FloatingType("stash_type")});
  AddRows(table, {"Constant"}, {CheckConstant});
  AddRows(table, {"ConstantOfShape"}, {CheckConstantOfShape});
  AddRows(table, {"QuantizeLinear"}, {CheckQuantize});
  AddRows(table, {"DequantizeLinear"}, {CheckQuantize});
  AddRows(table, {"DynamicQuantizeLinear"}, {});
}

}  // namespace onward::constraints
