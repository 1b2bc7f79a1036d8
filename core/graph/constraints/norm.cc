// SPDX-License-Identifier: Apache-2.0
// Constraints of reductions, normalisations, softmaxes and losses.
#include "core/graph/constraints/rules.h"

namespace onward::constraints {
namespace {

// [N, C, ...], or [N] with one channel.
int64_t Channels(const Subject& s) { return s.Rank(0) == 1 ? 1 : s.Dim(0, 1); }

Rule PerChannel(int first, int last) {
  return [=](Subject& s) {
    if (s.node.Int("spatial", 1) == 0) return;  // before version 9: one for each feature
    for (int input = first; input <= last; ++input) {
      ExpectShape(s, input, "one value for each channel", {Channels(s)});
    }
  };
}

void CheckGroups(Subject& s) {
  const int64_t groups = s.node.Int("num_groups", 1), channels = s.Dim(0, 1);
  if (groups < 1 || groups > kLargest) {
    return s.Fail("num_groups is ", groups, ", expected 1 or more");
  }
  if (channels >= 0 && channels % groups != 0) {
    s.Fail(channels, " channels do not divide into ", groups, " groups");
  }
  // Before version 21 scale and bias had one value for each group.
  for (int input : {1, 2}) {
    ExpectShape(s, input, input == 1 ? "the scale" : "the bias",
                {s.version < 21 ? groups : channels});
  }
}

// scores [N, C, d1...], labels [N, d1...], weights [C].
void CheckLoss(Subject& s) {
  OneOf("reduction", {"none", "mean", "sum"})(s);
  RankAtLeast(0, 2)(s);
  const int rank = s.Rank(0);
  if (rank >= 2) {
    std::vector<int64_t> labels = {s.Dim(0, 0)};
    for (int axis = 2; axis < rank; ++axis) labels.push_back(s.Dim(0, axis));
    ExpectShape(s, 1, "the labels", labels);
  }
  if (s.Has(2)) ExpectShape(s, 2, "one weight for each class", {s.Dim(0, 1)});
}

// Before version 13 everything from `axis` on was one axis.
Rule SoftmaxAxis() {
  return [](Subject& s) { Axis({.otherwise = s.version < 13 ? 1 : -1, .end = s.version < 11})(s); };
}

void CheckScaleAndShift(Subject& s) {
  if (s.Rank(0) < 0) return;
  const std::vector<int64_t> dims = DimsOf(s, 0);
  ExpectBroadcast(s, 1, "the scale", dims);
  ExpectBroadcast(s, 2, "the shift", dims);
}

}  // namespace

void AddNormRows(Table& table) {
  AddRows(table,
          {"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
           "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"},
          {Axes("axes", 1)});
  AddRows(table, {"ArgMax", "ArgMin"}, {Axis({.otherwise = 0})});
  AddRows(table, {"CumSum", "CumProd"}, {AxisInput(1)});
  AddRows(table, {"Softmax", "LogSoftmax", "Hardmax"}, {SoftmaxAxis()});
  AddRows(table, {"LayerNormalization", "RMSNormalization"},
          {Axis({.otherwise = -1}), FloatingType("stash_type"), CheckScaleAndShift});
  AddRows(table, {"LpNormalization"}, {Axis({.otherwise = -1}), OneOfNumbers("p", {1, 2})});
  AddRows(table, {"MeanVarianceNormalization"}, {[](Subject& s) {
            if (s.node.Has("axes")) return Axes("axes", -1)(s);
            if (s.version >= 9) RankAtLeast(0, 4)(s);  // [0, 2, 3] by default
          }});
  AddRows(table, {"BatchNormalization"}, {RankAtLeast(0, 1), PerChannel(1, 4)});
  AddRows(table, {"InstanceNormalization"}, {RankAtLeast(0, 3), PerChannel(1, 2)});
  AddRows(table, {"GroupNormalization"},
          {RankAtLeast(0, 2), CheckGroups, FloatingType("stash_type")});
  AddRows(table, {"SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"}, {CheckLoss});
  AddRows(table, {"Dropout"}, {Scalar(1), Scalar(2)});
}

}  // namespace onward::constraints
