// SPDX-License-Identifier: Apache-2.0
// Graphs of other files as parts of one that is written: losses and optimizers of somebody's
// own.
#ifndef ONWARD_TRAINING_INFO_FOREIGN_GRAPH_H_
#define ONWARD_TRAINING_INFO_FOREIGN_GRAPH_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/graph/builder.h"

namespace onward {

// The inference graph of the file, checked, without functions, and at least at opset
// kOldestWrittenOpset.
absl::StatusOr<Graph> ReadForeignGraph(const std::string& path);

// Raises the foreign graph to the operator set of `graph`. It is an error where it is newer.
absl::Status FitOpset(const std::string& path, const Graph& graph, Graph* foreign);

// Writes the nodes of the graph behind those of the builder, with these values in the place of
// its inputs (undefined: that of the initializer of the same name). Its outputs, in their
// order.
absl::StatusOr<std::vector<Expr>> InsertGraph(const Graph& foreign, const std::string& prefix,
                                              const std::vector<Expr>& inputs, GraphBuilder& b);

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_FOREIGN_GRAPH_H_
