// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/execute/executor.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/base/parallel.h"
#include "core/base/status.h"
#include "core/runtime/devices/accelerators.h"
#include "core/runtime/devices/residents.h"
#include "core/runtime/execute/bound_step.h"
#include "core/runtime/execute/program.h"
#include "core/tensor/finite.h"
#include "core/tensor/held.h"

namespace onward {
namespace {

int64_t Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Executor::Executor(std::shared_ptr<const Plan> plan)
    : plan_(std::move(plan)),
      arena_(DType::kUint8, Shape{static_cast<int64_t>(plan_->arena_bytes)}) {
  const size_t n = plan_->values.size();
  tensors_.resize(n);
  values_.resize(n);
  views_of_.resize(n);
  for (size_t i = 0; i < n; ++i) {
    const PlanValue& v = plan_->values[i];
    if (v.storage == PlanValue::Storage::kValue) continue;
    if (v.root != static_cast<int>(i)) views_of_[v.root].push_back(static_cast<int>(i));
    if (v.storage == PlanValue::Storage::kConstant && v.device == kHost) {
      // Without an owner, so that nobody takes it for a new tensor.
      tensors_[i] = Tensor(v.constant.dtype(), v.constant.shape(),
                           const_cast<void*>(v.constant.raw()), nullptr);
      continue;
    }
    const PlanValue& root = plan_->values[v.root];
    void* data = nullptr;
    if (root.storage == PlanValue::Storage::kArena && root.device == kHost) {
      data = arena_.data<char>() + root.offset;
    }
    if (root.storage == PlanValue::Storage::kOwned) {
      if (v.root == static_cast<int>(i)) values_[i] = Tensor(v.dtype, *v.shape);
      data = values_[v.root].tensor()->raw();
    }
    tensors_[i] = Tensor(v.dtype, *v.shape, data, nullptr);
  }
  Bind(plan_->compute, &compute_);
  Bind(plan_->commit, &commit_);
  for (BoundStep& b : commit_) {
    b.notes = std::make_unique<UpdateNotes>();
    b.bad = std::make_unique<bool[]>(b.outputs.size());
  }
  results_.resize(plan_->outputs.size());
  if (!plan_->accelerators.empty()) {
    accelerators_ = std::make_unique<Accelerators>(*plan_);
    own_residents_ = std::make_unique<Residents>();
  }
  if (plan_->rest != nullptr) {
    rest_ = std::make_unique<Program>(plan_->rest->graph, plan_->rest->options);
  }
}

Executor::~Executor() = default;

void Executor::Bind(const std::vector<PlanStep>& steps, std::vector<BoundStep>* bound) {
  for (const PlanStep& step : steps) {
    BoundStep b{&step, {}, {}, arena_.data<char>() + step.workspace_offset};
    for (int id : step.inputs) b.inputs.push_back(id < 0 ? nullptr : &tensors_[id]);
    for (int id : step.outputs) b.outputs.push_back(id < 0 ? nullptr : &tensors_[id]);
    if (step.control != nullptr) {
      b.control = MakeControlFlow(*step.control);
    } else if (step.late && !step.kernel.run_values) {
      b.late = std::make_unique<LateNode>(step.node, *plan_);
    }
    bound->push_back(std::move(b));
  }
}

absl::Status Executor::OpenAccelerators() {
  ONWARD_RETURN_IF_ERROR(accelerators_->Open());
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const PlanValue& v = plan_->values[i];
    const PlanValue& root = plan_->values[v.root];
    if (v.device == kHost) continue;
    if (root.storage == PlanValue::Storage::kArena) {
      tensors_[i].Rebind(accelerators_->arena(v.device) + root.offset);
    } else if (root.storage == PlanValue::Storage::kConstant) {
      tensors_[i].Rebind(accelerators_->constant(v.root));
    }
  }
  for (std::vector<BoundStep>* steps : {&compute_, &commit_}) {
    for (BoundStep& b : *steps) {
      if (b.step->device == kHost) continue;
      b.workspace = accelerators_->arena(b.step->device) + b.step->workspace_offset;
    }
  }
  return absl::OkStatus();
}

Residents* Executor::ResidentsOf(const RunOptions& options) {
  return options.residents != nullptr ? options.residents : own_residents_.get();
}

void Executor::Point(int id, const Tensor& tensor) {
  void* data = const_cast<void*>(tensor.raw());
  tensors_[id].Rebind(data);
  for (int view : views_of_[id]) tensors_[view].Rebind(data);
}

absl::Status Executor::BindSources(absl::Span<const Value* const> inputs, Variables* variables,
                                   Residents* residents) {
  const auto mismatch = [&](const std::string& name, const PlanValue& v, const std::string& given) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", name, "' is ", given, ", but the plan was made for ",
                     v.shape.has_value() ? ValueType::Of(v.dtype, *v.shape).ToString()
                                         : "something that is no tensor"));
  };
  const auto fits = [](const PlanValue& v, const Tensor& t) {
    return t.dtype() == v.dtype && t.shape() == *v.shape;
  };
  for (const PlanFeed& feed : plan_->feeds) {
    const Value* given = inputs[feed.position];
    if (given == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("input '", feed.name, "' is not given"));
    }
    const PlanValue& v = plan_->values[feed.id];
    if (v.storage == PlanValue::Storage::kValue) {
      values_[feed.id] = *given;
      continue;
    }
    const Tensor* tensor = given->tensor();
    if (tensor == nullptr || !fits(v, *tensor)) return mismatch(feed.name, v, given->ToString());
    Point(feed.id, *tensor);
  }
  if (plan_->variables.empty()) return absl::OkStatus();
  // Both are in the order of names: one walk finds them all.
  static const Variables* const kNone = new Variables;
  const Variables& given = variables == nullptr ? *kNone : *variables;
  auto it = given.begin();
  for (const auto& [name, id] : plan_->variables) {
    while (it != given.end() && it->first < name) ++it;
    if (it == given.end() || it->first != name) {
      return absl::FailedPreconditionError(absl::StrCat("variable '", name, "' has no value"));
    }
    const PlanValue& v = plan_->values[id];
    if (!fits(v, it->second)) return mismatch(name, v, Value(it->second).ToString());
    if (v.device == kHost) {
      Point(id, it->second);
      continue;
    }
    ONWARD_ASSIGN_OR_RETURN(void* const there,
                            residents->Place(name, it->second, plan_->DeviceOf(v.device)));
    Point(id, Tensor(v.dtype, *v.shape, there, nullptr));
  }
  return absl::OkStatus();
}

