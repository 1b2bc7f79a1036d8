// SPDX-License-Identifier: Apache-2.0
#include "optimizers/step_function.h"

#include "core/base/status.h"

namespace onward {

Expr StepBody::Number(const char* name) const {
  for (const auto& [known, otherwise] : attributes) {
    if (known == name) return b.AttributeNumber(call, known, otherwise);
  }
  return b.Fail(absl::InternalError("a step reads an attribute that it does not declare"));
}

Expr StepBody::Average(const Expr& old, const Expr& now, const char* rate) const {
  const Expr keep = Number(rate);
  return old * In(keep) + now * In(Real(1) - keep);
}

void AddStepFunction(const std::string& name, StepAttributes attributes, int states, StepRule rule,
                     FunctionLibrary* library) {
  FunctionDef def;
  def.required = 4 + states;
  def.operands = "F.FFF";
  def.output_like = {2};
  for (int s = 0; s < states; ++s) def.output_like.push_back(4 + s);
  for (const auto& [attribute, otherwise] : attributes) def.attributes.push_back(attribute);
  def.attributes_by_reference = true;
  def.body = [attributes = std::move(attributes), rule = std::move(rule)](
                 GraphBuilder& b, const Node& call, const std::vector<Expr>& inputs) {
    StepBody in = {b,
                   call,
                   attributes,
                   Widened(inputs[0]),
                   Cast(inputs[1], DType::kDouble),
                   Widened(inputs[2]),
                   Widened(inputs[3]),
                   {}};
    for (size_t i = 4; i < inputs.size(); ++i) in.states.push_back(Widened(inputs[i]));
    std::vector<Expr> results = rule(in);
    for (size_t i = 0; i < results.size(); ++i) {
      results[i] = CastLike(results[i], inputs[i == 0 ? 2 : 3 + i]);
    }
    return results;
  };
  library->Add(name, std::move(def));
}

absl::Status StepUpdate(GraphBuilder& b, std::string_view function, const Attributes& attributes,
                        const Expr& lr, const Expr& step, absl::Span<const Variable> variables,
                        Updated* updated) {
  for (const Variable& v : variables) {
    std::vector<Expr> inputs = {CastLike(lr, v.value), step, v.value, v.gradient};
    inputs.insert(inputs.end(), v.states.begin(), v.states.end());
    updated->push_back(b.Ops(function, std::move(inputs), static_cast<int>(1 + v.states.size()),
                             attributes, kOnwardDomain));
  }
  return absl::OkStatus();
}

void AddDecay(const OptimizerSpec& spec, bool decoupled, Attributes* attributes) {
  const double decay = OptionOf(spec, "weight_decay");
  (*attributes)["weight_decay"] = decoupled ? 0.0 : decay;
  (*attributes)["decoupled_weight_decay"] = decoupled ? decay : 0.0;
}

Expr Norm(const Expr& x) { return Sqrt(x.builder().Op("ReduceSumSquare", {x}, {{"keepdims", 0}})); }

}  // namespace onward
