// SPDX-License-Identifier: Apache-2.0
// The gradients of a body of If, Loop or Scan, as nodes of a new body.
#ifndef ONWARD_AUTOGRAD_BODY_H_
#define ONWARD_AUTOGRAD_BODY_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "core/graph/builder.h"
#include "core/graph/graph.h"

namespace onward {

struct BodyRequest {
  const Graph* body = nullptr;
  std::vector<ValueType> inputs = {};  // types of its own inputs
  // The outputs that gradients arrive through, and what those are called: values
  // around the new body, or inputs that the caller gives it.
  std::vector<std::pair<int, std::string>> seeds = {};
  std::vector<int> by_inputs = {};            // own inputs whose gradients are wanted
  std::vector<std::string> by_captured = {};  // captured values whose gradients are
};

struct BodyGradients {
  // What of the body is needed, under new names, then the gradients. Types are those
  // of the values inside and around it; inputs and outputs are the caller's to declare.
  Graph graph;
  std::vector<std::string> inputs;     // new names of the body's own inputs; "": not read
  std::vector<std::string> gradients;  // by_inputs, then by_captured; all distinct
};

// A new body that captures by name. Types of `around` are at hand inside it; names of its
// values are free around it.
class BodyBuilder {
 public:
  BodyBuilder(GraphBuilder& around, Graph graph);
  // `graph` is declared its inputs and outputs by Input and Output of the builder.
  GraphBuilder& b() { return builder_; }
  // A value around the body.
  Expr Captured(const Expr& value);
  // A new value inside that the node gives.
  Expr Give(std::string name, Node node);
  // The body, its nodes in order.
  absl::StatusOr<Attribute::Body> Finish();

 private:
  GraphBuilder& around_;
  Graph graph_;
  GraphBuilder builder_;
};

// A body of one expression: each(builder, its inputs).
absl::StatusOr<Attribute::Body> MakeBody(
    GraphBuilder& around, const std::vector<ValueType>& inputs,
    absl::FunctionRef<Expr(GraphBuilder&, const std::vector<Expr>&)> each);

}  // namespace onward

#endif  // ONWARD_AUTOGRAD_BODY_H_
