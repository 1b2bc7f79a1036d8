// SPDX-License-Identifier: Apache-2.0
// Optimizer steps: Adam, Adagrad and Momentum of ai.onnx.preview.training, and
// Onward's SgdStep and AdamWStep. Inputs are R, then T (but for SgdStep), then
// tensors grouped by kind: X1..Xn, G1..Gn, states; outputs X1'..Xn', states'.
//
// One pass over all elements of all tensors; every step may run in place.
// Scalars are worked out in double from the float32 attributes and rounded to
// the tensors' type once.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/parallel.h"
#include "core/base/status.h"
#include "core/ops/adapt.h"
#include "core/ops/register.h"
#include "core/ops/vec.h"
#include "core/tensor/dispatch.h"

namespace onward {
namespace {

constexpr int64_t kGrain = 16384;  // elements

// Each rule below has kStates, kHasT, Make(node) and At(R, T), which gives the
// scalars of one step; Update<T> then maps (x, g, states) to new values.

// X' = X - R*(G + weight_decay*X)
struct Sgd {
  static constexpr int kStates = 0;
  static constexpr bool kHasT = false;
  double weight_decay;

  static absl::StatusOr<Sgd> Make(const Node& node) {
    return Sgd{node.Float("weight_decay", 0.0f)};
  }
  struct Scalars {
    double r, weight_decay;
  };
  Scalars At(double r, int64_t) const { return {r, weight_decay}; }

  template <typename T>
  struct Update {
    explicit Update(const Scalars& s) : r(s.r), decay(s.weight_decay) {}
    void operator()(Vec<T>& x, Vec<T> g, Vec<T>*) const { x -= r * (g + decay * x); }
    T r, decay;
  };
};

// r = R / (1 + T*decay_factor);  Gr = norm_coefficient*X + G;  H' = H + Gr^2
// X' = X - r*Gr / (sqrt(H') + epsilon)
struct Adagrad {
  static constexpr int kStates = 1;
  static constexpr bool kHasT = true;
  double decay_factor, epsilon, norm;

  static absl::StatusOr<Adagrad> Make(const Node& node) {
    return Adagrad{node.Float("decay_factor", 0.0f), node.Float("epsilon", 1e-6f),
                   node.Float("norm_coefficient", 0.0f)};
  }
  struct Scalars {
    double r, epsilon, norm;
  };
  Scalars At(double r, int64_t t) const {
    return {r / (1 + static_cast<double>(t) * decay_factor), epsilon, norm};
  }

  template <typename T>
  struct Update {
    explicit Update(const Scalars& s) : r(s.r), epsilon(s.epsilon), norm(s.norm) {}
    void operator()(Vec<T>& x, Vec<T> g, Vec<T>* state) const {
      g += norm * x;
      state[0] += g * g;
      x -= r * g / (Sqrt(state[0]) + epsilon);
    }
    T r, epsilon, norm;
  };
};

// Gr = norm_coefficient*X + G;  V' = alpha*V + (T > 0 ? beta : 1)*Gr
// standard: X' = X - R*V';  nesterov: X' = X - R*(Gr + alpha*V')
struct Momentum {
  static constexpr int kStates = 1;
  static constexpr bool kHasT = true;
  double alpha, beta, norm;
  bool nesterov;

  static absl::StatusOr<Momentum> Make(const Node& node) {
    for (const char* name : {"alpha", "beta", "norm_coefficient", "mode"}) {
      if (!node.Has(name)) return NodeError(node, absl::StrCat("attribute ", name, " is required"));
    }
    const std::string mode = node.String("mode", "");
    if (mode != "standard" && mode != "nesterov") {
      return NodeError(node, absl::StrCat("mode '", mode, "' is not standard or nesterov"));
    }
    return Momentum{node.Float("alpha", 0), node.Float("beta", 0),
                    node.Float("norm_coefficient", 0), mode == "nesterov"};
  }
  struct Scalars {
    double r, alpha, beta, norm;
    bool nesterov;
  };
  Scalars At(double r, int64_t t) const { return {r, alpha, t > 0 ? beta : 1, norm, nesterov}; }

