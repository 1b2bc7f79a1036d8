// SPDX-License-Identifier: Apache-2.0
#include "training_info/library.h"

#include "autograd/rule.h"
#include "core/base/status.h"
#include "core/onnx_io/operators.h"
#include "core/runtime/fuse.h"
#include "optimizers/optimizer.h"
#include "training_info/export.h"

namespace onward {
namespace {

std::string BodyText(const Graph& body) {
  std::string text;
  for (const Node& node : body.nodes) text += ToText(node) + "\n";
  return text;
}

}  // namespace

const FunctionLibrary& Functions() {
  static const FunctionLibrary* library = [] {
    auto* l = new FunctionLibrary;
    RegisterGradientFunctions(*l);
    RegisterOptimizerFunctions(*l);
    RegisterFusedFunctions(*l);
    RegisterRowFunctions(*l);
    RegisterWinnerFunctions(*l);
    return l;
  }();
  return *library;
}

const OperatorSet& Operators() {
  static const OperatorSet* operators = MakeOnnxOperators(&Functions()).release();
  return *operators;
}

absl::StatusOr<Function> FileFunction(const Node& call) {
  ONWARD_ASSIGN_OR_RETURN(Graph body,
                          Functions().Instantiate(call, {}, nullptr, kOldestWrittenOpset));
  for (NamedType& v : body.inputs) v.type = {};
  body.types.clear();
  Function function{std::move(body), {}, {}};
  for (const auto& [name, attribute] : call.attributes)
    function.required_attributes.push_back(name);
  return function;
}

bool IsLibraryFunction(const Node& call, const Function& function) {
  if (call.domain != kOnwardDomain || Functions().Find(call.op_type) == nullptr) return false;
  auto own = FileFunction(call);
  if (!own.ok()) return false;
  auto names = [](const std::vector<NamedType>& values) {
    std::vector<std::string> result;
    for (const NamedType& v : values) result.push_back(v.name);
    return result;
  };
  return names(own->body.inputs) == names(function.body.inputs) &&
         names(own->body.outputs) == names(function.body.outputs) &&
         BodyText(own->body) == BodyText(function.body);
}

}  // namespace onward
