// SPDX-License-Identifier: Apache-2.0
// Functions in ONNX's text form:
//
//   <domain: "com.example", opset_import: ["" : 18]>
//   Twice (x) => (y) { y = Add(x, x) }
#ifndef ONWARD_CORE_ONNX_IO_FUNCTION_TEXT_H_
#define ONWARD_CORE_ONNX_IO_FUNCTION_TEXT_H_

#include <string>

#include "absl/status/statusor.h"
#include "core/graph/graph.h"

namespace onward {

struct NamedFunction {
  FunctionKey key;
  Function function;
};

absl::StatusOr<NamedFunction> ParseFunctionText(const std::string& text);

}  // namespace onward

#endif  // ONWARD_CORE_ONNX_IO_FUNCTION_TEXT_H_