  template <typename T>
  struct Update {
    explicit Update(const Scalars& s)
        : r(s.r), alpha(s.alpha), beta(s.beta), norm(s.norm), nesterov(s.nesterov) {}
    void operator()(Vec<T>& x, Vec<T> g, Vec<T>* state) const {
      g += norm * x;
      state[0] = alpha * state[0] + beta * g;
      x -= r * (nesterov ? g + alpha * state[0] : state[0]);
    }
    T r, alpha, beta, norm;
    bool nesterov;
  };
};

// Gr = norm_coefficient*X + G
// V' = alpha*V + (1-alpha)*Gr;  H' = beta*H + (1-beta)*Gr^2
// Ra = T > 0 ? R*sqrt(1-beta^T)/(1-alpha^T) : R
// X' = (1 - norm_coefficient_post) * (X - Ra*V' / (sqrt(H') + epsilon))
struct Adam {
  static constexpr int kStates = 2;
  static constexpr bool kHasT = true;
  double alpha, beta, epsilon, norm, norm_post;

  static absl::StatusOr<Adam> Make(const Node& node) {
    return Adam{node.Float("alpha", 0.9f), node.Float("beta", 0.999f),
                node.Float("epsilon", 1e-6f), node.Float("norm_coefficient", 0.0f),
                node.Float("norm_coefficient_post", 0.0f)};
  }
  struct Scalars {
    double r, alpha, beta, epsilon, norm, keep;
  };
  Scalars At(double r, int64_t t) const {
    const double steps = static_cast<double>(t);
    const double corrected =
        t > 0 ? r * std::sqrt(1 - std::pow(beta, steps)) / (1 - std::pow(alpha, steps)) : r;
    return {corrected, alpha, beta, epsilon, norm, 1 - norm_post};
  }

  template <typename T>
  struct Update {
    explicit Update(const Scalars& s)
        : r(s.r), alpha(s.alpha), beta(s.beta), one_minus_alpha(1 - s.alpha),
          one_minus_beta(1 - s.beta), epsilon(s.epsilon), norm(s.norm), keep(s.keep) {}
    void operator()(Vec<T>& x, Vec<T> g, Vec<T>* state) const {
      g += norm * x;
      state[0] = alpha * state[0] + one_minus_alpha * g;
      state[1] = beta * state[1] + one_minus_beta * (g * g);
      x = keep * (x - r * state[0] / (Sqrt(state[1]) + epsilon));
    }
    T r, alpha, beta, one_minus_alpha, one_minus_beta, epsilon, norm, keep;
  };
};

// X1 = X * (1 - R*weight_decay)
// V' = alpha*V + (1-alpha)*G;  H' = beta*H + (1-beta)*G^2
// c = sqrt(1 - beta^T);  X' = X1 - R*c / (1 - alpha^T) * V' / (sqrt(H') + epsilon + eps*c)
struct AdamW {
  static constexpr int kStates = 2;
  static constexpr bool kHasT = true;
  double alpha, beta, epsilon, eps, weight_decay;

  static absl::StatusOr<AdamW> Make(const Node& node) {
    return AdamW{node.Float("alpha", 0.9f), node.Float("beta", 0.999f),
                 node.Float("epsilon", 0.0f), node.Float("eps", 1e-8f),
                 node.Float("weight_decay", 0.01f)};
  }
  struct Scalars {
    double r, alpha, beta, epsilon, keep;
  };
  Scalars At(double r, int64_t t) const {
    const double steps = static_cast<double>(t);
    const double c = std::sqrt(1 - std::pow(beta, steps));
    return {r * c / (1 - std::pow(alpha, steps)), alpha, beta, epsilon + eps * c, 1 - r * weight_decay};
  }

