// SPDX-License-Identifier: Apache-2.0
// What the operator standard says of a node. core/onnx_io implements it with
// onnx's schemas; passing it in keeps graph, autograd and runtime free of
// protobuf.
#ifndef ONWARD_CORE_GRAPH_OPERATOR_SET_H_
#define ONWARD_CORE_GRAPH_OPERATOR_SET_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/graph/graph.h"

namespace onward {

struct FunctionTraits;  // function_library.h

// One input of a node as inference sees it.
struct InputFact {
  const ValueType* type = nullptr;   // null: omitted or unknown
  const Tensor* constant = nullptr;  // its value, where known
};

class OperatorSet {
 public:
  virtual ~OperatorSet() = default;
  // Types of the outputs, one per node.outputs entry. Unknown parts stay
  // unknown; contradictions are errors that name the node.
  virtual absl::StatusOr<std::vector<ValueType>> Infer(
      const Node& node, absl::Span<const InputFact> inputs,
      const std::map<std::string, int>& opsets) const = 0;
  // Every demand of the operator that this call breaks, without the node's name:
  // counts, attributes (constraints.h), element types. Infer refuses such a call
  // before anything else looks at it.
  virtual std::vector<std::string> BrokenDemands(
      const Node& node, absl::Span<const InputFact> inputs,
      const std::map<std::string, int>& opsets) const = 0;
  // The body the standard (or Onward's own library) gives for this call, its
  // formal inputs and outputs in the call's order; nullopt if there is none.
  virtual absl::StatusOr<std::optional<Function>> FunctionBody(
      const Node& node, absl::Span<const InputFact> inputs,
      const std::map<std::string, int>& opsets) const = 0;
  // Whether this call uses only the type and shape of input i.
  virtual bool ShapeOnly(const Node& node, int input) const = 0;
  // What is declared of the function that this node calls; null where it calls none.
  virtual const FunctionTraits* Traits(const Node& node) const = 0;
  // The version of the schema or function this node binds to; 0: nobody knows the operator.
  virtual int SinceVersion(const Node& node, const std::map<std::string, int>& opsets) const = 0;
};

}  // namespace onward

#endif  // ONWARD_CORE_GRAPH_OPERATOR_SET_H_
