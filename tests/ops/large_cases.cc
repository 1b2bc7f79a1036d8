// SPDX-License-Identifier: Apache-2.0
// Rows that are as large as it takes for kernels to cut up their work: sums in pieces, keys that
// are sorted, lines in tiles, more rows than a block has.
#include "tests/ops/cases.h"

namespace onward {
namespace {

Attributes Reduced(const char* reduction) { return {{"reduction", reduction}}; }

}  // namespace

std::vector<OpCase> LargeCases() {
  return {
      Case("ReduceSum_pieces", {Real({3, 8200}), Ints({1})}),
      Case("ReduceSum_columns", {Real({8200, 3}), Ints({0})}),
      Case("ReduceMax_pieces", {Real({8200}), Ints({0})}),
      Case("ReduceLogSumExp_pieces", {Real({2, 8200}), Ints({1})}),
      Case("ReduceMean_many", {Real({3, 5, 7, 11}), Ints({1, 3})}),
      Case("ReduceSum_rows", {Real({700, 6}), Ints({1})}),
      Case("ArgMax_many", {Real({90, 33})}, {{"axis", 1}}),
      Case("ArgMin_columns", {Real({33, 90})}, {{"axis", 0}}),
      Case("CumSum_tiles", {Real({3, 300}), Int(1)}),
      Case("CumSum_tiles_back", {Real({300, 2}), Int(0)}, {{"exclusive", 1}, {"reverse", 1}}),
      Case("Softmax_wide", {Real({3, 700})}),
      Case("LogSoftmax_wide", {Real({2, 300})}),
      Case("LayerNormalization_wide", {Real({3, 600}), Real({600}), Real({600})}),
      Own("LayerNormalizationGrad_pieces", {Real({200, 40}), Real({200, 40}), Real({40})})
          .Outputs(3, {0, 1, 2}),
      Case("BatchNormalization_pieces",
           {Real({5, 2, 30, 32}), Real({2}), Real({2}), Real({2}), Positive({2})},
           {{"training_mode", 1}})
          .Outputs(3, {0, 1, 2}),
      Case("BatchNormalization_rows",
           {Real({300, 41}), Real({41}), Real({41}), Real({41}), Positive({41})},
           {{"training_mode", 1}})
          .Outputs(3, {0, 1, 2}),
      Own("BatchNormalizationGrad_pieces", {Real({5, 2, 30, 32}), Real({5, 2, 30, 32}), Real({2})})
          .Outputs(3, {0, 1, 2}),
      Case("SoftmaxCrossEntropyLoss_pieces", {Real({2100, 3}), Below({2100}, 3)}),
      Case("NegativeLogLikelihoodLoss_pieces",
           {Real({2, 3, 1100}), Below({2, 1100}, 3), Real({3})}),
      Own("SoftmaxCrossEntropyLossGrad_pieces", {Real({}), Real({2100, 3}), Below({2100}, 3)}),
      Own("GatherGrad_sorted", {Real({500, 3}), Below({500}, 300), Real({300, 3})}),
      Own("GatherGrad_inner", {Real({2, 70, 3}), Below({70}, 9), Real({2, 9, 3})}, {{"axis", 1}}),
      Case("ScatterElements_sorted", {Real({70}), Below({90}, 70), Real({90})}, Reduced("min")),
      Case("ScatterElements_last", {Real({70}), Below({90}, 70), Real({90})}),
      Case("ScatterND_sorted", {Real({300, 2}), Below({600, 1}, 300), Real({600, 2})},
           Reduced("max")),
      Case("TopK_few", {Real({3, 600}), Ints({7})}).Outputs(2, {0, 1}),
      Case("TopK_smallest", {Real({600, 2}), Ints({5})}, {{"axis", 0}, {"largest", 0}})
          .Outputs(2, {0, 1}),
      Case("MatMul_stacks", {Real({3, 2, 35, 47}), Real({3, 1, 47, 90})}),
      Case("Einsum_stacks", {Real({5, 40, 33}), Real({5, 48, 33})}, {{"equation", "bij,bkj->kbi"}}),
      Case("LSTM_wide", {Real({3, 13, 9}), Real({1, 160, 9}), Real({1, 160, 40})},
           {{"hidden_size", 40}})
          .Outputs(3, {0, 1, 2}),
      Case("GRU_wide", {Real({3, 13, 9}), Real({1, 120, 9}), Real({1, 120, 40})},
           {{"hidden_size", 40}})
          .Outputs(2, {0, 1}),
      Case("RNN_wide", {Real({3, 13, 9}), Real({1, 40, 9}), Real({1, 40, 40})},
           {{"hidden_size", 40}})
          .Outputs(2, {0, 1}),
      Case("Attention_tiles", {Real({2, 4, 19, 40}), Real({2, 2, 70, 40}), Real({2, 2, 70, 33})}),
      Case("Attention_causal_tiles",
           {Real({1, 2, 70, 33}), Real({1, 1, 70, 33}), Real({1, 1, 70, 40}), Flags({70, 70})},
           {{"is_causal", 1}}),
  };
}

std::vector<OpCase> LargeFunctionCases() {
  return {
      Own("ScaledDotProductAttention_tiles",
          {Real({2, 2, 19, 40}), Real({2, 2, 70, 40}), Real({2, 2, 70, 33}), Real({1, 19, 70})},
          {{"scale", 0.3f}}),
      Own("ScaledDotProductAttentionGrad_tiles",
          {Real({2, 2, 41, 33}), Real({2, 2, 41, 40}), Real({2, 2, 70, 40}), Real({2, 2, 70, 33}),
           Real({1, 41, 70})},
          {{"scale", 0.3f}})
          .Outputs(4, {0, 1, 2, 3}),
  };
}

}  // namespace onward
