// SPDX-License-Identifier: Apache-2.0
// Optimizer steps: Adam, Adagrad and Momentum of ai.onnx.preview.training, and
// Onward's SgdStep and AdamWStep. Inputs are R, then T (but for SgdStep), then
// tensors grouped by kind: X1..Xn, G1..Gn, states; outputs X1'..Xn', states'.
//
// One pass over all elements of all tensors; every step may run in place.
#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/division.h"
#include "core/base/parallel.h"
#include "core/base/status.h"
#include "core/ops/cpu/adapt.h"
#include "core/ops/cpu/magnitude.h"
#include "core/ops/cpu/register.h"
#include "core/ops/optimizer/optimizer_rules.h"
#include "core/tensor/dispatch.h"

namespace onward {
namespace {

constexpr int64_t kGrain = 16384;  // elements that are worth a thread
constexpr int64_t kBlock = 16;     // elements of a line, which one thread writes

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
      return NodeUnimplemented(
          r.node, absl::StrCat("takes a scalar R and T, got shape ", r.in(i).ToString()));
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
    bool shared =
        layout != nullptr && layout->dense() && SameLayout(layout, r.inputs[places.G(i)].layout);
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
  static constexpr int kKinds = 1 + Rule::kStates;

  Rule rule;
  Places places;
  int64_t elements = 0;  // of all tensors
  std::set<DType> dtypes = {};
  bool writes_all = true;  // every state that is read is replaced

  // Calls body.template operator()<T>(tensor, begin, end) for parts that make up all
  // tensors, on several threads. A thread takes the same part of every tensor, as the
  // products did that left the gradients in its cache.
  template <typename Body>
  void ForParts(const KernelCall& call, const Body& body) const {
    const int64_t threads = std::min<int64_t>(Threads(), CeilDiv(elements, kGrain));
    const int64_t parts = ItemsFor(elements / kGrain, threads);
    ParallelItems(parts, threads, [&](int64_t part, int64_t) {
      for (int i = 0; i < places.tensors; ++i) {
        const Tensor& x = *call.inputs[places.X(i)];
        const int64_t blocks = CeilDiv(x.elements(), kBlock);
        const int64_t from = blocks * part / parts * kBlock;
        const int64_t to = std::min(blocks * (part + 1) / parts * kBlock, x.elements());
        if (from >= to) continue;
        DispatchFloat(x.dtype(), [&]<typename T>() { body.template operator()<T>(i, from, to); });
      }
    });
  }

  template <typename T>
  UpdateRun<T, Rule::kStates> RunOf(const KernelCall& call, int tensor) const {
    UpdateRun<T, Rule::kStates> run{call.inputs[places.X(tensor)]->template data<T>(),
                                    call.inputs[places.G(tensor)]->template data<T>(),
                                    {},
                                    WantedOutput<T>(call, places.NewX(tensor)),
                                    {}};
    for (int k = 0; k < Rule::kStates; ++k) {
      run.state[k] = call.inputs[places.State(k, tensor)]->template data<T>();
      run.new_state[k] = WantedOutput<T>(call, places.NewState(k, tensor));
    }
    return run;
  }

  absl::Status Run(const KernelCall& call) const {
    const auto scalars = ScalarsOf(rule, call);
    std::array<SharedMax, kKinds> largest;
    ForParts(call, [&]<typename T>(int tensor, int64_t begin, int64_t end) {
      const auto magnitudes =
          UpdateElements<Rule, T>(scalars, RunOf<T>(call, tensor), begin, end, begin);
      for (int k = 0; k < kKinds; ++k) largest[k].Offer(magnitudes[k]);
    });
    if (call.notes != nullptr && writes_all) {
      call.notes->magnitudes.resize(kKinds);
      for (int k = 0; k < kKinds; ++k) call.notes->magnitudes[k] = largest[k].value();
    }
    return absl::OkStatus();
  }

  // Looks at the gradients alone where that is enough, since the bounds of everything
  // else are known from the last run; else tries the whole step.
  bool WouldBeFinite(const KernelCall& call, bool* bad) const {
    const auto scalars = ScalarsOf(rule, call);
    return Bounded(scalars, call) || TryAll(scalars, call, bad);
  }

  // A run that left squares below zero would have failed at their roots.
  bool Bounded(const typename Rule::Scalars& scalars, const KernelCall& call) const {
    if (call.notes == nullptr || !call.notes->hold || call.notes->magnitudes.empty()) return false;
    SharedMax gradient;
    ForParts(call, [&]<typename T>(int tensor, int64_t begin, int64_t end) {
      const T* g = call.inputs[places.G(tensor)]->template data<T>();
      gradient.Offer(LargestMagnitude(g + begin, end - begin));
    });
    const double* known = call.notes->magnitudes.data();
    bool bounded = true;
    for (const DType dtype : dtypes) {
      DispatchFloat(dtype, [&]<typename T>() {
        const typename Rule::template Update<T> update(scalars);
        const double bound = update.Bound(known[0], gradient.value(), known + 1);
        bounded = bounded && bound < std::numeric_limits<T>::max() / 2;
      });
    }
    return bounded;
  }

  bool TryAll(const typename Rule::Scalars& scalars, const KernelCall& call, bool* bad) const {
    std::atomic<bool> finite = true;
    ForParts(call, [&]<typename T>(int tensor, int64_t begin, int64_t end) {
      const auto found =
          WouldNotBeFinite<Rule, T>(scalars, RunOf<T>(call, tensor), begin, end, begin);
      for (int k = 0; k < kKinds; ++k) {
        const int output = k == 0 ? places.NewX(tensor) : places.NewState(k - 1, tensor);
        if (!found[k] || WantedOutput<T>(call, output) == nullptr) continue;
        std::atomic_ref(bad[output]).store(true, std::memory_order_relaxed);
        finite.store(false, std::memory_order_relaxed);
      }
    });
    return finite.load();
  }
};

template <typename Rule>
absl::StatusOr<Kernel> MakeStep(const KernelRequest& r) {
  ONWARD_ASSIGN_OR_RETURN(const Places places, PlacesOf<Rule>(r));
  ONWARD_RETURN_IF_ERROR(CheckTensors<Rule>(r, places));
  ONWARD_ASSIGN_OR_RETURN(Rule rule, Rule::Make(r.node));
  auto step = std::make_shared<Step<Rule>>(Step<Rule>{std::move(rule), places});
  Kernel kernel;
  kernel.infallible = true;
  for (int i = 0; i < places.tensors; ++i) {
    step->elements += r.in(places.X(i)).elements();
    step->dtypes.insert(r.inputs[places.X(i)].dtype);
    for (int k = -1; k < Rule::kStates; ++k) {
      const int output = k < 0 ? places.NewX(i) : places.NewState(k, i);
      step->writes_all &= r.HasOutput(output);
      if (!r.HasOutput(output)) continue;
      kernel.in_place.push_back({output, k < 0 ? places.X(i) : places.State(k, i)});
    }
  }
  PassLayouts<Rule>(r, places, kernel);
  kernel.lists = TensorLists{places.first, 2 + Rule::kStates, 1 + Rule::kStates};
  kernel.run = [step](const KernelCall& call) { return step->Run(call); };
  kernel.would_be_finite = [step](const KernelCall& call, bool* bad) {
    return step->WouldBeFinite(call, bad);
  };
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