  template <typename T>
  struct Update {
    explicit Update(const Scalars& s)
        : r(s.r), alpha(s.alpha), beta(s.beta), one_minus_alpha(1 - s.alpha),
          one_minus_beta(1 - s.beta), epsilon(s.epsilon), keep(s.keep) {}
    void operator()(Vec<T>& x, Vec<T> g, Vec<T>* state) const {
      state[0] = alpha * state[0] + one_minus_alpha * g;
      state[1] = beta * state[1] + one_minus_beta * (g * g);
      x = keep * x - r * state[0] / (Sqrt(state[1]) + epsilon);
    }
    T r, alpha, beta, one_minus_alpha, one_minus_beta, epsilon, keep;
  };
};

// Where the tensors of a node stand among its inputs and outputs.
struct Places {
  int first;    // index of X1
  int tensors;  // n
  int X(int i) const { return first + i; }
  int G(int i) const { return first + tensors + i; }
  int State(int k, int i) const { return first + (2 + k) * tensors + i; }
  int NewX(int i) const { return i; }
  int NewState(int k, int i) const { return (1 + k) * tensors + i; }
};

template <typename Rule>
absl::StatusOr<Places> PlacesOf(const KernelRequest& r) {
  constexpr int kFirst = Rule::kHasT ? 2 : 1, kKinds = 2 + Rule::kStates;
  const int given = static_cast<int>(r.inputs.size()) - kFirst;
  if (given <= 0 || given % kKinds != 0) {
    return NodeError(r.node, absl::StrCat("takes ", kKinds, " inputs per tensor after the first ",
                                          kFirst, ", got ", std::max(given, 0)));
  }
  const Places places{kFirst, given / kKinds};
  if (static_cast<int>(r.outputs.size()) > places.tensors * (1 + Rule::kStates)) {
    return NodeError(r.node, absl::StrCat("has ", r.outputs.size(), " outputs, gives ",
                                          places.tensors * (1 + Rule::kStates)));
  }
  for (int i = 0; i < static_cast<int>(r.inputs.size()); ++i) {
    if (!r.HasInput(i)) return NodeError(r.node, absl::StrCat("input ", i, " is missing"));
  }
  return places;
}

template <typename Rule>
absl::Status CheckTensors(const KernelRequest& r, const Places& places) {
  const auto floating = [](DType t) { return t == DType::kFloat || t == DType::kDouble; };
  if (!floating(r.inputs[0].dtype) || (Rule::kHasT && r.inputs[1].dtype != DType::kInt64)) {
    return NodeUnimplemented(r.node, "takes a floating-point R and an int64 T");
  }
  for (int i = 0; i < places.first; ++i) {
    if (r.in(i).elements() != 1) {
      return NodeUnimplemented(r.node, absl::StrCat("takes a scalar R and T, got shape ",
                                                    r.in(i).ToString()));
    }
  }
  for (int i = 0; i < places.tensors; ++i) {
    const int x = places.X(i);
    if (!floating(r.inputs[x].dtype)) {
      return NodeUnimplemented(r.node, "takes floating-point tensors");
    }
    for (int k = -1; k < Rule::kStates; ++k) {
      const int other = k < 0 ? places.G(i) : places.State(k, i);
      if (r.in(other) != r.in(x) || r.inputs[other].dtype != r.inputs[x].dtype) {
        auto type = [&](int input) {
          return absl::StrCat(input, " (", std::string(DTypeName(r.inputs[input].dtype)),
                              r.in(input).ToString(), ")");
        };
        return NodeError(r.node, absl::StrCat("input ", type(other), " differs from ", type(x)));
      }
    }
  }
  return absl::OkStatus();
}

// An opaque layout passes through where all tensors of one variable share it.
template <typename Rule>
void PassLayouts(const KernelRequest& r, const Places& places, Kernel& kernel) {
  kernel.input_layouts.resize(r.inputs.size());
  kernel.output_layouts.resize(r.outputs.size());
  for (int i = 0; i < places.tensors; ++i) {
    const Layout& layout = r.inputs[places.X(i)].layout;
    bool shared = layout != nullptr && layout->dense() &&
                  SameLayout(layout, r.inputs[places.G(i)].layout);
    for (int k = 0; k < Rule::kStates; ++k) {
      shared = shared && SameLayout(layout, r.inputs[places.State(k, i)].layout);
    }
    if (!shared) continue;
    kernel.input_layouts[places.X(i)] = kernel.input_layouts[places.G(i)] = layout;
    if (r.HasOutput(places.NewX(i))) kernel.output_layouts[places.NewX(i)] = layout;
    for (int k = 0; k < Rule::kStates; ++k) {
      kernel.input_layouts[places.State(k, i)] = layout;
      if (r.HasOutput(places.NewState(k, i))) kernel.output_layouts[places.NewState(k, i)] = layout;
    }
  }
}

template <typename Rule>
struct Step {
  Rule rule;
  Places places;
  std::vector<int64_t> starts;  // of the tensors in the row of all elements, and the end

