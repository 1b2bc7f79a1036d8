// SPDX-License-Identifier: Apache-2.0
// Sums of the gradients of a sequence.
#include <utility>

#include "autograd/functions.h"
#include "autograd/values.h"

namespace onward {
namespace {

// Element by element; a zero may stand for zeros of any shape.
std::vector<Expr> SequenceSumBody(GraphBuilder&, const Node&, const std::vector<Expr>& in) {
  return {MapSequences({in[0], in[1]},
                       [](GraphBuilder&, const std::vector<Expr>& x) { return x[0] + x[1]; })};
}

absl::StatusOr<std::vector<ValueType>> SequenceSumTypes(const Node& call,
                                                        absl::Span<const InputFact> inputs,
                                                        const OperatorSet&,
                                                        const std::map<std::string, int>&) {
  std::vector<ValueType> types(call.outputs.size());
  if (!inputs.empty() && inputs[0].type != nullptr) types[0] = GradientType(*inputs[0].type);
  return types;
}

}  // namespace

void RegisterSequenceFunctions(FunctionLibrary& library) {
  library.Add("SequenceSum", {.body = SequenceSumBody,
                              .types = SequenceSumTypes,
                              .output_like = {},
                              .shape_only = {},
                              .attributes = {},
                              .required = 2,
                              .operands = "S"});
}

}  // namespace onward
