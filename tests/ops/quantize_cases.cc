// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "tests/ops/cases.h"

namespace onward {
namespace {

using List = std::vector<int64_t>;

constexpr DType kSmallFloats[] = {
    DType::kFloat8E4M3FN, DType::kFloat8E4M3FNUZ, DType::kFloat8E5M2, DType::kFloat8E5M2FNUZ,
    DType::kFloat4E2M1,   DType::kFloat6E2M3,     DType::kFloat6E3M2};
constexpr DType kSmallIntegers[] = {DType::kInt4, DType::kUint4, DType::kInt2, DType::kUint2};

std::string Named(const char* op, DType dtype) { return std::string(op) + "_" + DTypeName(dtype); }

// Steps of three elements: they begin inside of bytes.
void AddScatters(DType type, std::vector<OpCase>& cases) {
  const Arg cache = Fed({2, 3, 3}, {0, 1, 1, 0, 1, 1, 0, 1, 0, 0, 1, 1, 0, 0, 1, 1, 1, 0}, type);
  cases.push_back(Case(Named("TensorScatter", type),
                       {cache, Fed({2, 1, 3}, {1, 1, 0, 0, 1, 0}, type), Fed({2}, {1, 2})}));
  cases.push_back(
      Case(Named("TensorScatter", type) + "_circular",
           {cache, Fed({2, 2, 3}, {1, 1, 0, 0, 1, 0, 1, 1, 1, 0, 0, 0}, type), Fed({2}, {2, 4})},
           {{"mode", "circular"}}));
}

// Odd numbers of elements: they do not fill their last byte.
void AddCasts(std::vector<OpCase>& cases) {
  for (const DType to : kSmallFloats) {
    cases.push_back(Case(Named("Cast", to), {Real({7, 77}, -40, 40)}, {{"to", Code(to)}}));
    cases.push_back(Case(Named("Cast", to) + "_free", {Real({5, 5}, -9, 9)},
                         {{"saturate", 0}, {"to", Code(to)}}));
  }
  cases.push_back(
      Case("Cast_float8e8m0", {Real({3, 7}, 0.1, 30)}, {{"to", Code(DType::kFloat8E8M0)}}));
  for (const DType to : kSmallIntegers) {
    cases.push_back(Case(Named("Cast", to), {Real({7, 77}, -3, 3)}, {{"to", Code(to)}}));
    cases.push_back(Case(Named("Transpose", to),
                         {Fed({3, 5}, {0, 1, 1, 0, 1, 1, 0, 1, 0, 0, 1, 1, 0, 0, 1}, to)}));
    cases.push_back(Case(Named("Pad", to), {Fed({3}, {1, 0, 1}, to), Ints({1, 2})}));
    AddScatters(to, cases);
  }
  for (const DType from : {DType::kFloat8E4M3FN, DType::kFloat8E5M2FNUZ, DType::kFloat4E2M1,
                           DType::kInt4, DType::kUint2}) {
    for (const DType to : {DType::kFloat, DType::kFloat16, DType::kInt64, DType::kBool,
                           DType::kFloat8E5M2, DType::kInt2}) {
      cases.push_back(Case(Named("Cast", from) + "_to_" + DTypeName(to),
                           {Fed({5}, {0, 1, 1, 0, 1}, from)}, {{"to", Code(to)}}));
    }
  }
  AddScatters(DType::kFloat4E2M1, cases);
  cases.push_back(
      Case("BitCast", {Fed({3}, {0, 5, 127}, DType::kUint8)}, {{"to", Code(DType::kInt8)}}));
}

// What else the standard defines for float8.
void AddFloat8(std::vector<OpCase>& cases) {
  for (const DType type :
       {DType::kFloat8E4M3FN, DType::kFloat8E4M3FNUZ, DType::kFloat8E5M2, DType::kFloat8E5M2FNUZ}) {
    const Arg x = Fed({2, 3}, {0, 1, -2, 3, 4, -1}, type);
    const std::string name = std::string("_") + DTypeName(type);
    cases.push_back(Case("IsNaN" + name, {x}));
    cases.push_back(Case("IsInf" + name, {x}));
    cases.push_back(Case("Dropout" + name, {x}));
    cases.push_back(Case("Dropout_mask" + name, {x}).Outputs(2, {0, 1}));
  }
}

void AddLinear(std::vector<OpCase>& cases) {
  const auto x = Real({3, 5, 7}, -9, 9);
  for (const DType to : {DType::kUint8, DType::kInt8, DType::kInt16, DType::kUint16}) {
    const std::string type = DTypeName(to);
    cases.push_back(Case("QuantizeLinear_" + type, {x, Real({}, 0.1, 0.2), Fed({}, {3}, to)}));
    cases.push_back(Case("QuantizeLinear_axis_" + type,
                         {x, Real({5}, 0.01, 0.2), Fed({5}, {0, 1, 7, 3, 9}, to)}));
    cases.push_back(Case("DequantizeLinear_" + type,
                         {Below({3, 5, 7}, 120, to), Real({}, 0.1, 0.2), Fed({}, {3}, to)}));
    cases.push_back(
        Case("DequantizeLinear_last_" + type,
             {Below({3, 5}, 120, to), Real({5}, 0.1, 0.2), Fed({5}, {0, 1, 7, 3, 9}, to)},
             {{"axis", -1}}));
  }
  for (const DType to : kSmallIntegers) {
    const std::string type = DTypeName(to);
    cases.push_back(
        Case("QuantizeLinear_" + type, {x, Real({}, 2, 3)}, {{"output_dtype", Code(to)}}));
    cases.push_back(Case("QuantizeLinear_zero_" + type,
                         {x, Real({3}, 2, 3), Fed({3}, {1, 0, 1}, to)}, {{"axis", 0}}));
    cases.push_back(Case("DequantizeLinear_" + type,
                         {Fed({5}, {0, 1, 1, 0, 1}, to), Real({}, 0.1, 0.2), Fed({}, {1}, to)}));
  }
  for (const DType to : kSmallFloats) {
    const std::string type = DTypeName(to);
    cases.push_back(
        Case("QuantizeLinear_" + type, {x, Real({}, 0.1, 0.2)}, {{"output_dtype", Code(to)}}));
    cases.push_back(
        Case("DequantizeLinear_" + type, {Fed({5}, {0, 1, 1, 0, 1}, to), Real({}, 0.1, 0.2)}));
  }
  const Arg bytes = Below({3, 6, 4}, 250, DType::kUint8);
  for (const int64_t block : {2, 3, 4}) {
    const int64_t blocks = (6 + block - 1) / block;
    const std::string name = "_blocks_of_" + std::to_string(block);
    const Attributes attributes = {{"axis", 1}, {"block_size", block}};
    cases.push_back(Case("QuantizeLinear" + name,
                         {Real({3, 6, 4}, -9, 9), Real({3, blocks, 4}, 0.1, 1),
                          Below({3, blocks, 4}, 9, DType::kInt8)},
                         attributes));
    cases.push_back(
        Case("DequantizeLinear" + name,
             {bytes, Real({3, blocks, 4}, 0.1, 1), Below({3, blocks, 4}, 9, DType::kUint8)},
             attributes));
    cases.push_back(Case("DequantizeLinear_last" + name,
                         {Below({5, 6}, 250, DType::kUint8), Real({5, blocks}, 0.1, 1)},
                         attributes));
  }
  cases.push_back(Case("QuantizeLinear_precision", {x, Real({}, 0.1, 0.2)},
                       {{"precision", Code(DType::kFloat16)}}));
  cases.push_back(Case("DequantizeLinear_half", {bytes, Real({}, 0.1, 0.2)},
                       {{"output_dtype", Code(DType::kFloat16)}}));
  cases.push_back(
      Case("DequantizeLinear_int32", {Below({4}, 1000, DType::kInt32), Real({}, 0.1, 0.2)}));
  cases.push_back(Case("DynamicQuantizeLinear", {Real({5, 41}, -2, 7)}).Outputs(3, {0, 1, 2}));
  cases.push_back(Case("DynamicQuantizeLinear_positive", {Real({41}, 1, 7)}).Outputs(3, {0, 1, 2}));
}

// More rows and columns than the tiles of the product have, and depths that do not fill them.
void AddProducts(std::vector<OpCase>& cases) {
  const Arg u = Below({14, 37}, 256, DType::kUint8), s = Below({14, 37}, 128, DType::kInt8);
  const Arg right_u = Below({37, 45}, 256, DType::kUint8),
            right_s = Below({37, 45}, 128, DType::kInt8);
  const auto zero = [](int64_t value, DType dtype) { return Fed({}, {value}, dtype); };
  struct Pair {
    const char* name;
    Arg a, b;
    DType a_type, b_type;
  };
  for (const Pair& p : {Pair{"uu", u, right_u, DType::kUint8, DType::kUint8},
                        Pair{"us", u, right_s, DType::kUint8, DType::kInt8},
                        Pair{"su", s, right_u, DType::kInt8, DType::kUint8},
                        Pair{"ss", s, right_s, DType::kInt8, DType::kInt8}}) {
    const std::string name = std::string("_") + p.name;
    cases.push_back(
        Case("MatMulInteger" + name, {p.a, p.b, zero(99, p.a_type), zero(70, p.b_type)}));
    cases.push_back(Case("MatMulInteger_no_zeros" + name, {p.a, p.b}));
    cases.push_back(Case("QLinearMatMul" + name,
                         {p.a, Real({}, 0.01, 0.02), zero(99, p.a_type), p.b, Real({}, 0.01, 0.02),
                          zero(70, p.b_type), Real({}, 0.4, 0.5), zero(90, DType::kUint8)}));
  }
  cases.push_back(
      Case("MatMulInteger_lines",
           {Below({2, 3, 5}, 256, DType::kUint8), Below({2, 5, 4}, 128, DType::kInt8),
            Below({2, 3, 1}, 256, DType::kUint8), Below({2, 1, 4}, 128, DType::kInt8)}));
  cases.push_back(Case("MatMulInteger_rows",
                       {Below({3, 5}, 256, DType::kUint8), Below({5, 4}, 256, DType::kUint8),
                        Below({3}, 256, DType::kUint8), Below({4}, 256, DType::kUint8)}));
  cases.push_back(Case("MatMulInteger_vectors",
                       {Below({5}, 256, DType::kUint8), Below({5}, 128, DType::kInt8)}));
  cases.push_back(
      Case("QLinearMatMul_columns",
           {Below({3, 5}, 256, DType::kUint8), Real({}, 0.01, 0.02), zero(120, DType::kUint8),
            Below({5, 4}, 128, DType::kInt8), Real({4}, 0.01, 0.02), Below({4}, 9, DType::kInt8),
            Real({}, 0.4, 0.5), zero(-3, DType::kInt8)}));
}

void AddConvolutions(std::vector<OpCase>& cases) {
  const Arg x = Below({2, 4, 7, 9}, 256, DType::kUint8), s = Below({2, 4, 7, 9}, 128, DType::kInt8);
  const Arg w = Below({14, 4, 3, 3}, 128, DType::kInt8),
            wu = Below({14, 4, 3, 3}, 256, DType::kUint8);
  const Arg x_zero = Fed({}, {101}, DType::kUint8), s_zero = Fed({}, {-7}, DType::kInt8);
  const Attributes plain = {}, around = {{"pads", List{1, 2, 1, 0}}},
                   strided = {{"pads", List{1, 1, 1, 1}}, {"strides", List{2, 3}}},
                   dilated = {{"dilations", List{2, 3}},
                              {"pads", List{2, 0, 1, 3}},
                              {"strides", List{1, 2}}};
  const auto both = [&](const std::string& name, const Arg& data, const Arg& weights,
                        const Arg& zero, DType w_type, const Attributes& attributes) {
    cases.push_back(Case("ConvInteger_" + name, {data, weights, zero}, attributes));
    cases.push_back(Case("ConvInteger_zeros_" + name,
                         {data, weights, zero, Below({weights.shape[0]}, 100, w_type)},
                         attributes));
    cases.push_back(
        Case("QLinearConv_" + name,
             {data, Real({}, 0.01, 0.02), zero, weights, Real({weights.shape[0]}, 0.01, 0.02),
              Fed({}, {0}, w_type), Real({}, 0.4, 0.5), Fed({}, {90}, DType::kUint8),
              Below({weights.shape[0]}, 1000, DType::kInt32)},
             attributes));
  };
  both("valid", x, w, x_zero, DType::kInt8, plain);
  both("pads", x, w, x_zero, DType::kInt8, around);
  both("strides", x, wu, x_zero, DType::kUint8, strided);
  both("dilations", s, w, s_zero, DType::kInt8, dilated);
  both("same", s, wu, s_zero, DType::kUint8, {{"auto_pad", "SAME_UPPER"}, {"strides", List{2, 2}}});
  both("points", x, Below({5, 4, 1, 1}, 128, DType::kInt8), x_zero, DType::kInt8, plain);
  // Several stretches of panels, with gaps between the rows and without.
  const Arg large = Below({2, 3, 20, 19}, 256, DType::kUint8);
  both("large", large, Below({13, 3, 3, 3}, 128, DType::kInt8), x_zero, DType::kInt8, around);
  both("large_points", large, Below({13, 3, 1, 1}, 128, DType::kInt8), x_zero, DType::kInt8, plain);
  both("depthwise", x, Below({4, 1, 3, 3}, 128, DType::kInt8), x_zero, DType::kInt8,
       {{"group", 4}, {"pads", List{1, 1, 1, 1}}});
  for (const int64_t stride : {1, 2}) {
    both("depthwise_lines_" + std::to_string(stride), Below({2, 3, 6, 45}, 256, DType::kUint8),
         Below({3, 1, 3, 3}, 128, DType::kInt8), x_zero, DType::kInt8,
         {{"group", 3}, {"pads", List{1, 1, 1, 1}}, {"strides", List{stride, stride}}});
  }
  struct Depthwise {
    const char* name;
    Shape x, w;
    Attributes attributes;
  };
  for (const Depthwise& d : std::vector<Depthwise>{
           {"seven", {1, 2, 14, 14}, {2, 1, 3, 3}, {{"strides", List{2, 2}}}},
           {"fourteen", {1, 2, 5, 28}, {2, 1, 3, 2}, {{"strides", List{3, 2}}}},
           {"long", {1, 1, 3, 1200}, {1, 1, 3, 3}, {{"strides", List{1, 2}}}},
           {"tall", {1, 1, 90, 21}, {1, 1, 3, 3}, {}},
           {"five", {2, 3, 9, 37}, {3, 1, 5, 5}, {{"strides", List{2, 2}}}},
           {"holes",
            {1, 3, 9, 40},
            {3, 1, 2, 3},
            {{"strides", List{2, 2}}, {"dilations", List{3, 1}}}},
           {"gaps",
            {1, 3, 9, 40},
            {3, 1, 3, 3},
            {{"strides", List{2, 2}}, {"dilations", List{1, 2}}}},
           {"pairs", {1, 6, 8, 19}, {3, 2, 3, 3}, {{"strides", List{2, 2}}}},
           {"line", {1, 3, 50}, {3, 1, 4}, {{"strides", List{2}}}},
       }) {
    for (const bool padded : {false, true}) {
      Attributes attributes = d.attributes;
      attributes["group"] = d.w[0];
      if (padded) attributes["auto_pad"] = "SAME_LOWER";
      const std::string name = std::string("depthwise_") + d.name + (padded ? "_padded" : "");
      both(name, Below(d.x, 128, DType::kInt8), Below(d.w, 256, DType::kUint8), s_zero,
           DType::kUint8, attributes);
    }
  }
  both("groups", x, Below({6, 2, 3, 3}, 128, DType::kInt8), x_zero, DType::kInt8,
       {{"group", 2}, {"strides", List{2, 1}}});
  both("line", Below({1, 3, 50}, 256, DType::kUint8), Below({2, 3, 4}, 128, DType::kInt8), x_zero,
       DType::kInt8, {{"strides", List{3}}});
  both("space", Below({1, 2, 4, 5, 3}, 256, DType::kUint8),
       Below({3, 2, 2, 2, 2}, 128, DType::kInt8), x_zero, DType::kInt8,
       {{"pads", List{1, 0, 0, 0, 1, 1}}});
}

}  // namespace

std::vector<OpCase> QuantizeCases() { return {}; }

std::vector<OpCase> QuantizeForwardCases() {
  std::vector<OpCase> cases;
  AddCasts(cases);
  AddFloat8(cases);
  AddLinear(cases);
  AddProducts(cases);
  AddConvolutions(cases);
  return cases;
}

}  // namespace onward
