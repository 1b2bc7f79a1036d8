// SPDX-License-Identifier: Apache-2.0
#include "core/onnx_io/operand_types.h"

#include <array>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/onnx_io/proto.h"
#include "onnx/defs/data_type_utils.h"

namespace onward {
namespace {

using Formal = onnx::OpSchema::FormalParameter;

// onnx's interned name of a type ("tensor(float)"); null where it is not known, or no
// schema could know it.
onnx::DataType TypeName(const ValueType& type) {
  if (type.leaf() == DType::kUndefined) return nullptr;
  constexpr int kTypes = static_cast<int>(DType::kFloat6E3M2) + 1;
  static const std::array<onnx::DataType, kTypes>* tensors = [] {
    auto* names = new std::array<onnx::DataType, kTypes>{};
    for (int i = 1; i < kTypes; ++i) {
      onnx::TypeProto proto;
      proto.mutable_tensor_type()->set_elem_type(i);
      try {
        (*names)[i] = onnx::Utils::DataTypeUtils::ToType(proto);
      } catch (const std::exception&) {
        // An element type that this onnx has no name for.
      }
    }
    return names;
  }();
  const int code = static_cast<int>(type.dtype);
  if (type.is_tensor()) {
    return code > 0 && code < kTypes ? (*tensors)[code] : nullptr;
  }
  // onnx infers optionals by halves, as what they hold.
  if (type.kind == ValueType::Kind::kOptional) return nullptr;
  try {
    onnx::TypeProto proto;
    TypeToProto(type, &proto);
    return onnx::Utils::DataTypeUtils::ToType(proto);
  } catch (const std::exception&) {
    return nullptr;
  }
}

// The type that each variable of a schema stands for in one call.
class Variables {
 public:
  // What is wrong with a parameter of type `type`; "" if nothing is.
  std::string Bind(const Formal& formal, const ValueType& type, const std::string& what) {
    onnx::DataType name = TypeName(type);
    if (name == nullptr) return "";
    if (!formal.GetTypes().empty() && !formal.GetTypes().contains(name)) {
      return absl::StrCat(what, " (", formal.GetName(), ") is ", *name,
                          ", which the operator is not defined for");
    }
    if (!formal.GetIsHomogeneous()) return "";
    for (const auto& [variable, bound] : bound_) {
      if (variable != formal.GetTypeStr()) continue;
      return bound.first == name
                 ? ""
                 : absl::StrCat(what, " (", formal.GetName(), ") is ", *name, ", but ",
                                bound.second, " is ", *bound.first, "; both must be of one type");
    }
    bound_.emplace_back(formal.GetTypeStr(), std::pair(name, what));
    return "";
  }

 private:
  std::vector<std::pair<std::string, std::pair<onnx::DataType, std::string>>> bound_;
};

const Formal* At(const std::vector<Formal>& formals, size_t i) {
  if (i < formals.size()) return &formals[i];
  const bool variadic = !formals.empty() && formals.back().GetOption() == onnx::OpSchema::Variadic;
  return variadic ? &formals.back() : nullptr;
}

// Whether so many are allowed, and none that is needed is left out.
void CheckCount(const char* what, const std::vector<std::string>& names, int least, int most,
                const std::vector<Formal>& formals, std::vector<std::string>* problems) {
  const int64_t count = static_cast<int64_t>(names.size());
  if (count < least || count > most) {
    problems->push_back(absl::StrCat("has ", count, " ", what, "s, expected ", least,
                                     least == most ? "" : absl::StrCat(" to ", most)));
  }
  for (size_t i = 0; i < names.size() && i < formals.size(); ++i) {
    if (!names[i].empty() || formals[i].GetOption() != onnx::OpSchema::Single) continue;
    problems->push_back(absl::StrCat(what, " ", i, " (", formals[i].GetName(), ") is missing"));
  }
}

}  // namespace

std::vector<std::string> BrokenOperands(const onnx::OpSchema& schema, const Node& node,
                                        absl::Span<const InputFact> inputs) {
  std::vector<std::string> problems;
  CheckCount("input", node.inputs, schema.min_input(), schema.max_input(), schema.inputs(),
             &problems);
  CheckCount("output", node.outputs, schema.min_output(), schema.max_output(), schema.outputs(),
             &problems);
  Variables variables;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Formal* formal = At(schema.inputs(), i);
    if (formal == nullptr || inputs[i].type == nullptr || !node.HasInput(static_cast<int>(i))) {
      continue;
    }
    std::string problem = variables.Bind(*formal, *inputs[i].type, absl::StrCat("input ", i));
    if (!problem.empty()) problems.push_back(std::move(problem));
  }
  return problems;
}

std::vector<std::string> BrokenResults(const onnx::OpSchema& schema, const Node& node,
                                       absl::Span<const ValueType> outputs) {
  std::vector<std::string> problems;
  Variables variables;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Formal* formal = At(schema.outputs(), i);
    if (formal == nullptr || !node.HasOutput(static_cast<int>(i))) continue;
    std::string problem = variables.Bind(*formal, outputs[i], absl::StrCat("output ", i));
    if (!problem.empty()) problems.push_back(std::move(problem));
  }
  return problems;
}

}  // namespace onward