Value Executor::ValueOf(int id) const {
  return plan_->values[id].storage == PlanValue::Storage::kValue ? values_[id] : tensors_[id];
}

absl::Status Executor::RunLate(const BoundStep& bound, const RunOptions& options) {
  const PlanStep& step = *bound.step;
  std::vector<Value> inputs(step.inputs.size());
  std::vector<const Value*> in(inputs.size(), nullptr);
  std::vector<Value*> out(step.outputs.size(), nullptr);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (step.inputs[i] < 0) continue;
    inputs[i] = ValueOf(step.inputs[i]);
    in[i] = &inputs[i];
  }
  for (size_t i = 0; i < out.size(); ++i) {
    if (step.outputs[i] >= 0) out[i] = &values_[step.outputs[i]];
  }
  const ValueCall call{in, out};
  ONWARD_RETURN_IF_ERROR(bound.control != nullptr ? bound.control->Run(call, options)
                         : step.kernel.run_values ? step.kernel.run_values(call)
                                                  : bound.late->Run(call, options.random));
  for (int id : step.outputs) {
    if (id < 0) continue;
    ONWARD_RETURN_IF_ERROR(
        CheckHeld(step.node, *plan_->device, options, UncountedBytes(values_[id])));
    const Tensor* tensor = values_[id].tensor();
    tensors_[id] = tensor == nullptr ? Tensor() : *tensor;
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Executor::Holds(const PlanGuard& guard) {
  if (guard.always()) return true;
  if (accelerators_ != nullptr) ONWARD_RETURN_IF_ERROR(accelerators_->WaitForHost());
  const Tensor& condition = tensors_[guard.value];
  if (condition.dtype() != DType::kBool || condition.elements() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the condition '", plan_->values[guard.value].name, "' of an If is not one bool"));
  }
  return *condition.data<bool>() == guard.when;
}

KernelCall Executor::CallOf(const BoundStep& b, const RandomState& random) const {
  void* const stream =
      b.step->device == kHost ? nullptr : accelerators_->stream(b.step->device).native();
  return {b.inputs, b.outputs, b.workspace, random, b.notes.get(), stream};
}

absl::Status Executor::RunTransfer(const BoundStep& b) {
  const int from = plan_->values[b.step->inputs[0]].device;
  const int to = plan_->values[b.step->outputs[0]].device;
  if (from != kHost || to != kHost) {
    return accelerators_->Copy(*b.inputs[0], from, b.outputs[0], to);
  }
  CopyBytes(*b.inputs[0], b.outputs[0]);
  return absl::OkStatus();
}

absl::Status Executor::RunSteps(const std::vector<BoundStep>& steps, const RunOptions& options,
                                int device) {
  for (const BoundStep& b : steps) {
    if (device >= 0 && b.step->device != device) continue;
    if (options.cancel != nullptr && options.cancel->load(std::memory_order_relaxed)) {
      return absl::CancelledError("stopped");
    }
    ONWARD_ASSIGN_OR_RETURN(const bool due, Holds(b.step->guard));
    if (!due) continue;
    const int64_t start = options.on_step ? Now() : 0;
    if (accelerators_ != nullptr && b.step->device == kHost) {
      ONWARD_RETURN_IF_ERROR(accelerators_->WaitForHost());
    }
    ONWARD_RETURN_IF_ERROR(b.step->late       ? RunLate(b, options)
                           : b.step->transfer ? RunTransfer(b)
                                              : b.step->kernel.run(CallOf(b, options.random)));
    if (!options.on_step) continue;
    if (accelerators_ != nullptr) ONWARD_RETURN_IF_ERROR(accelerators_->WaitForAll());
    // What a body does is told step by step.
    if (b.control == nullptr) options.on_step(*b.step, Now() - start);
  }
  return absl::OkStatus();
}

// Phase two overwrites variables and may use the memory of anything else; what was fed may
// change once this plan is done with it.
void Executor::KeepResults() {
  for (size_t i = 0; i < results_.size(); ++i) {
    const int id = plan_->outputs[i].second;
    const bool fed = plan_->values[plan_->values[id].root].storage == PlanValue::Storage::kFeed;
    const bool lasts = plan_->updates.empty() && (!fed || rest_ != nullptr);
    results_[i] = lasts ? ValueOf(id) : ValueOf(id).Owned();
  }
}

absl::Status Executor::Compute(absl::Span<const Value* const> inputs, Variables* variables,
                               const RunOptions& options) {
  try {
    if (accelerators_ != nullptr) {
      if (!accelerators_->open()) ONWARD_RETURN_IF_ERROR(OpenAccelerators());
      if (options.residents == nullptr) own_residents_->Forget();
    }
    ONWARD_RETURN_IF_ERROR(BindSources(inputs, variables, ResidentsOf(options)));
    ONWARD_RETURN_IF_ERROR(RunSteps(compute_, options));
    if (accelerators_ != nullptr) ONWARD_RETURN_IF_ERROR(accelerators_->WaitForAll());
    KeepResults();
    return CheckFinite();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory during a run");
  }
}

absl::StatusOr<ValueMap> Executor::RunValues(const ValueMap& feeds, Variables* variables,
                                             const RunOptions& options) {
  std::vector<const Value*> inputs;
  for (const PlanFeed& feed : plan_->feeds) {
    if (feed.position >= static_cast<int>(inputs.size())) inputs.resize(feed.position + 1);
    auto it = feeds.find(feed.name);
    if (it != feeds.end()) inputs[feed.position] = &it->second;
  }
  RunOptions run = options;
  run.held_before = HeldTensorBytes() - static_cast<int64_t>(plan_->arena_bytes);
  try {
    ONWARD_ASSIGN_OR_RETURN(const Executor* last, RunChain(this, inputs, variables, run));
    ValueMap outputs;
    for (size_t i = 0; i < last->results_.size(); ++i) {
      outputs[last->plan_->outputs[i].first] = last->results_[i].Owned();
    }
    return outputs;
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory during a run");
  }
}

absl::StatusOr<TensorMap> Executor::Run(const TensorMap& feeds, Variables* variables,
                                        const RunOptions& options) {
  ONWARD_ASSIGN_OR_RETURN(ValueMap results, RunValues(ToValues(feeds), variables, options));
  return ToTensors(std::move(results));
}

absl::Status CheckHeld(const Node& node, const Device& device, const RunOptions& options,
                       size_t besides) {
  if (!options.held_before.has_value()) return absl::OkStatus();
  const int64_t tensors = std::max<int64_t>(0, HeldTensorBytes() - *options.held_before);
  const size_t held = static_cast<size_t>(tensors) + besides, limit = device.memory_limit();
  if (held <= limit) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      node.Describe(), ": the values of this run have grown to ", held >> 20, " MB, more than the ",
      limit >> 20, " MB allowed; if the loop does end, allow more memory"));
}

}  // namespace onward
