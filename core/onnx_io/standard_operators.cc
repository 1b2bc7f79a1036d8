// SPDX-License-Identifier: Apache-2.0
#include "core/onnx_io/standard_operators.h"

#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "core/graph/graph.h"
#include "onnx/defs/schema.h"

namespace onward {
namespace {

bool MayBeFloating(const onnx::OpSchema::FormalParameter& parameter) {
  return absl::c_any_of(parameter.GetTypes(), [](const std::string* type) {
    return absl::c_any_of(std::initializer_list<const char*>{"(float)", "(double)", "(float16)",
                                                             "(bfloat16)", ",float)"},
                          [&](const char* element) { return absl::StrContains(*type, element); });
  });
}

bool IsTagged(const onnx::OpSchema::FormalParameter& parameter) {
  return parameter.GetDifferentiationCategory() == onnx::OpSchema::Differentiable;
}

}  // namespace

std::vector<StandardOperator> StandardOperators() {
  std::map<std::pair<std::string, std::string>, StandardOperator> found;
  for (const onnx::OpSchema& newest : onnx::OpSchemaRegistry::get_all_schemas()) {
    const std::string& domain = newest.domain();
    const onnx::OpSchema* schema =
        domain.empty() ? onnx::OpSchemaRegistry::Schema(newest.Name(), kCanonicalOpset, domain)
                       : &newest;
    if (schema == nullptr || schema->Deprecated()) continue;
    found[{domain, schema->Name()}] = {
        domain,
        schema->Name(),
        schema->since_version(),
        schema->HasFunction() || schema->HasContextDependentFunction(),
        absl::c_any_of(schema->outputs(), MayBeFloating),
        absl::c_any_of(schema->inputs(), IsTagged),
    };
  }
  std::vector<StandardOperator> operators;
  for (auto& [key, op] : found) operators.push_back(std::move(op));
  return operators;
}

}  // namespace onward
