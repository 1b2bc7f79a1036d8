// SPDX-License-Identifier: Apache-2.0
#include "tests/support/reference/evaluate.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "core/graph/function_library.h"
#include "environment/environment.h"

namespace onward::reference {
namespace {

const Function* Find(const std::string& op) {
  for (const Table* table : {&ElementwiseTable(), &ReduceTable(), &MovementTable(), &IndexTable(),
                             &MatMulTable(), &WindowTable(), &NormTable(), &LossTable(),
                             &RnnTable(), &AttentionTable(), &QuantizeTable(), &ImageTable(),
                             &SamplingTable(), &SignalTable(), &TextTable(), &MlTable()}) {
    auto it = table->find(op);
    if (it != table->end()) return &it->second;
  }
  return nullptr;
}

using Values = std::map<std::string, Array>;

Arrays EvaluateLoop(const Node& node, const Arrays& inputs, const Values& around);

// The nodes of a graph, one after the other.
void EvaluateNodes(const Graph& graph, Values* values) {
  for (const auto& [name, tensor] : graph.initializers) (*values)[name] = FromTensor(tensor);
  for (const Node& node : graph.nodes) {
    Arrays in;
    for (const std::string& name : node.inputs) {
      in.push_back(name.empty() ? Array() : (*values)[name]);
    }
    const Arrays out = node.Is("Loop") ? EvaluateLoop(node, in, *values) : Evaluate(node, in);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (!node.outputs[i].empty()) (*values)[node.outputs[i]] = out[i];
    }
  }
}

// (M, cond, states ...) -> states; what a body stacks is not there.
Arrays EvaluateLoop(const Node& node, const Arrays& inputs, const Values& around) {
  const Graph& body = *node.Subgraph("body");
  Arrays states(inputs.begin() + 2, inputs.end());
  bool goes_on = !inputs[1].present() || inputs[1].values[0] != 0;
  for (int64_t i = 0; goes_on && (!inputs[0].present() || i < inputs[0].values[0]); ++i) {
    Values values = around;
    Array round(DType::kInt64, Shape{}), condition(DType::kBool, Shape{});
    round.values[0] = static_cast<Number>(i);
    condition.values[0] = 1;
    values[body.inputs[0].name] = round;
    values[body.inputs[1].name] = condition;
    for (size_t k = 0; k < states.size(); ++k) values[body.inputs[k + 2].name] = states[k];
    EvaluateNodes(body, &values);
    goes_on = values[body.outputs[0].name].values[0] != 0;
    for (size_t k = 0; k < states.size(); ++k) states[k] = values[body.outputs[k + 1].name];
  }
  return states;
}

// A function's body.
Arrays EvaluateBody(const Node& call, const Arrays& inputs) {
  std::vector<ValueType> types(inputs.size());
  std::vector<InputFact> facts(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].present()) continue;
    types[i] = ValueType::Of(inputs[i].dtype, inputs[i].shape);
    facts[i].type = &types[i];
  }
  auto body = DefaultEnvironment().functions().Instantiate(
      call, facts, &DefaultEnvironment().operators(), kCanonicalOpset);
  if (!body.ok()) throw NotDefined(body.status().ToString());
  Values values;
  for (size_t i = 0; i < inputs.size(); ++i) values[body->inputs[i].name] = inputs[i];
  EvaluateNodes(*body, &values);
  Arrays results;
  for (const NamedType& output : body->outputs) results.push_back(values[output.name]);
  return results;
}

}  // namespace

Arrays Evaluate(const Node& node, const Arrays& inputs) {
  Arrays results;
  // A body of an operator of the standard is what is compared with the reference.
  const FunctionDef* own =
      node.domain.empty() ? nullptr : DefaultEnvironment().functions().Find(node);
  if (own != nullptr && own->body) {
    results = EvaluateBody(node, inputs);
  } else {
    const Function* function = Find(node.op_type);
    if (function == nullptr) throw std::runtime_error("no reference for " + node.op_type);
    results = (*function)({node, inputs, static_cast<int>(node.outputs.size())});
  }
  if (results.size() < node.outputs.size()) {
    throw std::runtime_error(absl::StrCat("the reference of ", node.op_type, " gives ",
                                          results.size(), " of ", node.outputs.size(), " outputs"));
  }
  for (Array& result : results) {
    for (Number& value : result.values) {
      if (IsInteger(result.dtype)) value = Wrapped(result.dtype, value);
      if (result.dtype == DType::kBool) value = value != 0;
    }
  }
  return results;
}

}  // namespace onward::reference
