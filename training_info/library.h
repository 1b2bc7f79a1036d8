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

// Whether a call in a file with these operator sets means what Functions() holds, so
// that a fused kernel may run it instead of the body that the file carries.
bool IsLibraryCall(const Node& call, const std::map<std::string, int>& opsets);
// The function as files carry it: untyped, so that it serves every float type, and with
// references to the attributes of its calls.
absl::StatusOr<Function> FileFunction(const Node& call);

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_LIBRARY_H_
