// SPDX-License-Identifier: Apache-2.0
// Scan and SequenceMap as Loop: what differentiation turns to where only a Loop can carry what
// the gradient needs (sequences), or hand out what a body draws.
#ifndef ONWARD_AUTOGRAD_AS_LOOP_H_
#define ONWARD_AUTOGRAD_AS_LOOP_H_

#include <vector>

#include "absl/status/statusor.h"
#include "core/graph/builder.h"
#include "core/graph/graph.h"

namespace onward {

// Nodes that give the outputs of the Scan or SequenceMap, a Loop among them. `b` knows what they
// read, and gives new names. Fails for a Scan whose outputs would have to be transposed although
// nothing tells their rank.
absl::StatusOr<std::vector<Node>> AsLoop(const Node& node, GraphBuilder& b);

}  // namespace onward

#endif  // ONWARD_AUTOGRAD_AS_LOOP_H_
