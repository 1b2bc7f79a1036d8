// SPDX-License-Identifier: Apache-2.0
// OperatorSet from onnx's schemas, together with a library of Onward's own
// functions.
#ifndef ONWARD_CORE_ONNX_IO_OPERATORS_H_
#define ONWARD_CORE_ONNX_IO_OPERATORS_H_

#include <memory>

#include "core/graph/function_library.h"
#include "core/graph/operator_set.h"

namespace onward {

// `library` must outlive the result; null: standard operators only.
std::unique_ptr<OperatorSet> MakeOnnxOperators(const FunctionLibrary* library);

}  // namespace onward

#endif  // ONWARD_CORE_ONNX_IO_OPERATORS_H_
