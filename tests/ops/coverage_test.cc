// SPDX-License-Identifier: Apache-2.0
// That nothing was forgotten: every kernel has a derivative or a reason, every
// rule a row that checks it.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "autograd/rule.h"
#include "environment/environment.h"
#include "tests/ops/cases.h"

namespace onward {
namespace {

bool OnValues(const std::string& op) {
  const auto* entries = DefaultEnvironment().cpu().kernels().Find(op, "");
  return entries != nullptr && entries->front().on_values;
}

// Operator -> why it has no derivative. Those on sequences and optionals have none yet.
const std::map<std::string, std::string>& NotYet() {
  static const auto* const reasons = new std::map<std::string, std::string>{
      {"Constant", "has no inputs"},
      {"Adagrad", "a step of an optimizer, never inside a loss"},
      {"Adam", "a step of an optimizer, never inside a loss"},
      {"Momentum", "a step of an optimizer, never inside a loss"},
      {"MaxPoolWinners", "made by the compiler, when gradients are there already"},
      {"MaxPoolWinnersGrad", "made by the compiler, when gradients are there already"},
  };
  return *reasons;
}

// Operator with a rule -> why no row checks it.
const std::map<std::string, std::string>& NoRow() {
  static const auto* const reasons = new std::map<std::string, std::string>{
      {"Cast", "its rule is CastLike's"},
  };
  return *reasons;
}

// Operators that the standard's schemas tag differentiable: they have an input with the tag.
const std::set<std::string>& Tagged() {
  static const auto* const operators = new std::set<std::string>{"Abs",
                                                                 "Acos",
                                                                 "Acosh",
                                                                 "Add",
                                                                 "Asin",
                                                                 "Asinh",
                                                                 "Atan",
                                                                 "Atanh",
                                                                 "AveragePool",
                                                                 "BatchNormalization",
                                                                 "Cast",
                                                                 "CastLike",
                                                                 "CausalConvWithState",
                                                                 "Celu",
                                                                 "CenterCropPad",
                                                                 "Clip",
                                                                 "Col2Im",
                                                                 "Compress",
                                                                 "Concat",
                                                                 "Conv",
                                                                 "ConvTranspose",
                                                                 "Cos",
                                                                 "Cosh",
                                                                 "CumProd",
                                                                 "CumSum",
                                                                 "DepthToSpace",
                                                                 "Det",
                                                                 "Div",
                                                                 "Dropout",
                                                                 "Einsum",
                                                                 "Elu",
                                                                 "Erf",
                                                                 "Exp",
                                                                 "Expand",
                                                                 "Flatten",
                                                                 "GRU",
                                                                 "Gather",
                                                                 "GatherElements",
                                                                 "GatherND",
                                                                 "Gelu",
                                                                 "Gemm",
                                                                 "GlobalAveragePool",
                                                                 "GlobalLpPool",
                                                                 "GlobalMaxPool",
                                                                 "GridSample",
                                                                 "GroupNormalization",
                                                                 "HardSigmoid",
                                                                 "HardSwish",
                                                                 "Hardmax",
                                                                 "Identity",
                                                                 "InstanceNormalization",
                                                                 "LRN",
                                                                 "LSTM",
                                                                 "LeakyRelu",
                                                                 "LinearAttention",
                                                                 "Log",
                                                                 "LogSoftmax",
                                                                 "LpNormalization",
                                                                 "LpPool",
                                                                 "MatMul",
                                                                 "Max",
                                                                 "MaxPool",
                                                                 "MaxRoiPool",
                                                                 "MaxUnpool",
                                                                 "Mean",
                                                                 "MeanVarianceNormalization",
                                                                 "Min",
                                                                 "Mish",
                                                                 "Mod",
                                                                 "Mul",
                                                                 "Neg",
                                                                 "NegativeLogLikelihoodLoss",
                                                                 "PRelu",
                                                                 "Pad",
                                                                 "Pow",
                                                                 "RNN",
                                                                 "Reciprocal",
                                                                 "ReduceL1",
                                                                 "ReduceL2",
                                                                 "ReduceLogSum",
                                                                 "ReduceLogSumExp",
                                                                 "ReduceMax",
                                                                 "ReduceMean",
                                                                 "ReduceMin",
                                                                 "ReduceProd",
                                                                 "ReduceSum",
                                                                 "ReduceSumSquare",
                                                                 "Relu",
                                                                 "Reshape",
                                                                 "Resize",
                                                                 "Scatter",
                                                                 "ScatterElements",
                                                                 "ScatterND",
                                                                 "Selu",
                                                                 "Shrink",
                                                                 "Sigmoid",
                                                                 "Sin",
                                                                 "Sinh",
                                                                 "Slice",
                                                                 "Softmax",
                                                                 "SoftmaxCrossEntropyLoss",
                                                                 "Softplus",
                                                                 "Softsign",
                                                                 "SpaceToDepth",
                                                                 "Split",
                                                                 "Sqrt",
                                                                 "Squeeze",
                                                                 "Sub",
                                                                 "Sum",
                                                                 "SwiGLU",
                                                                 "Swish",
                                                                 "Tan",
                                                                 "Tanh",
                                                                 "TensorScatter",
                                                                 "ThresholdedRelu",
                                                                 "Tile",
                                                                 "TopK",
                                                                 "Transpose",
                                                                 "Trilu",
                                                                 "Unsqueeze",
                                                                 "Where"};
  return *operators;
}

// Tagged operator -> why it is not differentiated, or has no row.
const std::map<std::string, std::string>& Pending() {
  static const auto* const reasons = new std::map<std::string, std::string>{
      {"Col2Im", "of the image family"},
      {"GridSample", "of the image family"},
      {"MaxRoiPool", "of the image family"},
      {"MaxUnpool", "of the image family"},
      {"Resize", "of the image family"},
      {"Scatter", "ended with opset 11: files that use it are raised to ScatterElements"},
      {"Cast", "its rule is CastLike's"},
  };
  return *reasons;
}

bool HasBody(const std::string& op, const std::string& domain) {
  if (domain == kOnwardDomain) {
    const FunctionDef* def = DefaultEnvironment().functions().Find(op);
    return def != nullptr && def->body;
  }
  Node node;
  node.op_type = op;
  node.domain = domain;
  node.outputs = {"y"};
  // A call that the operator takes: some want more inputs, some more axes.
  for (const Shape& shape : {Shape{2, 3}, Shape{1, 2, 3, 4}}) {
    const ValueType type = ValueType::Of(DType::kFloat, shape);
    for (size_t inputs = 1; inputs <= 3; ++inputs) {
      node.inputs.assign(inputs, "x");
      const std::vector<InputFact> facts(inputs, {&type, nullptr});
      auto body =
          DefaultEnvironment().operators().FunctionBody(node, facts, {{"", kCanonicalOpset}});
      if (body.ok() && body->has_value()) return true;
    }
  }
  return false;
}

TEST(Coverage, EveryKernelHasADerivativeOrAReason) {
  for (const auto& [key, entries] : DefaultEnvironment().cpu().kernels().all()) {
    const auto& [domain, op] = key;
    const bool derived =
        DefaultEnvironment().rules().Find(op, domain) != nullptr || HasBody(op, domain);
    if (OnValues(op)) continue;
    EXPECT_NE(derived, NotYet().contains(op)) << domain << " " << op;
  }
}

TEST(Coverage, EveryReasonBelongsToAKernel) {
  for (const auto& [op, reason] : NotYet()) {
    bool found = false;
    for (const auto& [key, entries] : DefaultEnvironment().cpu().kernels().all())
      found |= key.second == op;
    EXPECT_TRUE(found) << op;
  }
}

TEST(Coverage, EveryRuleHasARow) {
  std::set<std::string> checked;
  for (const OpCase& c : OpCases()) checked.insert(c.op);
  for (const auto& [key, entry] : DefaultEnvironment().rules().all()) {
    if (entry.rule == nullptr) continue;
    EXPECT_NE(checked.contains(key.second), NoRow().contains(key.second)) << key.second;
  }
}

TEST(Coverage, EveryTaggedOperatorIsDifferentiated) {
  std::set<std::string> checked;
  for (const OpCase& c : OpCases()) checked.insert(c.op);
  for (const OpCase& c : SingleCases()) checked.insert(c.op);
  for (const std::string& op : Tagged()) {
    if (Pending().contains(op)) continue;
    const RuleTable::Entry* entry = DefaultEnvironment().rules().Find(op, "");
    EXPECT_TRUE(entry != nullptr || HasBody(op, "") || checked.contains(op))
        << op << " has neither a rule nor a body";
    const bool zero = entry != nullptr && entry->rule == nullptr;
    EXPECT_TRUE(checked.contains(op) || zero) << op << " has no row";
  }
  for (const auto& [op, reason] : Pending()) EXPECT_TRUE(Tagged().contains(op)) << op;
}

TEST(Coverage, RowsHaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const OpCase& c : OpCases()) EXPECT_TRUE(names.insert(c.name).second) << c.name;
}

}  // namespace
}  // namespace onward
