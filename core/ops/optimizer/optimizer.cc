// SPDX-License-Identifier: Apache-2.0
// Optimizer steps: Adam, Adagrad and Momentum of ai.onnx.preview.training, and
// Onward's SgdStep and AdamWStep. Inputs are R, then T (but for SgdStep), then
// tensors grouped by kind: X1..Xn, G1..Gn, states; outputs X1'..Xn', states'.
//
// One pass over all elements of all tensors; every step may run in place.
#include "core/device/plan/optimizer.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <memory>
#include <set>
#include <utility>
#include <vector>

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

// An opaque layout passes through where all tensors of one variable share it.
template <typename Rule>
void PassLayouts(const KernelRequest& r, const OptimizerPlaces& places, Kernel& kernel) {
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
  OptimizerPlaces places;
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
  ONWARD_ASSIGN_OR_RETURN(const OptimizerPlaces places,
                          PlanOptimizer(r, Rule::kStates, Rule::kHasT));
  ONWARD_ASSIGN_OR_RETURN(const auto attributes, Rule::Make(r.node));
  auto step = std::make_shared<Step<Rule>>(Step<Rule>{Rule{attributes}, places});
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
    const OptimizerPlaces places = *PlacesOfOptimizer(r, Rule::kStates, Rule::kHasT);
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
