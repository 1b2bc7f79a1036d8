// SPDX-License-Identifier: Apache-2.0
// Rows of operators that have no rule of their own: what gives integers or flags, gradients,
// steps of optimizers, and what the compiler makes. Rows that are there for one kernel.
#include "tests/ops/cases.h"

namespace onward {
namespace {

using List = std::vector<int64_t>;

OpCase Training(const char* name, std::vector<Arg> args, Attributes attributes, int outputs) {
  OpCase c = Case(name, std::move(args), std::move(attributes));
  c.domain = std::string(kTrainingDomain);
  c.outputs = outputs;
  return c;
}

std::vector<OpCase> LogicalCases() {
  std::vector<OpCase> cases = {
      Case("Not", {Flags({2, 3})}),
      Case("Not_long", {Flags({3, 67})}),
      Case("BitwiseNot", {Real({2, 3})}),
      Case("BitShift_left", {Real({2, 3}, 0, 20), Real({3}, 0, 2)}, {{"direction", "LEFT"}}),
      Case("BitShift_right", {Real({2, 3}, 0, 20), Real({3}, 0, 2)}, {{"direction", "RIGHT"}}),
      Case("IsNaN", {Real({2, 3})}),
      Case("IsInf", {Real({2, 3})}),
      Case("ArgMax", {Real({3, 4})}),
      Case("ArgMax_axis", {Real({2, 3, 4})}, {{"axis", 1}, {"keepdims", 0}}),
      Case("ArgMax_last", {Real({3, 9})}, {{"axis", -1}, {"select_last_index", 1}}),
      Case("ArgMin", {Real({3, 4})}),
      Case("ArgMin_axis", {Real({2, 3, 4})}, {{"axis", 1}, {"keepdims", 0}}),
      Case("ArgMin_last", {Real({3, 9})}, {{"axis", -1}, {"select_last_index", 1}}),
      Case("Hardmax", {Real({3, 9})}),
      Case("Hardmax_axis", {Real({2, 3, 4})}, {{"axis", 1}}),
      Case("NonZero", {Real({3, 4})}).DataDependent(),
      Case("NonZero_flags", {Flags({2, 3, 2})}).DataDependent(),
  };
  for (const std::string op : {"And", "Or", "Xor"}) {
    cases.push_back(Case(op, {Flags({2, 3}), Flags({2, 3})}));
    cases.push_back(Case(op + "_broadcast", {Flags({3}), Flags({2, 1})}));
  }
  for (const std::string op : {"BitwiseAnd", "BitwiseOr", "BitwiseXor", "Equal", "Greater",
                               "GreaterOrEqual", "Less", "LessOrEqual"}) {
    cases.push_back(Case(op, {Real({2, 3}), Real({2, 3})}));
    cases.push_back(Case(op + "_broadcast", {Real({3}), Real({2, 1})}));
    cases.push_back(Case(op + "_long", {Real({43}), Real({43})}));
  }
  return cases;
}

std::vector<OpCase> FilledCases() {
  std::vector<OpCase> cases = {
      Case("Shape", {Real({2, 3, 4})}),
      Case("Shape_part", {Real({2, 3, 4})}, {{"end", -1}, {"start", 1}}),
      Case("Size", {Real({2, 3, 4})}),
      Case("Constant", {}, {{"value", Tensor::FromValues<float>({2}, {1.5f, -2})}}),
      Case("ConstantOfShape", {Ints({2, 3})}),
      Case("ConstantOfShape_value", {Ints({2, 3})},
           {{"value", Tensor::FromValues<int32_t>({1}, {7})}}),
      Case("EyeLike", {Real({3, 4})}),
      Case("EyeLike_above", {Real({3, 4})}, {{"k", 1}, {"dtype", Code(DType::kDouble)}}),
      Case("Trilu_filled", {Real({9, 11}), Int(2)}),
      Case("Range_down", {Real({}, 4, 4.3), Number(-3), Number(-1)}).DataDependent(),
      Case("TopK_all", {Real({3, 9}), Ints({9})}).Outputs(2, {0, 1}),
      Case("TopK_long", {Real({2, 201}, -90, 90), Ints({5})}).Outputs(2, {0, 1}),
      Case("TopK_long_smallest", {Real({2, 130, 2}, -90, 90), Ints({33})},
           {{"axis", 1}, {"largest", 0}})
          .Outputs(2, {0, 1}),
      Case("Unique_all", {Real({12}, -1, 1)}).Outputs(4, {0, 1, 2, 3}).DataDependent(),
      Case("Unique_axis", {Real({4, 2}, -0.4, 0.4)}, {{"axis", 0}})
          .Outputs(4, {0, 1, 2, 3})
          .DataDependent(),
      Case("MaxPool_indices", {Real({1, 3, 4, 5})}, {{"kernel_shape", List{2, 2}}})
          .Outputs(2, {0, 1}),
      Case("MaxPool_column_indices", {Real({1, 3, 4, 5})},
           {{"kernel_shape", List{2, 2}}, {"storage_order", 1}})
          .Outputs(2, {0, 1}),
      Case("LayerNormalization_statistics", {Real({3, 9}), Real({9}), Real({9})})
          .Outputs(3, {0, 1, 2}),
      Case("Dropout_mask", {Real({3, 4})}).Outputs(2, {0, 1}),
      Case("Mod_integers", {Real({4, 5}, -4, 4), Real({5}, 0.5, 2)}),
      Case("Mod_negative_integers", {Real({4, 5}, -4, 4), Real({5}, -2, -0.5)}),
      Case("Mod_like_c", {Real({4, 5}, -4, 4), Real({5}, -2, -0.5)}, {{"fmod", 1}}),
      Case("MelWeightMatrix", {Int(8), Int(64), Int(200), Number(2), Number(100)}),
      Case("MelWeightMatrix_double", {Int(3), Int(9), Int(16), Number(0), Number(5)},
           {{"output_datatype", Code(DType::kDouble)}}),
      Case("DFT_lines", {Real({3, 40, 2, 1})}),
      Case("DFT_chirp", {Real({2, 134, 2})}, {{"inverse", 1}}),
      Case("DFT_chirp_real", {Real({2, 68, 2}), Int(134)}, {{"inverse", 1}, {"onesided", 1}}),
      Case("Det_large", {Real({2, 7, 7})}),
      Case("Pow_positive", {Real({2, 3}), Real({2, 3}, 0, 1)}),
  };
  for (const DType to : {DType::kFloat, DType::kDouble, DType::kFloat16, DType::kBFloat16,
                         DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64, DType::kUint8,
                         DType::kUint16, DType::kUint32, DType::kUint64, DType::kBool}) {
    const bool below =
        to == DType::kUint8 || to == DType::kUint16 || to == DType::kUint32 || to == DType::kUint64;
    cases.push_back(Case(std::string("Cast_") + DTypeName(to), {Real({5, 9}, below ? 0 : -9, 9)},
                         {{"to", Code(to)}}));
  }
  cases.push_back(Case("Cast_int64_long", {Real({3, 77}, -90, 90)}, {{"to", Code(DType::kInt64)}}));
  return cases;
}

// Shapes that the kernels of each provider are for.
std::vector<OpCase> ProviderCases() {
  const List around = {1, 1, 1, 1};
  const auto with = [](Attributes attributes, const char* activation) {
    attributes["activation"] = activation;
    if (std::string(activation) == "Clip") {
      attributes["activation_low"] = -0.5f;
      attributes["activation_high"] = 1.5f;
    }
    return attributes;
  };
  return {
      Case("Conv_tiles", {Real({2, 16, 9, 8}), Real({16, 16, 3, 3}), Real({16})},
           {{"pads", around}}),
      Own("ConvInputGrad_tiles", {Real({2, 16, 9, 12}), Real({16, 16, 3, 3}), Real({2, 16, 9, 12})},
          {{"pads", around}}),
      Own("ConvWeightGrad_tiles", {Real({2, 16, 9, 8}), Real({2, 16, 9, 8}), Real({16, 16, 3, 3})},
          {{"pads", around}})
          .Outputs(2, {0, 1}),
      Case("Conv_pixels", {Real({2, 16, 3, 3}), Real({9, 16, 1, 1}), Real({9})}),
      Case("Conv_depthwise_wide", {Real({1, 9, 7, 6}), Real({9, 1, 5, 5})},
           {{"group", 9}, {"pads", List{2, 2, 2, 2}}}),
      Case("Conv_many", {Real({1, 16, 6, 6}), Real({16, 8, 3, 3}), Real({16})},
           {{"group", 2}, {"strides", List{2, 2}}}),
      Case("ConvTranspose_many", {Real({1, 16, 4, 4}), Real({16, 8, 3, 3}), Real({8})},
           {{"strides", List{2, 2}}}),
      Own("FusedConv_tiles",
          {Real({2, 16, 9, 8}), Real({16, 16, 3, 3}), Real({16}), Real({2, 16, 9, 8})},
          with({{"pads", around}}, "Relu")),
      Own("FusedConv_clip", {Real({2, 16, 4, 4}), Real({9, 16, 1, 1}), Real({9})},
          with({}, "Clip")),
      Own("FusedConv_residual",
          {Real({1, 9, 6, 6}), Real({9, 1, 3, 3}), Omitted(), Real({1, 9, 6, 6})},
          {{"group", 9}, {"pads", around}}),
      Own("FusedConv_strides",
          {Real({1, 16, 6, 6}), Real({16, 16, 3, 3}), Real({16}), Real({1, 16, 2, 2})},
          with({{"strides", List{2, 2}}}, "Relu")),
      Own("FusedMatMul", {Real({5, 12}), Real({12, 9}), Real({9}), Real({5, 9})}, with({}, "Relu")),
      Own("FusedMatMul_stack", {Real({2, 5, 12}), Real({2, 12, 9}), Omitted(), Real({2, 5, 9})},
          with({}, "Clip")),
      Own("FusedMatMul_stack_wide",
          {Real({2, 70, 50}), Real({2, 50, 60}), Real({60}), Real({2, 70, 60})}, with({}, "Relu")),
      Own("FusedGemm", {Real({5, 12}), Real({9, 12}), Real({9}), Real({5, 9})},
          with({{"transB", 1}}, "Relu")),
      Own("FusedGemm_clip", {Real({5, 12}), Real({12, 9}), Real({9})}, with({}, "Clip")),
      Own("FusedBatchNormalization",
          {Real({2, 9, 4, 4}), Real({9}), Real({9}), Real({9}), Positive({9}), Real({2, 9, 4, 4})},
          with({}, "Relu")),
      Own("FusedBatchNormalization_training",
          {Real({3, 9, 4, 2}), Real({9}), Real({9}), Real({9}), Positive({9}), Real({3, 9, 4, 2})},
          with({{"training_mode", 1}}, "Clip"))
          .Outputs(3, {0, 1, 2}),
      Own("FusedBatchNormalization_kept",
          {Real({3, 9, 4, 2}), Real({9}), Real({9}), Real({9}), Positive({9})},
          with({{"training_mode", 1}}, "Relu"))
          .Outputs(4, {0, 1, 2, 3}),
      Own("FusedBatchNormalizationGrad",
          {Real({3, 9, 4, 2}), Real({3, 9, 4, 2}), Real({9}), Real({3, 9}, 0.3, 1.3)},
          with({}, "Relu"))
          .Outputs(3, {0, 1, 2}),
      Own("MaxPoolWinners_lanes", {Real({2, 16, 4, 4})},
          {{"kernel_shape", List{2, 2}}, {"strides", List{2, 2}}})
          .Outputs(2, {0, 1}),
      Own("MaxPoolWinners_relu", {Real({1, 16, 5, 5})},
          {{"activation", "Relu"}, {"kernel_shape", List{3, 3}}, {"pads", around}})
          .Outputs(2, {0, 1}),
      Own("MaxPoolWinnersGrad",
          {Real({2, 16, 2, 2}), Below({2, 16, 2, 2}, 4, DType::kUint8), Real({2, 16, 4, 4})},
          {{"kernel_shape", List{2, 2}}, {"strides", List{2, 2}}}),
      Own("MaxPoolWinnersGrad_overlap",
          {Real({1, 9, 3, 3}), Below({1, 16, 3, 3}, 4, DType::kUint8), Real({1, 9, 4, 4})},
          {{"kernel_shape", List{2, 2}}}),
  };
}

std::vector<OpCase> StepCases() {
  const Attributes decay = {{"norm_coefficient", 0.1f}};
  const Arg rows = Fed({4}, {1, 3, 5, 0});
  return {
      Training("Adam", {Positive({}), Int(3), Real({9}), Real({9}), Real({9}), Positive({9})},
               {{"norm_coefficient", 0.1f}, {"norm_coefficient_post", 0.2f}}, 3),
      Training("Adam_first",
               {Positive({}), Int(0), Real({43}), Real({43}), Real({43}), Positive({43})}, {}, 3),
      Training("Adagrad", {Positive({}), Int(3), Real({9}), Real({9}), Positive({9})},
               {{"decay_factor", 0.1f}, {"norm_coefficient", 0.1f}}, 2),
      Training("Momentum", {Positive({}), Int(3), Real({9}), Real({9}), Real({9})},
               {{"alpha", 0.9f}, {"beta", 0.8f}, {"mode", "standard"}, {"norm_coefficient", 0.1f}},
               2),
      Training("Momentum_nesterov", {Positive({}), Int(0), Real({43}), Real({43}), Real({43})},
               {{"alpha", 0.9f}, {"beta", 0.8f}, {"mode", "nesterov"}, {"norm_coefficient", 0.f}},
               2),
      Own("SgdRowsStep", {Positive({}), Real({6, 3}), rows, Real({4, 3})}),
      Own("AdagradRowsStep",
          {Positive({}), Int(3), Real({6, 3}), rows, Real({4, 3}), Positive({6, 3})})
          .Outputs(2, {0, 1}),
      Own("GatherGradRows", {Real({5, 3}), Fed({5}, {1, 4, 1, -2, 0}), Real({6, 3})})
          .Outputs(2, {0, 1}),
  };
}

}  // namespace

std::vector<OpCase> ForwardCases() {
  std::vector<OpCase> cases = UnruledCases();
  for (auto* table : {LogicalCases, FilledCases, ProviderCases, StepCases, QuantizeForwardCases,
                      UnruledImageCases, TextForwardCases, MlForwardCases}) {
    for (OpCase& c : table()) cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace onward
