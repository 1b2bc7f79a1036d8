// SPDX-License-Identifier: Apache-2.0
#include "tests/ops/cases.h"

namespace onward {

std::vector<OpCase> LossCases() {
  std::vector<OpCase> cases = {
      Case("SoftmaxCrossEntropyLoss_log_output", {Real({3, 4}), Below({3}, 4)}).Outputs(2, {0, 1}),
      Case("SoftmaxCrossEntropyLoss_log_only", {Real({3, 4}), Below({3}, 4)}).Outputs(2, {1}),
      Case("SoftmaxCrossEntropyLoss_negative_ignored", {Real({3, 4}), Fed({3}, {1, -100, 3})},
           {{"ignore_index", -100}}),
      Case("NegativeLogLikelihoodLoss_negative_ignored", {Real({3, 4}), Fed({3}, {1, -100, 3})},
           {{"ignore_index", -100}}),
  };
  for (const std::string op : {"SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"}) {
    for (const std::string reduction : {"none", "sum", "mean"}) {
      const Attributes plain = {{"reduction", reduction}};
      const Attributes ignoring = {{"ignore_index", 1}, {"reduction", reduction}};
      const Arg some_ignored = Fed({4}, {1, 0, 2, 1});
      const std::string name = op + "_" + reduction;
      cases.push_back(Case(name, {Real({3, 4}), Below({3}, 4)}, plain).Unknown({0, 1}));
      cases.push_back(Case(name + "_weights", {Real({3, 4}), Below({3}, 4), Positive({4})}, plain));
      cases.push_back(Case(name + "_ignored", {Real({4, 3}), some_ignored}, ignoring));
      cases.push_back(Case(name + "_all", {Real({4, 3}), some_ignored, Positive({3})}, ignoring)
                          .Unknown({0, 1}));
      cases.push_back(Case(name + "_planes",
                           {Real({2, 3, 2, 2}), Below({2, 2, 2}, 3), Positive({3})}, ignoring));
    }
  }
  return cases;
}

}  // namespace onward
