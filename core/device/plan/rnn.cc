// SPDX-License-Identifier: Apache-2.0
#include "core/device/plan/rnn.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace onward {
namespace {

using Kind = RnnActivation::Kind;

bool RemoveSuffix(std::string_view suffix, std::string* name) {
  if (!name->ends_with(suffix)) return false;
  name->resize(name->size() - suffix.size());
  return true;
}

std::vector<float> Floats(const Node& node, const char* name) {
  auto it = node.attributes.find(name);
  if (it == node.attributes.end()) return {};
  const auto* values = std::get_if<std::vector<float>>(&it->second.value);
  return values == nullptr ? std::vector<float>() : *values;
}

// Alphas and betas are consumed in order by those functions that have one.
absl::Status ReadActivations(const Node& node, RnnPlan* plan) {
  const size_t functions = plan->lstm() ? 3 : plan->gru() ? 2 : 1;
  std::vector<std::string> names = node.Strings("activations");
  if (names.empty()) {
    for (int64_t d = 0; d < plan->directions; ++d) {
      if (plan->lstm() || plan->gru()) names.push_back("Sigmoid");
      names.push_back("Tanh");
      if (plan->lstm()) names.push_back("Tanh");
    }
  }
  if (names.size() != functions * plan->directions) {
    return NodeError(node, absl::StrCat("activations has ", names.size(), " entries, expected ",
                                        functions * plan->directions));
  }
  const std::vector<float> alphas = Floats(node, "activation_alpha");
  const std::vector<float> betas = Floats(node, "activation_beta");
  size_t alpha = 0, beta = 0;
  for (const std::string& name : names) {
    std::optional<RnnActivation> f = RnnActivation::Named(name);
    if (!f.has_value()) return NodeError(node, absl::StrCat("unknown activation '", name, "'"));
    if (f->has_alpha && alpha < alphas.size()) f->alpha = alphas[alpha++];
    if (f->has_beta && beta < betas.size()) f->beta = betas[beta++];
    plan->activations.push_back(*f);
  }
  return absl::OkStatus();
}

absl::Status ReadAttributes(const Node& node, RnnPlan* plan) {
  std::string op = node.op_type;
  if (RemoveSuffix("Training", &op)) plan->form = RnnPlan::Form::kTraining;
  if (RemoveSuffix("Grad", &op)) plan->form = RnnPlan::Form::kGrad;
  plan->kind = op == "LSTM"  ? RnnPlan::Kind::kLstm
               : op == "GRU" ? RnnPlan::Kind::kGru
                             : RnnPlan::Kind::kRnn;
  const std::string direction = node.String("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
    return NodeError(node, absl::StrCat("direction is '", direction, "'"));
  }
  const int64_t layout = node.Int("layout", 0);
  if (layout != 0 && layout != 1) return NodeError(node, absl::StrCat("layout is ", layout));
  plan->directions = direction == "bidirectional" ? 2 : 1;
  plan->reverse = direction == "reverse";
  plan->batch_major = layout == 1;
  plan->gates = plan->lstm() ? 4 : plan->gru() ? 3 : 1;
  plan->linear_before_reset = plan->gru() && node.Int("linear_before_reset", 0) != 0;
  plan->width = plan->gates + (plan->linear_before_reset ? 1 : 0);
  plan->input_forget = plan->lstm() && node.Int("input_forget", 0) != 0;
  plan->clip = std::numeric_limits<double>::infinity();
  if (node.Has("clip")) plan->clip = node.Float("clip", 0);
  if (!(plan->clip >= 0)) return NodeError(node, "clip is negative");
  return ReadActivations(node, plan);
}

absl::Status CheckShape(const KernelRequest& r, int input, const char* name,
                        const Shape& expected) {
  if (!r.HasInput(input) || r.in(input) == expected) return absl::OkStatus();
  return NodeError(r.node, absl::StrCat(name, " has shape ", r.in(input).ToString(), ", expected ",
                                        expected.ToString()));
}

absl::Status ReadShapes(const KernelRequest& r, RnnPlan* plan) {
  for (int i : {RnnInput::kX, RnnInput::kW, RnnInput::kR}) {
    if (!r.HasInput(i)) return NodeError(r.node, "X, W and R are required");
    if (r.in(i).rank() != 3) {
      return NodeError(r.node, absl::StrCat("input ", i, " has shape ", r.in(i).ToString(),
                                            ", expected three dimensions"));
    }
  }
  const Shape& x = r.in(RnnInput::kX);
  plan->steps = x[plan->batch_major ? 1 : 0];
  plan->batch = x[plan->batch_major ? 0 : 1];
  plan->inputs = x[2];
  plan->hidden = r.in(RnnInput::kR)[2];
  if (plan->hidden > std::numeric_limits<int32_t>::max()) {
    return NodeError(r.node, "R is too large");
  }
  if (r.node.Has("hidden_size") && r.node.Int("hidden_size", 0) != plan->hidden) {
    return NodeError(r.node, absl::StrCat("hidden_size is ", r.node.Int("hidden_size", 0),
                                          ", but R has shape ", r.in(RnnInput::kR).ToString()));
  }
  const int64_t d = plan->directions, rows = plan->gates * plan->hidden;
  ONWARD_RETURN_IF_ERROR(CheckShape(r, RnnInput::kW, "W", {d, rows, plan->inputs}));
  ONWARD_RETURN_IF_ERROR(CheckShape(r, RnnInput::kR, "R", {d, rows, plan->hidden}));
  ONWARD_RETURN_IF_ERROR(CheckShape(r, RnnInput::kB, "B", {d, 2 * rows}));
  ONWARD_RETURN_IF_ERROR(CheckShape(r, RnnInput::kLengths, "sequence_lens", {plan->batch}));
  ONWARD_RETURN_IF_ERROR(CheckShape(r, RnnInput::kH0, "initial_h", plan->StateShape()));
  if (plan->lstm()) {
    ONWARD_RETURN_IF_ERROR(CheckShape(r, RnnInput::kC0, "initial_c", plan->StateShape()));
    ONWARD_RETURN_IF_ERROR(CheckShape(r, RnnInput::kP, "P", {d, 3 * plan->hidden}));
  }
  if (!CheckedElements(plan->GatesShape().dims()).ok()) {
    return NodeError(r.node, absl::StrCat("the gates ", plan->GatesShape().ToString(),
                                          " have too many elements"));
  }
  return absl::OkStatus();
}

absl::Status CheckTypes(const KernelRequest& r, const RnnPlan& plan) {
  const DType dtype = r.inputs[RnnInput::kX].dtype;
  for (int i = 0; i < static_cast<int>(r.inputs.size()); ++i) {
    const bool length = i == RnnInput::kLengths;
    if (!r.HasInput(i) || length || r.inputs[i].dtype == dtype) continue;
    return NodeError(r.node, absl::StrCat("input ", i, " is ", DTypeName(r.inputs[i].dtype),
                                          ", X is ", DTypeName(dtype)));
  }
  const int most = plan.standard_inputs();
  if (plan.form != RnnPlan::Form::kGrad && static_cast<int>(r.inputs.size()) > most) {
    return NodeError(
        r.node, absl::StrCat("has ", r.inputs.size(), " inputs, at most ", most, " are defined"));
  }
  return absl::OkStatus();
}

}  // namespace

