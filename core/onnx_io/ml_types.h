// SPDX-License-Identifier: Apache-2.0
// What operators of ai.onnx.ml give, where onnx's own inference leaves it open.
#ifndef ONWARD_CORE_ONNX_IO_ML_TYPES_H_
#define ONWARD_CORE_ONNX_IO_ML_TYPES_H_

#include <vector>

#include "core/graph/operator_set.h"

namespace onward {

// Fills in what is certain of `types`, one for each output of a node of ai.onnx.ml.
void CompleteMlTypes(const Node& node, absl::Span<const InputFact> inputs,
                     std::vector<ValueType>* types);

}  // namespace onward

#endif  // ONWARD_CORE_ONNX_IO_ML_TYPES_H_
