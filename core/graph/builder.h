// SPDX-License-Identifier: Apache-2.0
// Writing ONNX as formulas. A GraphBuilder appends nodes to a graph; an Expr is
// a value in it, and operators on Exprs emit nodes:
//
//   Expr ydy = y * dy;
//   Expr dx = ydy - y * ReduceSum(ydy, {-1});
//
// Only operator forms that mean the same from opset 18 to 28 are emitted.
// Errors are sticky: the builder keeps the first one, later calls do nothing
// harmful, and status() tells at the end.
#ifndef ONWARD_CORE_GRAPH_BUILDER_H_
#define ONWARD_CORE_GRAPH_BUILDER_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "core/graph/graph.h"
#include "core/graph/name_scope.h"
#include "core/graph/operator_set.h"

namespace onward {

class GraphBuilder;

class Expr {
 public:
  Expr() = default;  // an omitted optional input
  Expr(GraphBuilder* builder, std::string name) : builder_(builder), name_(std::move(name)) {}
  const std::string& name() const { return name_; }
  GraphBuilder& builder() const { return *builder_; }
  bool defined() const { return builder_ != nullptr && !name_.empty(); }

  // What is known of the value (never null; may be unranked/undefined).
  const ValueType& type() const;
  DType dtype() const { return type().dtype; }
  int rank() const { return type().rank(); }  // -1: not known
  // Dimension i (negative from the end) if known, else -1.
  int64_t dim(int i) const;

 private:
  GraphBuilder* builder_ = nullptr;
  std::string name_;
};

class GraphBuilder {
 public:
  // Appends to `graph`; new values are named `prefix` + a number or hint, made
  // unique in the graph. `operators` (may be null) gives new values their types.
  GraphBuilder(Graph* graph, const OperatorSet* operators, std::string prefix = "t");
  // The same for a body: `names` are those of the graph around it, which new values must
  // not take either.
  GraphBuilder(Graph* graph, const OperatorSet* operators, std::string prefix, NameScope* names);
  GraphBuilder(const GraphBuilder&) = delete;
  GraphBuilder& operator=(const GraphBuilder&) = delete;

  Graph& graph() { return *graph_; }
  const OperatorSet* operators() const { return operators_; }
  const absl::Status& status() const { return status_; }
  // Keeps the first error and returns an Expr that is safe to go on with.
  Expr Fail(absl::Status status);
  // Takes that error back.
  void Forget() { status_ = absl::OkStatus(); }

  // An existing value.
  Expr Value(std::string name);
  Expr Input(std::string name, ValueType type);
  // A new initializer-like constant (a Constant node; equal scalars are shared).
  Expr Constant(const Tensor& value);
  Expr Ints(std::vector<int64_t> values);  // 1-D int64
  Expr Int(int64_t value);                 // scalar int64
  // A scalar of the same type as `like`.
  Expr Scalar(double value, const Expr& like);
  // A float attribute of the call whose body is written, as a double scalar: its value,
  // or where `call` has a reference to it, a constant that refers to it.
  Expr AttributeNumber(const Node& call, const std::string& attribute, float otherwise);

  Expr Op(std::string_view op, std::vector<Expr> inputs, Attributes attributes = {},
          std::string_view domain = "", std::string_view output_hint = "");
  std::vector<Expr> Ops(std::string_view op, std::vector<Expr> inputs, int outputs,
                        Attributes attributes = {}, std::string_view domain = "");
  // Appends a prepared node (names must be final) and infers its types.
  void Append(Node node);
  // Gives an existing value another name by an Identity node.
  Expr Named(const Expr& e, std::string name);
  void Output(const Expr& e);
  std::string UniqueName(std::string_view base);
  // The names of the graph, and those that new values must not take.
  NameScope& names() { return *names_; }

  // The constant value of a value, where an initializer or Constant node tells.
  const Tensor* ConstantOf(const std::string& value) const;
  InputFact FactOf(const std::string& value) const {
    return {graph_->TypeOf(value), ConstantOf(value)};
  }
  // Types of the outputs of a node on values of this graph.
  absl::StatusOr<std::vector<ValueType>> TypesOf(const Node& node) const;

