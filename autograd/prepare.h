// SPDX-License-Identifier: Apache-2.0
// The forward graph as differentiation needs it: typed, and with a name for
// every unknown dimension so that equal shapes can be recognised.
#ifndef ONWARD_AUTOGRAD_PREPARE_H_
#define ONWARD_AUTOGRAD_PREPARE_H_

#include <optional>

#include "absl/status/statusor.h"
#include "autograd/rule.h"
#include "core/graph/constant.h"
#include "core/graph/graph.h"
#include "core/graph/name_scope.h"
#include "core/graph/operator_set.h"

namespace onward {

// A typed copy of `graph`. Calls of model functions and of SequenceMap that draw random
// numbers are inlined, since a second evaluation of such a body would draw others. A Scan
// whose gradient no Scan can be becomes a Loop: one that captures a sequence, or draws
// numbers of changing shapes. `next_dim` counts the names given; those of `names`,
// where it is a body, are taken around it.
absl::StatusOr<Graph> PrepareForward(const Graph& graph, const OperatorSet& operators,
                                     const RuleTable& rules, int* next_dim,
                                     NameScope* names = nullptr);

// Gives names to the unknown dimensions of a value that was added later; `next`
// counts them.
void NameDims(ValueType* type, int* next);

// Takes the names that PrepareForward and NameDims gave to dimensions back.
void ForgetDimNames(Graph* graph);
void ForgetDimNames(ValueType* type);

// Whether a node draws random numbers, itself or in a body or function it runs. A Dropout that
// is not told to train passes its input on.
bool DrawsRandom(const Graph& root, const Node& node);

}  // namespace onward

#endif  // ONWARD_AUTOGRAD_PREPARE_H_
