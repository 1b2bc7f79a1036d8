// SPDX-License-Identifier: Apache-2.0
// The training graph of one entry: inference graph ++ algorithm.
#ifndef ONWARD_TRAINING_INFO_COMBINE_H_
#define ONWARD_TRAINING_INFO_COMBINE_H_

#include "absl/status/statusor.h"
#include "training_info/spec.h"

namespace onward {

// Whether the algorithm is of the 1.7 kind: complete in itself and calling the
// inference graph through GraphCall nodes.
bool UsesGraphCall(const Graph& algorithm);

// Concatenation of inputs, initializers, outputs, nodes and types, in the
// standard's order. For the 1.7 kind the calls are replaced by the inference
// nodes and nothing else of that graph is joined. Outputs that both list stand
// once.
absl::StatusOr<Graph> Combine(const TrainingSpec& spec, int entry);

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_COMBINE_H_