 private:
  void RememberConstants();
  void RememberConstant(const Node& node);
  void InferTypes(const Node& node);

  Graph* graph_;
  const OperatorSet* operators_;
  std::string prefix_;
  absl::Status status_;
  NameScope own_names_;
  NameScope* names_ = &own_names_;
  absl::flat_hash_map<std::string, Tensor> constants_;
  absl::flat_hash_map<std::string, std::string> shared_constants_;  // bytes -> value
};

Expr operator+(const Expr& a, const Expr& b);
Expr operator-(const Expr& a, const Expr& b);
Expr operator*(const Expr& a, const Expr& b);
Expr operator/(const Expr& a, const Expr& b);
Expr operator+(const Expr& a, double b);
Expr operator-(const Expr& a, double b);
Expr operator*(const Expr& a, double b);
Expr operator/(const Expr& a, double b);
Expr operator+(double a, const Expr& b);
Expr operator-(double a, const Expr& b);
Expr operator*(double a, const Expr& b);
Expr operator/(double a, const Expr& b);
Expr operator-(const Expr& a);

// Operators by their ONNX names.
Expr Abs(const Expr& x);
Expr Cast(const Expr& x, DType to);
Expr CastLike(const Expr& x, const Expr& like);
Expr Concat(std::vector<Expr> xs, int64_t axis);
Expr Cos(const Expr& x);
Expr Equal(const Expr& a, const Expr& b);
Expr Erf(const Expr& x);
Expr Exp(const Expr& x);
Expr Expand(const Expr& x, const Expr& shape);
Expr Gather(const Expr& x, const Expr& indices, int64_t axis = 0);
Expr Greater(const Expr& a, const Expr& b);
Expr GreaterOrEqual(const Expr& a, const Expr& b);
Expr Less(const Expr& a, const Expr& b);
Expr LessOrEqual(const Expr& a, const Expr& b);
Expr Log(const Expr& x);
Expr MatMul(const Expr& a, const Expr& b);
Expr Max(const Expr& a, const Expr& b);
Expr Min(const Expr& a, const Expr& b);
Expr Not(const Expr& x);
Expr And(const Expr& a, const Expr& b);
Expr Or(const Expr& a, const Expr& b);
Expr Pow(const Expr& a, const Expr& b);
Expr Pow(const Expr& a, double b);
// Empty axes reduce nothing (noop_with_empty_axes), as a rule means it.
Expr ReduceSum(const Expr& x, std::vector<int64_t> axes, bool keepdims = true);
Expr ReduceSum(const Expr& x, const Expr& axes, bool keepdims = true);
Expr ReduceSumAll(const Expr& x, bool keepdims = false);
Expr ReduceMean(const Expr& x, std::vector<int64_t> axes, bool keepdims = true);
Expr Reshape(const Expr& x, std::vector<int64_t> shape);
Expr Reshape(const Expr& x, const Expr& shape);
Expr ReshapeLike(const Expr& x, const Expr& like);
Expr ShapeOf(const Expr& x);
// Elements [start, end) of ShapeOf(x).
Expr ShapeOf(const Expr& x, int64_t start, int64_t end);
// The number of elements of x as a scalar int64.
Expr SizeOf(const Expr& x);
Expr Sigmoid(const Expr& x);
Expr Sign(const Expr& x);
Expr Sin(const Expr& x);
Expr Slice(const Expr& x, const Expr& starts, const Expr& ends, const Expr& axes,
           const Expr& steps = {});
Expr Sqrt(const Expr& x);
Expr Squeeze(const Expr& x, std::vector<int64_t> axes);
Expr Tanh(const Expr& x);
Expr Transpose(const Expr& x, std::vector<int64_t> perm);
Expr Unsqueeze(const Expr& x, std::vector<int64_t> axes);
Expr Where(const Expr& condition, const Expr& a, const Expr& b);
// 16-bit floats as float, anything else as it is.
Expr Widened(const Expr& x);
Expr ZerosLike(const Expr& x);
Expr OnesLike(const Expr& x);

}  // namespace onward

#endif  // ONWARD_CORE_GRAPH_BUILDER_H_
