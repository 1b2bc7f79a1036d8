// SPDX-License-Identifier: Apache-2.0
// Reverse-mode differentiation of a graph. The result is the same graph with
// more nodes: standard ONNX operators and calls of ai.onward functions, whose
// bodies are standard ONNX.
#ifndef ONWARD_AUTOGRAD_DIFFERENTIATE_H_
#define ONWARD_AUTOGRAD_DIFFERENTIATE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "autograd/rule.h"
#include "core/graph/graph.h"
#include "core/graph/operator_set.h"

namespace onward {

struct DifferentiateOptions {
  const OperatorSet* operators = nullptr;  // required
  const RuleTable* rules = nullptr;        // required
  // The value the gradient of y starts from; "" means ones of y's shape.
  std::string seed;
  // Prefix of generated values; "" means "<y>__vjp".
  std::string prefix;
  // Names that generated values must not take, beside those of the graph.
  std::vector<std::string> reserved;
};

struct Gradients {
  Graph graph;                      // the input graph, extended
  std::vector<std::string> values;  // gradient of y by xs[i]
};

// Fails with one message that lists every operator on a path from an x to y
// that has neither rule nor function body, with the path and the remedy.
// An x that y does not depend on gets zeros.
absl::StatusOr<Gradients> Differentiate(const Graph& graph, const std::string& y,
                                        const std::vector<std::string>& xs,
                                        const DifferentiateOptions& options);

}  // namespace onward

#endif  // ONWARD_AUTOGRAD_DIFFERENTIATE_H_
