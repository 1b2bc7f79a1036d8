// SPDX-License-Identifier: Apache-2.0
// Operators that onnxruntime has in the standard's domain, at opsets where the standard has
// none of that name: LayerNormalization before 17, SimplifiedLayerNormalization, and those that
// the standard dropped. Read from a file they belong to com.microsoft, where the library has
// them; written, they stand where onnxruntime looks for them.
#ifndef ONWARD_CORE_ONNX_IO_RUNTIME_OPERATORS_H_
#define ONWARD_CORE_ONNX_IO_RUNTIME_OPERATORS_H_

#include "core/graph/graph.h"

namespace onward {

// Moves such nodes of a graph that was read, those in bodies and functions included.
void AdoptRuntimeOperators(Graph* graph);
// Puts them into a domain that onnx's converter leaves alone, and back.
void DisguiseRuntimeOperators(Graph* graph);
void UndisguiseRuntimeOperators(Graph* graph);
// Whether a file has the node in the standard's domain.
bool IsWrittenAsStandard(const Node& node);

}  // namespace onward

#endif  // ONWARD_CORE_ONNX_IO_RUNTIME_OPERATORS_H_
