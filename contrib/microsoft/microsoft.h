// SPDX-License-Identifier: Apache-2.0
// The operators that onnxruntime adds to the standard's (docs/contrib.md), as functions with
// bodies in standard operators: so they run, are differentiated and can be exported.
#ifndef ONWARD_CONTRIB_MICROSOFT_MICROSOFT_H_
#define ONWARD_CONTRIB_MICROSOFT_MICROSOFT_H_

#include "core/graph/function_library.h"

namespace onward {

void RegisterMicrosoftFunctions(FunctionLibrary& library);

}  // namespace onward

#endif  // ONWARD_CONTRIB_MICROSOFT_MICROSOFT_H_
