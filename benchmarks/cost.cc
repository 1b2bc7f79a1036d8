// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/cost.h"

#include <algorithm>
#include <string>
#include <vector>

#include "environment/environment.h"

namespace onward {
namespace {

const PlanValue* Value(const Plan& plan, const std::vector<int>& ids, size_t i) {
  return i < ids.size() && ids[i] >= 0 ? &plan.values[ids[i]] : nullptr;
}

// The shape of a value, empty (rank 0) where there is none.
Shape ShapeOf(const PlanValue* value) {
  return value != nullptr && value->shape ? *value->shape : Shape();
}

double Elements(const Shape& s) { return static_cast<double>(s.elements()); }

// Each of `elements` meets all of W but its first axis.
double ConvFlops(const Shape& elements, const Shape& weight) {
  if (elements.rank() == 0 || weight.rank() == 0 || weight[0] == 0) return 0;
  return 2 * Elements(elements) * Elements(weight) / static_cast<double>(weight[0]);
}

double RnnFlops(const Shape& x, const Shape& w, const Shape& r) {
  if (x.rank() != 3) return 0;
  return 2 * static_cast<double>(x[0] * x[1]) * (Elements(w) + Elements(r));
}

bool ShapeOnly(const Node& node, int input) {
  if (node.domain != kOnwardDomain) return false;
  const FunctionDef* def = DefaultEnvironment().functions().Find(node.op_type);
  return def != nullptr && std::count(def->shape_only.begin(), def->shape_only.end(), input) > 0;
}

double BytesOf(const PlanValue* value) {
  return value != nullptr && value->shape ? static_cast<double>(value->bytes()) : 0;
}

}  // namespace

double Flops(const Plan& plan, const PlanStep& step) {
  const auto in = [&](size_t i) { return ShapeOf(Value(plan, step.inputs, i)); };
  const auto out = [&](size_t i) { return ShapeOf(Value(plan, step.outputs, i)); };
  const std::string& op = step.node.op_type;
  if (op == "Conv" || op == "FusedConv") return ConvFlops(out(0), in(1));
  if (op == "ConvTranspose" || op == "ConvInputGrad") return ConvFlops(in(0), in(1));
  if (op == "ConvWeightGrad") return ConvFlops(in(0), out(0));
  if (op == "MatMul" || op == "FusedMatMul") {
    const Shape a = in(0);
    return a.rank() == 0 ? 0 : 2 * Elements(out(0)) * static_cast<double>(a[a.rank() - 1]);
  }
  if (op == "Gemm" || op == "FusedGemm") {
    const Shape a = in(0);
    const int inner = step.node.Int("transA", 0) != 0 ? 0 : 1;
    return a.rank() != 2 ? 0 : 2 * Elements(out(0)) * static_cast<double>(a[inner]);
  }
  for (const std::string rnn : {"RNN", "GRU", "LSTM"}) {
    if (op == rnn || op == rnn + "Training") return RnnFlops(in(0), in(1), in(2));
    if (op == rnn + "Grad") return 2 * RnnFlops(in(0), in(1), in(2));
  }
  return 0;
}

double Bytes(const Plan& plan, const PlanStep& step) {
  double outputs = 0, inputs = 0;
  for (size_t i = 0; i < step.outputs.size(); ++i) outputs += BytesOf(Value(plan, step.outputs, i));
  const bool picks = step.node.Is("Gather") || step.node.Is("Slice");
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    if (ShapeOnly(step.node, static_cast<int>(i))) continue;
    const double bytes = BytesOf(Value(plan, step.inputs, i));
    inputs += picks && i == 0 ? std::min(bytes, outputs) : bytes;
  }
  return inputs + outputs;
}

}  // namespace onward
