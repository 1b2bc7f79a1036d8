// SPDX-License-Identifier: Apache-2.0
// From a training graph as a file gives it to one the runtime can compile:
// functions inlined, opset raised, Gradient nodes expanded.
#ifndef ONWARD_TRAINING_INFO_LOWER_H_
#define ONWARD_TRAINING_INFO_LOWER_H_

#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "core/graph/graph.h"
#include "core/onnx_io/model.h"
#include "environment/environment.h"

namespace onward {

// Raises to the canonical opset, keeping calls that IsLibraryCall accepts, replaces other
// people's operators by their bodies, sees the operators behind chains of smaller ones, and expands
// every Gradient node. `variables` are initializers that change between runs.
absl::StatusOr<Graph> Lower(const Graph& combined, const Environment& environment,
                            const std::set<std::string>& variables = {});

struct RunnableOptions {
  std::vector<std::string> outputs = {};  // the only ones that are wanted; none: all
  // ZipMap's scores as the tensor it takes, not as maps.
  bool drop_zipmap = false;
};

// The inference graph of a model, ready for the runtime: Lower of what the wanted outputs
// need.
absl::StatusOr<Graph> RunnableGraph(const Model& model, const Environment& environment,
                                    const RunnableOptions& options = {});

// Only the last part: replaces Gradient nodes by the graphs they stand for.
// Names not listed in xs or zs are constants; members of zs are too, even where
// they depend on an x; an input other than the tensor it is named for evaluates
// the function at that value; y of any shape is summed.
absl::StatusOr<Graph> ExpandGradients(const Graph& graph, const Environment& environment);

// Inlines the bodies of all ai.onward calls; with `optimizers` also those of Adam, Adagrad
// and Momentum, which few runtimes know. What is left is standard operators.
absl::StatusOr<Graph> InlineOwnFunctions(const Graph& graph, const Environment& environment,
                                         bool optimizers = false);

// Puts the bodies of other people's operators in their places, so that what follows sees
// standard ones: patterns, rules, fusion, other runtimes. What cannot be written yet (a rank
// may be known at run time only) stays, and so does what a plugin computes or differentiates
// itself.
absl::Status ExpandForeignCalls(const Environment& environment, Graph* graph);

// The graph as it is written: functions inlined, other people's operators replaced by their
// bodies where these are known, checked, opset at least 18.
absl::StatusOr<Graph> WritableGraph(const Graph& graph, const Environment& environment);

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_LOWER_H_
