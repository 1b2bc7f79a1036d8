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

// The nodes of a function's body, one after the other.
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
  std::map<std::string, Array> values;
  for (size_t i = 0; i < inputs.size(); ++i) values[body->inputs[i].name] = inputs[i];
  for (const auto& [name, tensor] : body->initializers) values[name] = FromTensor(tensor);
  for (const Node& node : body->nodes) {
    Arrays in;
    for (const std::string& name : node.inputs) in.push_back(name.empty() ? Array() : values[name]);
    const Arrays out = Evaluate(node, in);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (!node.outputs[i].empty()) values[node.outputs[i]] = out[i];
    }
  }
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