  template <typename T>
  void Update(const typename Rule::Scalars& scalars, const KernelCall& call, int tensor,
              int64_t begin, int64_t end) const {
    constexpr int S = Rule::kStates;
    auto out = [&](int i) -> T* {
      const bool wanted = i < static_cast<int>(call.outputs.size()) && call.outputs[i] != nullptr;
      return wanted ? call.outputs[i]->template data<T>() : nullptr;
    };
    const T* x = call.inputs[places.X(tensor)]->template data<T>();
    const T* g = call.inputs[places.G(tensor)]->template data<T>();
    T* new_x = out(places.NewX(tensor));
    std::array<const T*, S> state;
    std::array<T*, S> new_state;
    for (int k = 0; k < S; ++k) {
      state[k] = call.inputs[places.State(k, tensor)]->template data<T>();
      new_state[k] = out(places.NewState(k, tensor));
    }
    const typename Rule::template Update<T> update(scalars);
    ForVecs<T>(end - begin, [&](int64_t offset, int count) {
      const int64_t i = begin + offset;
      Vec<T> vx = Load(x + i, count);
      Vec<T> vs[S + 1];
      for (int k = 0; k < S; ++k) vs[k] = Load(state[k] + i, count);
      update(vx, Load(g + i, count), vs);
      if (new_x != nullptr) Store(new_x + i, vx, count);
      for (int k = 0; k < S; ++k) {
        if (new_state[k] != nullptr) Store(new_state[k] + i, vs[k], count);
      }
    });
  }

  absl::Status Run(const KernelCall& call) const {
    double rate = 0;
    const Tensor& r = *call.inputs[0];
    DispatchFloat(r.dtype(), [&]<typename T>() { rate = *r.data<T>(); });
    const int64_t steps = Rule::kHasT ? *call.inputs[1]->template data<int64_t>() : 0;
    const auto scalars = rule.At(rate, steps);
    ParallelFor(starts.back(), kGrain, [&](int64_t begin, int64_t end) {
      for (int i = 0; i < places.tensors; ++i) {
        const int64_t from = std::max(begin, starts[i]), to = std::min(end, starts[i + 1]);
        if (from >= to) continue;
        DispatchFloat(call.inputs[places.X(i)]->dtype(), [&]<typename T>() {
          Update<T>(scalars, call, i, from - starts[i], to - starts[i]);
        });
      }
    });
    return absl::OkStatus();
  }
};

template <typename Rule>
absl::StatusOr<Kernel> MakeStep(const KernelRequest& r) {
  ONWARD_ASSIGN_OR_RETURN(const Places places, PlacesOf<Rule>(r));
  ONWARD_RETURN_IF_ERROR(CheckTensors<Rule>(r, places));
  ONWARD_ASSIGN_OR_RETURN(Rule rule, Rule::Make(r.node));
  auto step = std::make_shared<Step<Rule>>(Step<Rule>{std::move(rule), places, {0}});
  Kernel kernel;
  kernel.infallible = true;
  for (int i = 0; i < places.tensors; ++i) {
    step->starts.push_back(step->starts.back() + r.in(places.X(i)).elements());
    if (r.HasOutput(places.NewX(i))) kernel.in_place.push_back({places.NewX(i), places.X(i)});
    for (int k = 0; k < Rule::kStates; ++k) {
      if (!r.HasOutput(places.NewState(k, i))) continue;
      kernel.in_place.push_back({places.NewState(k, i), places.State(k, i)});
    }
  }
  PassLayouts<Rule>(r, places, kernel);
  kernel.run = [step = std::move(step)](const KernelCall& call) { return step->Run(call); };
  return kernel;
}

template <typename Rule>
KernelFactory StepFactory() {
  auto shape = [](const KernelRequest& r, int output) {
    const Places places = *PlacesOf<Rule>(r);
    const int kind = output / places.tensors, i = output % places.tensors;
    return r.in(kind == 0 ? places.X(i) : places.State(kind - 1, i));
  };
  return Adapt(MakeStep<Rule>, shape);
}

}  // namespace

void RegisterOptimizerKernels(KernelTable& table) {
  const char* types = "float, double";
  table.Add("Adam", {"reference", 1, StepFactory<Adam>(), types}, kTrainingDomain);
  table.Add("Adagrad", {"reference", 1, StepFactory<Adagrad>(), types}, kTrainingDomain);
  table.Add("Momentum", {"reference", 1, StepFactory<Momentum>(), types}, kTrainingDomain);
  const char* all_types = "float, double, float16, bfloat16";
  table.Add("SgdStep", {"reference", 1, StepFactory<Sgd>(), all_types}, kOnwardDomain);
  table.Add("AdamWStep", {"reference", 1, StepFactory<AdamW>(), all_types}, kOnwardDomain);
}

}  // namespace onward
