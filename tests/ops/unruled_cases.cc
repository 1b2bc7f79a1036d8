// SPDX-License-Identifier: Apache-2.0
#include "tests/ops/cases.h"

namespace onward {
namespace {

using List = std::vector<int64_t>;

}  // namespace

std::vector<OpCase> UnruledCases() {
  const auto own = [](const char* name, std::vector<Arg> args, Attributes attributes = {}) {
    return Case(name, std::move(args), std::move(attributes)).Own();
  };
  const Attributes window = {{"kernel_shape", List{2, 2}}, {"strides", List{1, 1}}};
  std::vector<OpCase> cases = {
      Case("Ceil", {Real({2, 3})}),
      Case("Floor", {Real({2, 3})}),
      Case("Round", {Real({2, 3})}),
      Case("Sign", {Real({2, 3})}),
      // Rows that fill vectors, and ends that do not.
      Case("Softmax_long", {Real({2, 37})}),
      Case("LogSoftmax_long", {Real({2, 37})}),
      Case("Softmax_short", {Real({2, 21})}),
      Case("LogSoftmax_short", {Real({2, 21})}),
      Case("Exp_long", {Real({2, 37})}),
      Case("Tanh_long", {Real({2, 37})}),
      Case("Sigmoid_long", {Real({2, 37}, -9, 9)}),
      Case("Erf_long", {Real({2, 37}, -5, 5)}),
      Case("Sin_long", {Real({2, 37}, -9, 9)}),
      Case("Cos_long", {Real({2, 37}, -9, 9)}),
      Case("Transpose_plane", {Real({70, 37})}),
      Case("GatherElements_long", {Real({600, 2}), Below({700, 2}, 600)}),
      Case("MaxPool_lines", {Real({1, 2, 6, 37})},
           {{"kernel_shape", List{3, 3}}, {"pads", List{1, 1, 1, 1}}, {"strides", List{2, 2}}}),
      Case("MaxPool_far", {Real({1, 2, 9, 41})},
           {{"dilations", List{2, 3}}, {"kernel_shape", List{4, 5}}, {"strides", List{3, 3}}}),
      Case("MaxPool_dense", {Real({1, 2, 5, 21})},
           {{"kernel_shape", List{2, 2}}, {"pads", List{0, 1, 1, 0}}}),
      Case("MaxPool_volume", {Real({1, 1, 5, 4, 19})},
           {{"kernel_shape", List{3, 2, 4}}, {"pads", List{1, 0, 2, 1, 1, 2}}}),
      Case("MaxPool_beyond", {Real({1, 1, 2, 5000})},
           {{"kernel_shape", List{2, 2}}, {"strides", List{2, 2}}}),
      Case("AveragePool_lines", {Real({1, 2, 6, 37})},
           {{"kernel_shape", List{3, 3}}, {"pads", List{1, 1, 1, 1}}, {"strides", List{2, 2}}}),
      Case("AveragePool_far", {Real({1, 2, 9, 41})},
           {{"count_include_pad", 1},
            {"dilations", List{2, 3}},
            {"kernel_shape", List{4, 5}},
            {"pads", List{2, 3, 1, 4}},
            {"strides", List{3, 3}}}),
      Case("AveragePool_volume", {Real({1, 1, 5, 4, 19})},
           {{"ceil_mode", 1},
            {"kernel_shape", List{3, 2, 4}},
            {"pads", List{1, 0, 2, 1, 1, 2}},
            {"strides", List{2, 2, 2}}}),
      Case("Softmax_columns", {Real({5, 11})}, {{"axis", 0}}),
      Case("ReduceMax_long", {Real({2, 75}), Ints({1})}),
      Case("ReduceMin_long", {Real({75, 9}), Ints({0})}),
      Case("Relu_long", {Real({43})}),
      Case("Clip_long", {Real({43}, -2, 2), Number(-1), Number(1)}),
      Case("Max_long", {Real({43}), Real({43})}),
      Case("Min_long", {Real({43}), Real({43})}),
      Case("GlobalMaxPool_wide", {Real({1, 9, 5, 5})}),
      Case("MaxPool_wide", {Real({1, 9, 6, 6})}, window),
      own("ReluGrad", {Real({2, 3}), Real({2, 3})}),
      own("DetGrad", {Real({2}), Real({2, 3, 3})}),
      own("ClipGrad", {Real({2, 3}), Real({2, 3}), Real({2, 3})}),
      own("GeluGrad", {Real({2, 3}), Real({2, 3})}),
      own("SoftmaxGrad", {Real({2, 3}), Real({2, 3})}),
      own("LogSoftmaxGrad", {Real({2, 3}), Real({2, 3})}),
      own("MaxPoolGrad", {Real({1, 2, 3, 3}), Real({1, 2, 4, 4})}, window),
      own("MaxPoolWinners", {Real({1, 2, 4, 4})}, window).Outputs(2, {0}),
      own("AveragePoolGrad", {Real({1, 2, 3, 3}), Real({1, 2, 4, 4})}, window).By({0}),
      own("GlobalAveragePoolGrad", {Real({1, 2, 1, 1}), Real({1, 2, 3, 3})}).By({0}),
      own("BatchNormalizationGrad", {Real({3, 2, 2}), Real({3, 2, 2}), Real({2})})
          .Outputs(3, {0, 1, 2}),
      own("LayerNormalizationGrad", {Real({3, 4}), Real({3, 4}), Real({4})}).Outputs(3, {0, 1, 2}),
      own("ConvInputGrad", {Real({1, 3, 3, 3}), Real({3, 2, 2, 2}), Real({1, 2, 4, 4})}).By({0, 1}),
      own("ConvWeightGrad", {Real({1, 3, 3, 3}), Real({1, 2, 4, 4}), Real({3, 2, 2, 2})})
          .Outputs(2, {0, 1})
          .By({0, 1}),
      own("GatherGrad", {Real({3, 2}), Fed({3}, {0, 3, 0}), Real({4, 2})}).By({0}),
      own("SoftmaxCrossEntropyLossGrad", {Real({}), Real({3, 4}), Below({3}, 4)}),
      own("NegativeLogLikelihoodLossGrad", {Real({}), Real({3, 4}), Below({3}, 4)}).By({0}),
      own("ScaledDotProductAttentionGrad",
          {Real({1, 1, 3, 2}), Real({1, 1, 3, 2}), Real({1, 1, 3, 2}), Real({1, 1, 3, 2})})
          .Outputs(3, {0, 1, 2}),
      own("SgdStep", {Positive({}), Real({9}), Real({9})}, {{"weight_decay", 0.1}}),
      own("AdamWStep", {Positive({}), Int(3), Real({9}), Real({9}), Real({9}), Positive({9})})
          .Outputs(3, {0, 1, 2}),
  };
  for (OpCase& c : ImageGradientCases()) cases.push_back(std::move(c));
  return cases;
}

}  // namespace onward
