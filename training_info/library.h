// SPDX-License-Identifier: Apache-2.0
// The operators Onward knows: the standard's and its own functions.
#ifndef ONWARD_TRAINING_INFO_LIBRARY_H_
#define ONWARD_TRAINING_INFO_LIBRARY_H_

#include "core/graph/function_library.h"
#include "core/graph/operator_set.h"

namespace onward {

// Gradient functions and optimizer steps. Both live for the whole process.
const FunctionLibrary& Functions();
const OperatorSet& Operators();

// Whether `function`, found in a file, is exactly what Functions() holds for
// this call: then a fused kernel may run it.
bool IsLibraryFunction(const Node& call, const Function& function);
// The function as files carry it: untyped, so that it serves every float type.
absl::StatusOr<Function> FileFunction(const Node& call);

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_LIBRARY_H_
