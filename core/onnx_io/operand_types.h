// SPDX-License-Identifier: Apache-2.0
// Element types of operands against an operator's schema: each is one the operator is
// defined for, and those that share a type variable are alike.
#ifndef ONWARD_CORE_ONNX_IO_OPERAND_TYPES_H_
#define ONWARD_CORE_ONNX_IO_OPERAND_TYPES_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/graph/operator_set.h"
#include "onnx/defs/schema.h"

namespace onward {

// What is wrong with the number of the node's inputs and outputs, and with the types
// of its inputs. Inputs of unknown type are left out.
std::vector<std::string> BrokenOperands(const onnx::OpSchema& schema, const Node& node,
                                        absl::Span<const InputFact> inputs);

// What is wrong with the types that inference gave the outputs.
std::vector<std::string> BrokenResults(const onnx::OpSchema& schema, const Node& node,
                                       absl::Span<const ValueType> outputs);

}  // namespace onward

#endif  // ONWARD_CORE_ONNX_IO_OPERAND_TYPES_H_
