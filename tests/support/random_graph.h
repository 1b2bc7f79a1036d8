// SPDX-License-Identifier: Apache-2.0
// Graphs of 5 to 40 nodes, drawn at random. A graph is the same on every machine.
#ifndef ONWARD_TESTS_SUPPORT_RANDOM_GRAPH_H_
#define ONWARD_TESTS_SUPPORT_RANDOM_GRAPH_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "autograd/differentiate.h"
#include "core/graph/builder.h"
#include "core/graph/graph.h"
#include "core/runtime/execute/executor.h"
#include "tests/support/case_draws.h"

namespace onward {

// A graph on matrices of doubles. Every value has rank 2 and numbers of moderate size.
class RandomGraph {
 public:
  explicit RandomGraph(int number);
  RandomGraph(const RandomGraph&) = delete;
  RandomGraph& operator=(const RandomGraph&) = delete;

  const absl::Status& status() const { return b_.status(); }
  // Of the loss by all inputs.
  absl::StatusOr<Gradients> Differentiated() const;
  // Numbers for the inputs.
  TensorMap Feeds(Draws& draws) const;

  Graph graph;
  std::vector<std::string> inputs;
  std::vector<Shape> shapes;
  std::string loss;

 private:
  Expr Any();
  // Any other value in a shape that broadcasts against x.
  Expr Against(const Expr& x);
  int64_t Axis() { return draws_.Below(2); }
  Expr Draw();
  Expr Smooth(const Expr& x);
  Expr Bent(const Expr& x);
  Expr Pair(const Expr& x);
  Expr Moved(const Expr& x);
  Expr Joined(const Expr& x);

  Draws draws_;
  GraphBuilder b_;
  std::vector<Expr> values_;
};

}  // namespace onward

#endif  // ONWARD_TESTS_SUPPORT_RANDOM_GRAPH_H_
