// SPDX-License-Identifier: Apache-2.0
// Attributes and shapes of RNN, GRU and LSTM.
#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/ops/rnn/rnn.h"

namespace onward {
namespace {

// Multiplications of the whole recurrence that are worth a second thread, and
// rows of the batch that are worth reading the weights for.
constexpr double kParallelWork = 1 << 18;
constexpr int64_t kTaskRows = 4;

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

bool RnnPlan::IsSmall() const {
  return static_cast<double>(steps) * static_cast<double>(batch) *
             static_cast<double>(gates * hidden) * static_cast<double>(hidden) <
         kParallelWork;
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

std::vector<RnnTask> RnnTasks(const RnnPlan& plan) {
  int64_t parts = 1;
  if (!plan.IsSmall()) {
    const int64_t wanted = (Threads() + plan.directions - 1) / plan.directions;
    parts = std::clamp<int64_t>(plan.batch / kTaskRows, 1, wanted);
  }
  std::vector<RnnTask> tasks;
  for (int64_t p = 0; p < parts; ++p) {
    for (int64_t d = 0; d < plan.directions; ++d) {
      tasks.push_back({d, plan.batch * p / parts, plan.batch * (p + 1) / parts});
    }
  }
  return tasks;
}

template <typename T>
void SwapFirstAxes(const T* from, int64_t first, int64_t second, int64_t n, T* to) {
  constexpr int64_t kGrain = 16384;  // elements
  const int64_t row = std::max<int64_t>(first * n, 1);
  ParallelFor(second, kGrain / row + 1, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) {
      for (int64_t i = 0; i < first; ++i) {
        std::copy_n(from + (i * second + j) * n, n, to + (j * first + i) * n);
      }
    }
  });
}

template void SwapFirstAxes(const float*, int64_t, int64_t, int64_t, float*);
template void SwapFirstAxes(const double*, int64_t, int64_t, int64_t, double*);

}  // namespace onward
