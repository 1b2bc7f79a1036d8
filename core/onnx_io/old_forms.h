// SPDX-License-Identifier: Apache-2.0
// What the converter of onnx leaves out when it raises a graph to newer operator forms.
#ifndef ONWARD_CORE_ONNX_IO_OLD_FORMS_H_
#define ONWARD_CORE_ONNX_IO_OLD_FORMS_H_

#include "absl/status/statusor.h"
#include "core/graph/graph.h"

namespace onward {

// Before: operators that were defined for integers, and no longer are at opset `target`, take
// doubles there, and their results are cut: logarithms of sums (until opset 27), Erf (until 12).
// `typed` is the same graph with the types of its values.
void WidenIntegers(const Graph& typed, int target, Graph* graph);

// Before, at opset 10: Upsample, which it has withdrawn, is the Resize that it has instead.
void ReplaceUpsample(Graph* graph);

// After, for graphs of opset 10 and below: how Upsample and Resize count pixels, and bounds of
// Clip and values of Pad in the type of what they go with. `typed` is the graph before.
absl::StatusOr<Graph> WithFormsOfOpset10(Graph raised, const Graph& typed);

// After, for graphs of opset 20 and below: GroupNormalization has a scale and a bias for each
// group, and computes in the type of its tensor. The converter leaves it as it is.
absl::StatusOr<Graph> WithScalesOfChannels(Graph raised, const Graph& typed);

}  // namespace onward

#endif  // ONWARD_CORE_ONNX_IO_OLD_FORMS_H_
