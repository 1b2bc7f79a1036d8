// SPDX-License-Identifier: Apache-2.0
#include "tests/ops/cases.h"

namespace onward {
namespace {

std::vector<OpCase> NormalizationCases() {
  return {
      Case("BatchNormalization", {Real({2, 3, 2}), Real({3}), Real({3}), Real({3}), Positive({3})})
          .Unknown({0}),
      Case("BatchNormalization_epsilon",
           {Real({2, 2, 2, 2}), Real({2}), Real({2}), Real({2}), Positive({2})},
           {{"epsilon", 0.1}}),
      Case("BatchNormalization_matrix",
           {Real({3, 2}), Real({2}), Real({2}), Real({2}), Positive({2})}),
      Case("BatchNormalization_training",
           {Real({3, 2, 2, 2}), Real({2}), Real({2}), Real({2}), Positive({2})},
           {{"training_mode", 1}})
          .Outputs(3, {0})
          .By({0, 1, 2})
          .Unknown({0}),
      Case("BatchNormalization_training_matrix",
           {Real({4, 2}), Real({2}), Real({2}), Real({2}), Positive({2})},
           {{"epsilon", 0.01}, {"training_mode", 1}})
          .Outputs(3, {0})
          .By({0, 1, 2}),
      Case("BatchNormalization_running",
           {Real({4, 2, 3}), Real({2}), Real({2}), Real({2}), Positive({2})},
           {{"epsilon", 0.01}, {"momentum", 0.7}, {"training_mode", 1}})
          .Outputs(3, {0, 1, 2})
          .Unknown({0}),
      Case("BatchNormalization_running_only",
           {Real({4, 2}), Real({2}), Real({2}), Real({2}), Positive({2})}, {{"training_mode", 1}})
          .Outputs(3, {1, 2})
          .By({0, 3, 4}),
      Case("LayerNormalization", {Real({3, 4}), Real({4}), Real({4})}).Unknown({0}),
      Case("LayerNormalization_no_bias", {Real({2, 3, 4}), Real({4})}).Unknown({0}),
      Case("LayerNormalization_axis", {Real({2, 3, 2}), Real({3, 2}), Real({3, 2})},
           {{"axis", 1}, {"epsilon", 0.01}}),
      Case("LayerNormalization_broadcast", {Real({2, 3, 2}), Real({2}), Real({2})}, {{"axis", -2}}),
      Case("InstanceNormalization", {Real({2, 2, 3}), Real({2}), Real({2})}).Unknown({0}),
      Case("InstanceNormalization_planes", {Real({1, 2, 2, 3}), Real({2}), Real({2})},
           {{"epsilon", 0.1}}),
      Case("GroupNormalization", {Real({2, 4, 2}), Real({4}), Real({4})}, {{"num_groups", 2}})
          .Unknown({0}),
      Case("GroupNormalization_planes", {Real({1, 4, 2, 2}), Real({4}), Real({4})},
           {{"epsilon", 0.1}, {"num_groups", 4}}),
      Case("GroupNormalization_stash", {Real({2, 4, 2}), Real({4}), Real({4})},
           {{"num_groups", 2}, {"stash_type", Code(DType::kFloat)}}),
      Case("RMSNormalization", {Real({3, 4}), Real({4})}).Unknown({0}),
      Case("RMSNormalization_axis", {Real({2, 3, 2}), Real({3, 2})}, {{"axis", 1}}),
      Case("LpNormalization", {Real({3, 4})}),
      Case("LpNormalization_p1_axis", {Real({3, 4})}, {{"axis", 0}, {"p", 1}}),
      Case("LRN", {Real({1, 5, 2, 2})}, {{"alpha", 0.5}, {"size", 3}}).Unknown({0}),
      Case("LRN_even", {Real({1, 5, 2})},
           {{"alpha", 0.5}, {"beta", 0.6}, {"bias", 1.5}, {"size", 4}}),
  };
}

std::vector<OpCase> SoftmaxCases() {
  return {
      Case("Softmax", {Real({3, 4})}).Unknown({0}),
      Case("Softmax_axis", {Real({2, 3, 2})}, {{"axis", 1}}),
      Case("Softmax_first", {Real({3, 2})}, {{"axis", 0}}),
      Case("LogSoftmax", {Real({3, 4})}).Unknown({0}),
      Case("LogSoftmax_axis", {Real({2, 3, 2})}, {{"axis", -2}}),
      Case("Dropout", {Real({3, 4})}),
      Case("Dropout_training", {Real({3, 4}), Number(0.4), True()}, {{"seed", 7}}).Unknown({0}),
      Case("Dropout_mode_fed", {Real({3, 4}), Number(0.4), Flags({})}, {{"seed", 7}}),
  };
}

}  // namespace

std::vector<OpCase> NormCases() {
  std::vector<OpCase> cases = NormalizationCases();
  for (OpCase& c : SoftmaxCases()) cases.push_back(std::move(c));
  return cases;
}

}  // namespace onward
