// SPDX-License-Identifier: Apache-2.0
// A graph and the bodies inside it as one list of nodes, for looking at what values are for.
#ifndef ONWARD_TRAINING_INFO_SURGERY_FLAT_GRAPH_H_
#define ONWARD_TRAINING_INFO_SURGERY_FLAT_GRAPH_H_

#include <vector>

#include "core/graph/graph.h"

namespace onward {

// The nodes in order, bodies of If, Loop and Scan in place of their nodes. Values that go
// into a body and out of it are joined by Identity nodes. A value that a loop carries and
// changes is joined to the body by a node "Carry": what it starts from is not what it holds.
// Bodies of branches may use a name twice; this is for reading, not for running.
std::vector<Node> FlatNodes(const Graph& graph);

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_SURGERY_FLAT_GRAPH_H_
