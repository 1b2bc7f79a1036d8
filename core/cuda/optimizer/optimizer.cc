// SPDX-License-Identifier: Apache-2.0
// Optimizer steps: Adam, Adagrad and Momentum of ai.onnx.preview.training, SgdStep and AdamWStep of
// ai.onward. Every step may run in place.
#include "core/device/plan/optimizer.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
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
  return {rule, DType::kFloat, {a, b, c, d, e}, nullptr, nullptr};
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

// One int per output, on the device and on the host. They are the kernel's own, not part of its
// workspace: what would be written is asked before other kernels have read what that may lie over.
class Flags {
 public:
  explicit Flags(size_t count) : count_(count) {}
  ~Flags() {
    if (device_ != nullptr) cudaFree(device_);
    if (host_ != nullptr) cudaFreeHost(host_);
  }
  Flags(const Flags&) = delete;
  Flags& operator=(const Flags&) = delete;

  // Whether output i was flagged by what set_flags(flags on the device) queued; waits for it.
  template <class SetFlags>
  absl::StatusOr<std::vector<bool>> Ask(cudaStream_t stream, const SetFlags& set_flags) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ONWARD_RETURN_IF_ERROR(Allocate());
    ONWARD_RETURN_IF_ERROR(StatusOf(cudaMemsetAsync(device_, 0, bytes(), stream), kAsking));
    ONWARD_RETURN_IF_ERROR(StatusOf(set_flags(device_), kAsking));
    ONWARD_RETURN_IF_ERROR(StatusOf(
        cudaMemcpyAsync(host_, device_, bytes(), cudaMemcpyDeviceToHost, stream), kAsking));
    ONWARD_RETURN_IF_ERROR(StatusOf(cudaStreamSynchronize(stream), kAsking));
    return std::vector<bool>(host_, host_ + count_);
  }

 private:
  static constexpr char kAsking[] = "asking whether the update is finite";
  size_t bytes() const { return count_ * sizeof(int); }
  // When first asked, on the device of the call: where memory is short, that step fails and no
  // other.
  absl::Status Allocate() {
    if (device_ == nullptr) {
      ONWARD_RETURN_IF_ERROR(
          StatusOf(cudaMalloc(reinterpret_cast<void**>(&device_), bytes()), kAsking));
    }
    if (host_ != nullptr) return absl::OkStatus();
    return StatusOf(cudaMallocHost(reinterpret_cast<void**>(&host_), bytes()), kAsking);
  }

  const size_t count_;
  std::mutex mutex_;
  int *device_ = nullptr, *host_ = nullptr;
};

struct OptimizerStep {
  StepParameters parameters;
  OptimizerPlaces places;
  int states;
  bool has_t;
  std::map<DType, std::vector<int>> tensors;  // by element type

  cudaError_t Run(const KernelCall& call, int* flags) const {
    StepParameters p = parameters;
    p.rate = In(call, 0);
    if (has_t) p.step = static_cast<const int64_t*>(In(call, 1));
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

  // Where the device fails nothing may be written: every output counts as bad, and whoever waits
  // for the stream is told why.
  bool WouldBeFinite(const KernelCall& call, Flags& flags, bool* bad) const {
    const auto flagged =
        flags.Ask(StreamOf(call), [&](int* on_device) { return Run(call, on_device); });
    bool finite = true;
    for (int o = 0; o < static_cast<int>(call.outputs.size()); ++o) {
      if (Out(call, o) == nullptr || (flagged.ok() && !(*flagged)[o])) continue;
      bad[o] = true;
      finite = false;
    }
    return finite;
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
  auto flags = std::make_shared<Flags>(places.tensors * (1 + kStates));
  kernel.run = [step, what = r.node.Describe()](const KernelCall& call) {
    return StatusOf(step->Run(call, nullptr), what);
  };
  kernel.would_be_finite = [step, flags](const KernelCall& call, bool* bad) {
    return step->WouldBeFinite(call, *flags, bad);
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