std::optional<RnnActivation> RnnActivation::Named(std::string_view name) {
  struct Row {
    const char* name;
    RnnActivation f;
  };
  static constexpr Row kRows[] = {
      {"Relu", {Kind::kRelu, 0, 0, false, false}},
      {"Tanh", {Kind::kTanh, 0, 0, false, false}},
      {"Sigmoid", {Kind::kSigmoid, 0, 0, false, false}},
      {"Affine", {Kind::kAffine, 1, 0, true, true}},
      {"LeakyRelu", {Kind::kLeakyRelu, 0.01f, 0, true, false}},
      {"ThresholdedRelu", {Kind::kThresholdedRelu, 1, 0, true, false}},
      {"ScaledTanh", {Kind::kScaledTanh, 1, 1, true, true}},
      {"HardSigmoid", {Kind::kHardSigmoid, 0.2f, 0.5f, true, true}},
      {"Elu", {Kind::kElu, 1, 0, true, false}},
      {"Softsign", {Kind::kSoftsign, 0, 0, false, false}},
      {"Softplus", {Kind::kSoftplus, 0, 0, false, false}},
  };
  for (const Row& row : kRows) {
    if (absl::EqualsIgnoreCase(absl::string_view(name.data(), name.size()), row.name)) return row.f;
  }
  return std::nullopt;
}

Shape RnnPlan::YShape() const {
  if (batch_major) return {batch, steps, directions, hidden};
  return {steps, directions, batch, hidden};
}

Shape RnnPlan::StateShape() const {
  if (batch_major) return {batch, directions, hidden};
  return {directions, batch, hidden};
}

absl::StatusOr<RnnPlan> PlanRnn(const KernelRequest& r) {
  RnnPlan plan;
  ONWARD_RETURN_IF_ERROR(ReadAttributes(r.node, &plan));
  ONWARD_RETURN_IF_ERROR(ReadShapes(r, &plan));
  ONWARD_RETURN_IF_ERROR(CheckTypes(r, plan));
  return plan;
}

absl::StatusOr<std::vector<int64_t>> SequenceLengths(const RnnPlan& plan, const Node& node,
                                                     const Tensor* lengths) {
  if (lengths == nullptr) return std::vector<int64_t>();
  auto values = ToInts(*lengths);
  if (!values.ok()) return Annotate(values.status(), node.Describe());
  for (const int64_t length : *values) {
    if (length < 0 || length > plan.steps) {
      return NodeError(
          node, absl::StrCat("sequence_lens has ", length, ", X has ", plan.steps, " steps"));
    }
  }
  return values;
}

}  // namespace onward
