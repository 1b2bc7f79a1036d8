// SPDX-License-Identifier: Apache-2.0
// Random numbers in bodies. The gradient must not draw others: the forward node also gives what it
// drew, however deep inside, and what is differentiated is the same node reading that instead.
#ifndef ONWARD_AUTOGRAD_RULES_REPLAY_H_
#define ONWARD_AUTOGRAD_RULES_REPLAY_H_

#include <vector>

#include "core/graph/builder.h"
#include "core/graph/graph.h"

namespace onward {

// A body in two forms. What cannot be typed, or not be handed out, is drawn in both.
struct Replay {
  Graph drawing;    // has each of `drawn` among its own values
  Graph replaying;  // has them as further inputs, behind its own
  std::vector<NamedType> drawn;
};
// `inputs` are the types of the body's inputs, `around` knows what it captures.
Replay ReplayBody(const Graph& body, const std::vector<ValueType>& inputs, GraphBuilder& around);

// An If, likewise.
struct ReplayedIf {
  Node drawing;    // gives each of `drawn` behind its own outputs; a placeholder where the
                   // branch that draws it does not run
  Node replaying;  // its branches capture them
  std::vector<NamedType> drawn;
};
ReplayedIf ReplayIf(const Node& node, GraphBuilder& around);

// Whether the draws of a Scan can be handed out by a Scan: all have one shape.
bool ReplaysAsScan(const Node& scan, GraphBuilder& around);

}  // namespace onward

#endif  // ONWARD_AUTOGRAD_RULES_REPLAY_H_
