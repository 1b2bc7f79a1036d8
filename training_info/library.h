// SPDX-License-Identifier: Apache-2.0
// Onward's own functions in files.
#ifndef ONWARD_TRAINING_INFO_LIBRARY_H_
#define ONWARD_TRAINING_INFO_LIBRARY_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "core/graph/function_library.h"

namespace onward {

// Whether a call in a file with these operator sets means what the library holds, so
// that a fused kernel may run it instead of the body that the file carries.
bool IsLibraryCall(const FunctionLibrary& library, const Node& call,
                   const std::map<std::string, int>& opsets);
// The function as files carry it: untyped, so that it serves every float type, and with
// references to the attributes of its calls. It imports the file's `opset`: onnx's checker
// refuses a function whose operators have newer forms around it, though it may use the old ones.
absl::StatusOr<Function> FileFunction(const FunctionLibrary& library, const Node& call, int opset);

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_LIBRARY_H_
