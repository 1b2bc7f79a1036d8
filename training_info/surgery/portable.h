// SPDX-License-Identifier: Apache-2.0
// What a training step needs to mean the same in other runtimes, which run it as a plain model.
#ifndef ONWARD_TRAINING_INFO_SURGERY_PORTABLE_H_
#define ONWARD_TRAINING_INFO_SURGERY_PORTABLE_H_

#include "absl/status/status.h"
#include "core/graph/graph.h"
#include "core/graph/operator_set.h"

namespace onward {

// Lets nodes that compute with float16 or bfloat16 compute with float, and rounds what they give to
// these types: the numbers are those of a kernel that sums in float and rounds once, as ours do.
// Others have no kernels for bfloat16 (onnxruntime on the CPU), or leave out the rounding between
// two nodes, so that nothing overflows there. What only moves values stays as it is.
absl::Status ComputeHalvesInFloat(const OperatorSet& operators, Graph* graph);

// Gives BatchNormalization in training mode copies of the statistics that others read, too:
// onnxruntime's writes the new ones into its inputs.
absl::Status CopyTrainedStatistics(Graph* graph);

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_SURGERY_PORTABLE_H_
