// SPDX-License-Identifier: Apache-2.0
// Scan as opset 8 has it: over a batch of sequences, each of a length of its own. onnx's
// converter drops batch and lengths; here such nodes pass it in disguise, and become a Loop
// over the batch with today's Scan inside.
#ifndef ONWARD_CORE_ONNX_IO_BATCH_SCAN_H_
#define ONWARD_CORE_ONNX_IO_BATCH_SCAN_H_

#include "absl/status/status.h"
#include "core/graph/graph.h"
#include "core/graph/name_scope.h"

namespace onward {

// Puts the graph's Scan nodes, those in bodies included, into a domain that the converter
// leaves alone.
void DisguiseBatchScans(Graph* graph);
// Replaces them, in a graph of opset 18 or later.
absl::Status ExpandBatchScans(NameScope* names, Graph* graph);

}  // namespace onward

#endif  // ONWARD_CORE_ONNX_IO_BATCH_SCAN_H_
