// SPDX-License-Identifier: Apache-2.0
#include "tests/ops/cases.h"

namespace onward {

std::vector<OpCase> ReduceCases() {
  std::vector<OpCase> cases = {
      Case("ReduceSum_empty_axes_kept", {Real({2, 3}), Ints({})}, {{"noop_with_empty_axes", 1}}),
      Case("ReduceSum_axes_fed", {Real({2, 3, 4}), Fed({1}, {1})}).DataDependent(),
      Case("ReduceSum_unknown", {Real({2, 3}), Ints({0})}).Unknown({0}),
      Case("ReduceMean_unknown", {Real({2, 3}), Ints({0})}).Unknown({0}),
      Case("CumSum", {Real({2, 5}), Int(1)}),
      Case("CumSum_first_axis", {Real({4, 3}), Int(0)}),
      Case("CumSum_negative_axis", {Real({2, 5}), Int(-1)}),
      Case("CumSum_exclusive", {Real({2, 5}), Int(1)}, {{"exclusive", 1}}),
      Case("CumSum_reverse", {Real({2, 5}), Int(1)}, {{"reverse", 1}}),
      Case("CumSum_both", {Real({2, 5}), Int(1)}, {{"exclusive", 1}, {"reverse", 1}}),
      Case("CumProd", {Real({2, 4}), Int(1)}),
      Case("CumProd_first_axis", {Real({4, 2}), Int(0)}),
      Case("CumProd_exclusive", {Real({2, 4}), Int(-1)}, {{"exclusive", 1}}),
      Case("CumProd_reverse", {Real({2, 4}), Int(1)}, {{"reverse", 1}}),
      Case("CumProd_both", {Real({2, 4}), Int(1)}, {{"exclusive", 1}, {"reverse", 1}}),
  };
  for (const std::string op :
       {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
        "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"}) {
    const bool logarithm = op == "ReduceLogSum";
    auto x = [&](Shape shape) { return logarithm ? Positive(shape) : Real(shape); };
    cases.push_back(Case(op, {x({2, 3, 2})}));
    cases.push_back(Case(op + "_all_dropped", {x({2, 3})}, {{"keepdims", 0}}));
    cases.push_back(Case(op + "_axis", {x({2, 3, 2}), Ints({1})}, {{"keepdims", 0}}));
    cases.push_back(Case(op + "_axis_kept", {x({2, 3, 2}), Ints({1})}));
    cases.push_back(Case(op + "_negative_axes", {x({2, 3, 2}), Ints({-1, 0})}, {{"keepdims", 0}}));
  }
  return cases;
}

}  // namespace onward
