// SPDX-License-Identifier: Apache-2.0
#include "core/onnx_io/function_text.h"

#include <exception>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/onnx_io/proto.h"
#include "onnx/defs/parser.h"

namespace onward {

absl::StatusOr<NamedFunction> ParseFunctionText(const std::string& text) {
  onnx::FunctionProto proto;
  try {
    onnx::OnnxParser parser(text.c_str());
    const auto parsed = parser.Parse(proto);
    if (!parsed.IsOK()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the text of a function cannot be read: ", parsed.ErrorMessage()));
    }
    if (!parser.EndOfInput()) {
      return absl::InvalidArgumentError("the text goes on after the end of the function");
    }
  } catch (const std::exception& e) {
    return absl::InvalidArgumentError(
        absl::StrCat("the text of a function cannot be read: ", e.what()));
  }
  NamedFunction named;
  named.key = {proto.domain(), proto.name(), proto.overload()};
  ONWARD_ASSIGN_OR_RETURN(named.function, FunctionFromProto(proto, nullptr));
  return named;
}

}  // namespace onward
