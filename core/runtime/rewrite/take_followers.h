// SPDX-License-Identifier: Apache-2.0
// What a fused operator may take along: steps of the rewrites in fuse.h.
#ifndef ONWARD_CORE_RUNTIME_REWRITE_TAKE_FOLLOWERS_H_
#define ONWARD_CORE_RUNTIME_REWRITE_TAKE_FOLLOWERS_H_

#include <string>

#include "core/graph/graph.h"
#include "core/graph/patterns/pattern.h"

namespace onward {

// Whether the result of `follower` is as large as `value`, which it reads: an Add may spread it.
bool KeepsShape(const PatternGraph& graph, const Node& follower, const std::string& value);

// What an Add of two different values adds to `value`; "" if it is no such node.
std::string OtherOperand(const Node& add, const std::string& value);

// Makes what `add` adds to the result of `fused` its input number `input`, if both
// have the same shape; false leaves `fused` as it was.
bool TakeResidual(const PatternGraph& graph, const Node& add, int input, Node* fused);

// Notes a Relu, or a Clip between constants, of the result of `fused` in its attributes.
bool TakeActivation(const PatternGraph& graph, const Node& activation, Node* fused);

}  // namespace onward

#endif  // ONWARD_CORE_RUNTIME_REWRITE_TAKE_FOLLOWERS_H_
