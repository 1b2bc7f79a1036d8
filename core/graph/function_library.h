// SPDX-License-Identifier: Apache-2.0
// Onward's own functions (domain ai.onward). A gradient rule or an optimizer
// emits one call; a device may have a fused kernel for it, and everything else
// (export, second derivatives, other runtimes) uses the body, which is made of
// standard operators.
#ifndef ONWARD_CORE_GRAPH_FUNCTION_LIBRARY_H_
#define ONWARD_CORE_GRAPH_FUNCTION_LIBRARY_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/builder.h"
#include "core/graph/graph.h"

namespace onward {

// An optimizer step in which a row of X whose gradient is zero stays as it is: where only
// some rows have a gradient, another function updates these alone.
struct RowUpdate {
  int x = 0;             // which input X is; its gradient is the next one
  std::string function;  // of ai.onward; takes row numbers and their gradients for the gradient
  std::function<bool(const Node& call)> holds;  // whether this call is such a step
};

// What the compiler may know of a function beyond its body.
struct FunctionTraits {
  std::optional<RowUpdate> row_update;
};

struct FunctionDef {
  // Emits the body: inputs in call order (undefined Expr = omitted), result in
  // output order. Attributes of the call are read from `call`.
  using Body = std::function<std::vector<Expr>(GraphBuilder& b, const Node& call,
                                               const std::vector<Expr>& inputs)>;
  // Types of the outputs from those of the inputs.
  using Types = std::function<absl::StatusOr<std::vector<ValueType>>(
      const Node& call, absl::Span<const InputFact> inputs, const OperatorSet& operators,
      const std::map<std::string, int>& opsets)>;
  // Null: nothing but a kernel computes it. Only the compiler makes such calls.
  Body body;
  // In the place of `body`: the function as a file would carry it.
  std::shared_ptr<const Function> function = nullptr;
  // Where neither output_like nor the body can tell (the body may need sizes that
  // are not known yet).
  Types types = nullptr;
  // Output i has the type and shape of input output_like[i].
  std::vector<int> output_like;
  // Inputs of which only the type and shape are used, never the elements.
  std::vector<int> shape_only;
  // Formal attributes, where the function is written to files as such.
  std::vector<std::string> attributes;
  // Whether the body takes all of them through GraphBuilder::AttributeNumber, so that
  // one body serves every call: only such functions are written to files.
  bool attributes_by_reference = false;
  // So many first inputs must be given. No schema counts those of a call that a
  // file holds, so neither a body nor a kernel sees a call with fewer.
  int required = 0;
  // A letter for each input, the last one for all further ones too: T is a floating
  // type, the same wherever it stands, F any floating type, I any integer type, a dot
  // any tensor, S any sequence. Nor does a schema tell these.
  std::string operands = ".";
  FunctionTraits traits = {};
  // The lowest version of its domain that has it.
  int since = 1;
};

class FunctionLibrary {
 public:
  void Add(std::string name, FunctionDef def, std::string_view domain = kOnwardDomain);
  // Null where there is no such function in the domain.
  const FunctionDef* Find(std::string_view name, std::string_view domain = kOnwardDomain) const;
  const FunctionDef* Find(const Node& call) const { return Find(call.op_type, call.domain); }
  // What is wrong with the inputs of the call, as far as they are known; "" if nothing
  // is.
  static std::string BrokenDemand(const FunctionDef& def, const Node& call,
                                  absl::Span<const InputFact> inputs);
  // The body of one call, typed by its inputs.
  absl::StatusOr<Graph> Instantiate(const Node& call, absl::Span<const InputFact> inputs,
                                    const OperatorSet* operators, int opset) const;
  const std::map<FunctionKey, FunctionDef>& all() const { return defs_; }

 private:
  std::map<FunctionKey, FunctionDef> defs_;
};

}  // namespace onward

#endif  // ONWARD_CORE_GRAPH_FUNCTION_LIBRARY_H_
