// SPDX-License-Identifier: Apache-2.0
// Optimizer steps: Adam, Adagrad and Momentum of ai.onnx.preview.training, SgdStep and AdamWStep of
// ai.onward. Every step may run in place.
#include "core/device/plan/optimizer.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/cuda/call.h"
#include "core/cuda/optimizer/step.h"
#include "core/cuda/register.h"
#include "core/cuda/request.h"

namespace onward::cuda {
namespace {

constexpr char kTypes[] = "float, double, float16, bfloat16";

// R and T are known when the kernel runs.
StepParameters WithAttributes(StepRule rule, double a, double b = 0, double c = 0, double d = 0,
                              double e = 0) {
  return {rule, DType::kFloat, {a, b, c, d, e}, nullptr, nullptr, nullptr};
}
StepParameters Parameters(const SgdAttributes& a) {
  return WithAttributes(StepRule::kSgd, a.weight_decay);
}
StepParameters Parameters(const AdagradAttributes& a) {
  return WithAttributes(StepRule::kAdagrad, a.decay_factor, a.epsilon, a.norm);
}
StepParameters Parameters(const MomentumAttributes& a) {
  return WithAttributes(StepRule::kMomentum, a.alpha, a.beta, a.norm, a.nesterov ? 1 : 0);
}
StepParameters Parameters(const AdamAttributes& a) {
  return WithAttributes(StepRule::kAdam, a.alpha, a.beta, a.epsilon, a.norm, a.norm_post);
}
StepParameters Parameters(const AdamWAttributes& a) {
  return WithAttributes(StepRule::kAdamW, a.alpha, a.beta, a.epsilon, a.eps, a.weight_decay);
}

struct OptimizerStep {
  StepParameters parameters;
  OptimizerPlaces places;
  int states;
  bool has_t;
  std::map<DType, std::vector<int>> tensors;  // by element type

  cudaError_t Run(const KernelCall& call, uint32_t* flags) const {
    StepParameters p = parameters;
    p.rate = In(call, 0);
    if (has_t) p.step = static_cast<const int64_t*>(In(call, 1));
    p.stop = flags == nullptr ? call.stop : nullptr;
    for (const auto& [dtype, indices] : tensors) {
      std::vector<StepTensor> list;
      list.reserve(indices.size());
      for (const int i : indices) list.push_back(TensorOf(call, i));
      const cudaError_t error = RunStep(p, dtype, list.data(), static_cast<int>(list.size()), flags,
                                        places.tensors, StreamOf(call));
      if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
  }

  StepTensor TensorOf(const KernelCall& call, int i) const {
    StepTensor t = {};
    t.x = In(call, places.X(i));
    t.g = In(call, places.G(i));
    t.new_x = Out(call, places.NewX(i));
    for (int k = 0; k < states; ++k) {
      t.state[k] = In(call, places.State(k, i));
      t.new_state[k] = Out(call, places.NewState(k, i));
    }
    t.elements = call.inputs[places.X(i)]->elements();
    t.index = i;
    return t;
  }
};

template <class Attributes>
absl::StatusOr<Kernel> MakeStep(const KernelRequest& r) {
  ONWARD_RETURN_IF_ERROR(CheckRequest(r, 0));
  constexpr int kStates = Attributes::kStates;
  ONWARD_ASSIGN_OR_RETURN(const OptimizerPlaces places,
                          PlanOptimizer(r, kStates, Attributes::kHasT));
  ONWARD_ASSIGN_OR_RETURN(const Attributes attributes, Attributes::Make(r.node));
  auto step = std::make_shared<OptimizerStep>(
      OptimizerStep{Parameters(attributes), places, kStates, Attributes::kHasT, {}});
  step->parameters.rate_type = r.inputs[0].dtype;
  Kernel kernel;
  kernel.infallible = true;
  for (int i = 0; i < places.tensors; ++i) {
    const DType dtype = r.inputs[places.X(i)].dtype;
    if (!IsReal(dtype)) return Unserved(r);
    step->tensors[dtype].push_back(i);
    for (int k = -1; k < kStates; ++k) {
      const int output = k < 0 ? places.NewX(i) : places.NewState(k, i);
      if (!r.HasOutput(output)) continue;
      kernel.in_place.push_back({output, k < 0 ? places.X(i) : places.State(k, i)});
    }
  }
  kernel.lists = TensorLists{places.first, 2 + kStates, 1 + kStates};
  kernel.run = [step, what = r.node.Describe()](const KernelCall& call) {
    return StatusOf(step->Run(call, nullptr), what);
  };
  kernel.flag_infinite = [step, what = r.node.Describe()](const KernelCall& call, uint32_t* bad) {
    return StatusOf(step->Run(call, bad), what);
  };
  return kernel;
}

template <class Attributes>
KernelTable::Entry StepEntry() {
  return {"cuda", 1, MakeStep<Attributes>, kTypes};
}

}  // namespace

void RegisterOptimizers(const Context&, KernelTable& table) {
  table.Add("Adam", StepEntry<AdamAttributes>(), kTrainingDomain);
  table.Add("Adagrad", StepEntry<AdagradAttributes>(), kTrainingDomain);
  table.Add("Momentum", StepEntry<MomentumAttributes>(), kTrainingDomain);
  table.Add("SgdStep", StepEntry<SgdAttributes>(), kOnwardDomain);
  table.Add("AdamWStep", StepEntry<AdamWAttributes>(), kOnwardDomain);
}

}  // namespace onward::cuda
