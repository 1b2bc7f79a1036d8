// SPDX-License-Identifier: Apache-2.0
// Reverse-mode differentiation of a graph. The result is the same graph with
// more nodes: standard ONNX operators and calls of ai.onward functions, whose
// bodies are standard ONNX.
#ifndef ONWARD_AUTOGRAD_DIFFERENTIATE_H_
#define ONWARD_AUTOGRAD_DIFFERENTIATE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "autograd/report.h"
#include "autograd/rule.h"
#include "core/graph/graph.h"
#include "core/graph/operator_set.h"

namespace onward {

struct DifferentiateOptions {
  const OperatorSet* operators = nullptr;  // required
  const RuleTable* rules = nullptr;        // required
  // Prefix of generated values; "" means "<y>__vjp".
  std::string prefix;
  // Values past which no gradient is handed on: they count as constants, but one that is
  // an x gets its own gradient.
  std::vector<std::string> stop;
  // Names that generated values must not take, beside those of the graph.
  std::vector<std::string> reserved;
};

struct Gradients {
  Graph graph;                      // the input graph, extended
  std::vector<std::string> values;  // gradient by xs[i]
};

// A value that is differentiated, and the value its gradient starts from; "" means ones of
// its shape.
struct SeededValue {
  std::string value;
  std::string seed;
};

// Derivatives of the sum of all ys, each multiplied with its seed and summed. Fails with one
// message that lists every node on a path from an x to a y that no gradient passes, with
// the reason, the path, what it blocks, and the remedy. An x that no y depends on gets
// zeros.
absl::StatusOr<Gradients> Differentiate(const Graph& graph, const std::vector<SeededValue>& ys,
                                        const std::vector<std::string>& xs,
                                        const DifferentiateOptions& options);
absl::StatusOr<Gradients> Differentiate(const Graph& graph, const std::string& y,
                                        const std::vector<std::string>& xs,
                                        const DifferentiateOptions& options);

// Which xs get a gradient, which cannot and why, without the gradients. Errors are those of
// the graph.
absl::StatusOr<GradientReport> ReportGradients(const Graph& graph, const std::string& y,
                                               const std::vector<std::string>& xs,
                                               const DifferentiateOptions& options);

}  // namespace onward

#endif  // ONWARD_AUTOGRAD_DIFFERENTIATE_H_
