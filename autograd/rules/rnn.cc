// SPDX-License-Identifier: Apache-2.0
// Gradients of RNN, GRU and LSTM: the forward node becomes its Training form,
// which keeps what <op>Grad needs (docs/functions.md).
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autograd/rule.h"

namespace onward {
namespace {

// The inputs that outputs of <op>Grad are the gradients of: all but sequence_lens.
constexpr int kDifferentiated[] = {0, 1, 2, 3, 5, 6, 7};

Grads RnnVjp(const Vjp& v) {
  const std::string& op = v.node().op_type;
  const bool lstm = op == "LSTM";
  const int standard_inputs = lstm ? 8 : 6, standard_outputs = lstm ? 3 : 2;
  GraphBuilder& b = v.b();
  const std::vector<Expr> forward =
      v.ForwardAs(absl::StrCat(op, "Training"), standard_outputs + (lstm ? 2 : 1));
  if (!b.status().ok()) return {};

  Node grad;
  grad.op_type = absl::StrCat(op, "Grad");
  grad.domain = std::string(kOnwardDomain);
  grad.attributes = v.node().attributes;
  grad.inputs = v.node().inputs;
  grad.inputs.resize(standard_inputs);
  grad.inputs.push_back(forward[0].name());
  for (size_t i = standard_outputs; i < forward.size(); ++i) {
    grad.inputs.push_back(forward[i].name());
  }
  for (int i = 0; i < standard_outputs; ++i) {
    grad.inputs.push_back(v.has_dy(i) ? v.dy(i).name() : "");
  }
  Grads grads(v.inputs());
  for (const int i : kDifferentiated) {
    if (i >= standard_inputs) break;
    const bool wanted = v.has_x(i) && v.needs(i);
    grad.outputs.push_back(wanted ? b.UniqueName(grad.op_type) : "");
    if (wanted) grads[i] = b.Value(grad.outputs.back());
  }
  while (!grad.outputs.empty() && grad.outputs.back().empty()) grad.outputs.pop_back();
  while (grad.inputs.back().empty()) grad.inputs.pop_back();
  b.Append(std::move(grad));
  return grads;
}

}  // namespace

void RegisterRnnRules(RuleTable& table) {
  for (const char* op : {"RNN", "GRU", "LSTM"}) table.Add(op, RnnVjp);
}

}  // namespace onward
