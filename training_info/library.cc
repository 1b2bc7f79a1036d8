// SPDX-License-Identifier: Apache-2.0
#include "training_info/library.h"

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace onward {

absl::StatusOr<Function> FileFunction(const FunctionLibrary& library, const Node& call, int opset) {
  constexpr int kFloatAttribute = 1;  // AttributeProto.FLOAT
  const FunctionDef* def = library.Find(call);
  if (def == nullptr || !def->attributes_by_reference) {
    return absl::InternalError(
        absl::StrCat(call.Describe(), ": is not a function that files carry"));
  }
  Node formal = call;
  formal.attributes.clear();
  for (const std::string& name : def->attributes) {
    Attribute reference;
    reference.ref = name;
    reference.ref_kind = kFloatAttribute;
    formal.attributes[name] = std::move(reference);
  }
  ONWARD_ASSIGN_OR_RETURN(Graph body, library.Instantiate(formal, {}, nullptr, opset));
  for (NamedType& v : body.inputs) v.type = {};
  body.types.clear();
  return Function{std::move(body), def->attributes, {}};
}

bool IsLibraryCall(const FunctionLibrary& library, const Node& call,
                   const std::map<std::string, int>& opsets) {
  auto it = opsets.find(call.domain);
  return call.domain == kOnwardDomain && call.overload.empty() && it != opsets.end() &&
         it->second == kOnwardVersion && library.Find(call) != nullptr;
}

}  // namespace onward
