// SPDX-License-Identifier: Apache-2.0
// What an operator demands of its attributes, and of the ranks, sizes and small
// constants of its inputs, as one table. Shape inference, folding, fusion,
// gradient rules and kernel factories may rely on every row of it; nothing else
// has to check the same again. Element types are the schema's business
// (core/onnx_io/operand_types.h).
#ifndef ONWARD_CORE_GRAPH_CONSTRAINTS_CONSTRAINTS_H_
#define ONWARD_CORE_GRAPH_CONSTRAINTS_CONSTRAINTS_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/graph/operator_set.h"

namespace onward {

// Each demand that `node` breaks, without the node's name; empty if it breaks none.
// What is not known yet (a rank, a size, a value) breaks nothing. `version` is that
// of the schema the node binds to.
std::vector<std::string> BrokenConstraints(const Node& node, absl::Span<const InputFact> inputs,
                                           int version);

// Whether the table has a row for the operator ("Softmax", "ai.onnx.ml.Scaler").
bool HasConstraints(const std::string& op);

}  // namespace onward

#endif  // ONWARD_CORE_GRAPH_CONSTRAINTS_CONSTRAINTS_H_
