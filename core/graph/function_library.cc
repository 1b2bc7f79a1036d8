// SPDX-License-Identifier: Apache-2.0
#include "core/graph/function_library.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace onward {

void FunctionLibrary::Add(std::string name, FunctionDef def, std::string_view domain) {
  defs_[{std::string(domain), std::move(name), ""}] = std::move(def);
}

const FunctionDef* FunctionLibrary::Find(std::string_view name, std::string_view domain) const {
  auto it = defs_.find({std::string(domain), std::string(name), ""});
  return it == defs_.end() ? nullptr : &it->second;
}

std::string FunctionLibrary::BrokenDemand(const FunctionDef& def, const Node& call,
                                          absl::Span<const InputFact> inputs) {
  for (int i = 0; i < def.required; ++i) {
    if (!call.HasInput(i)) return absl::StrCat("input ", i, " is missing");
  }
  DType floating = DType::kUndefined;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ValueType* type = inputs[i].type;
    if (type == nullptr || !type->known() || def.operands.empty()) continue;
    const char kind = def.operands[std::min(i, def.operands.size() - 1)];
    const bool alike = kind != 'T' || floating == DType::kUndefined || floating == type->dtype;
    const bool fits = kind == 'I'                  ? IsInteger(type->dtype)
                      : kind == '.' || kind == 'S' ? true
                                                   : IsFloating(type->dtype);
    const ValueType::Kind holds =
        kind == 'S' ? ValueType::Kind::kSequence : ValueType::Kind::kTensor;
    if (!alike || !fits || type->kind != holds) {
      return absl::StrCat("input ", i, " is ", type->ToString(), ", expected ",
                          !alike        ? DTypeName(floating)
                          : kind == 'I' ? "integers"
                          : kind == '.' ? "a tensor"
                          : kind == 'S' ? "a sequence"
                                        : "floating-point numbers");
    }
    if (kind == 'T') floating = type->dtype;
  }
  return "";
}

absl::StatusOr<Graph> FunctionLibrary::Instantiate(const Node& call,
                                                   absl::Span<const InputFact> inputs,
                                                   const OperatorSet* operators, int opset) const {
  const FunctionDef* def = Find(call);
  if (def == nullptr)
    return absl::NotFoundError(absl::StrCat(call.Describe(), ": no such function"));
  if (std::string problem = BrokenDemand(*def, call, inputs); !problem.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(call.Describe(), ": ", problem));
  }
  if (!def->body) {
    return absl::UnimplementedError(
        absl::StrCat(call.Describe(), ": has no body; only the compiler makes such calls"));
  }
  Graph body;
  body.name = call.op_type;
  body.opsets[""] = opset;
  GraphBuilder b(&body, operators, "v");
  std::vector<Expr> arguments;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (call.inputs[i].empty()) {
      body.inputs.push_back({absl::StrCat("in", i), {}});
      arguments.emplace_back();
      continue;
    }
    const ValueType type =
        i < inputs.size() && inputs[i].type != nullptr ? *inputs[i].type : ValueType{};
    arguments.push_back(b.Input(absl::StrCat("in", i), type));
  }
  std::vector<Expr> results = def->body(b, call, arguments);
  ONWARD_RETURN_IF_ERROR(b.status());
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    if (i >= results.size() || !results[i].defined()) {
      if (!call.outputs[i].empty()) {
        return absl::InternalError(absl::StrCat("body of ", call.op_type, " gives no output ", i));
      }
      body.outputs.push_back({"", {}});
      continue;
    }
    b.Output(results[i]);
  }
  return body;
}

}  // namespace onward
