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
#include "core/base/size_text.h"
#include "core/base/status.h"
#include "core/runtime/devices/residents.h"
#include "core/runtime/execute/bound_step.h"
#include "core/runtime/execute/device_runner.h"
#include "core/runtime/execute/guards.h"
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

Executor::Executor(std::shared_ptr<const Plan> plan, std::shared_ptr<Arena> arena)
    : plan_(std::move(plan)), arena_(std::move(arena)) {
  if (arena_ == nullptr || plan_->UsesAccelerators()) arena_ = std::make_shared<Arena>();
  if (!arena_->memory.defined() || arena_->memory.bytes() < plan_->arena_bytes) {
    arena_->memory = Tensor(DType::kUint8, Shape{static_cast<int64_t>(plan_->arena_bytes)});
  }
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
    if (root.storage == PlanValue::Storage::kOwned) {
      if (v.root == static_cast<int>(i)) values_[i] = Tensor(v.dtype, *v.shape);
      data = values_[v.root].tensor()->raw();
    }
    tensors_[i] = Tensor(v.dtype, *v.shape, data, nullptr, v.device);
  }
  Bind(plan_->compute, &compute_);
  Bind(plan_->commit, &commit_);
  EnterArena();
  for (BoundStep& b : commit_) {
    b.notes = std::make_unique<UpdateNotes>();
    b.bad = std::make_unique<bool[]>(b.outputs.size());
  }
  results_.resize(plan_->outputs.size());
  if (plan_->UsesAccelerators()) {
    devices_ = std::make_unique<DeviceRunner>(plan_, &compute_, &commit_, &tensors_);
    own_residents_ = std::make_unique<Residents>();
  }
  if (plan_->rest != nullptr) {
    rest_ = std::make_unique<Program>(plan_->rest->graph, plan_->rest->options);
  }
}

Executor::~Executor() = default;

void Executor::Bind(const std::vector<PlanStep>& steps, std::vector<BoundStep>* bound) {
  for (const PlanStep& step : steps) {
    BoundStep b{&step, {}, {}, nullptr};
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

void Executor::EnterArena() {
  char* const begin = arena_->memory.data<char>();
  if (entered_ == begin) return;
  entered_ = begin;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const PlanValue& root = plan_->values[std::max(plan_->values[i].root, 0)];
    if (root.storage != PlanValue::Storage::kArena || root.device != kHost) continue;
    tensors_[i].Rebind(begin + root.offset);
  }
  for (std::vector<BoundStep>* steps : {&compute_, &commit_}) {
    for (BoundStep& b : *steps) b.workspace = begin + b.step->workspace_offset;
  }
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
                            residents->Place(name, it->second, v.device, &devices_->queues()));
    Point(id, Tensor(v.dtype, *v.shape, there, nullptr));
  }
  return absl::OkStatus();
}

Value Executor::ValueOf(int id) const {
  return plan_->values[id].storage == PlanValue::Storage::kValue ? values_[id] : tensors_[id];
}

absl::StatusOr<Value> Executor::LateInput(const PlanStep& step, int i) {
  const int id = step.inputs[i];
  const Tensor* tensor = plan_->values[id].storage == PlanValue::Storage::kValue
                             ? values_[id].tensor()
                             : &tensors_[id];
  const bool anywhere = step.bodies_there && i >= HostInputs(step.node);
  if (tensor == nullptr || tensor->place() == kHost || anywhere) return ValueOf(id);
  CheckInvariant(tensor != &tensors_[id], "plans copy what they know to be elsewhere");
  ONWARD_ASSIGN_OR_RETURN(values_[id], plan_->queues->Fetch(*tensor));
  return values_[id];
}

absl::Status Executor::RunLate(const BoundStep& bound, const RunOptions& options) {
  const PlanStep& step = *bound.step;
  std::vector<Value> inputs(step.inputs.size());
  std::vector<const Value*> in(inputs.size(), nullptr);
  std::vector<Value*> out(step.outputs.size(), nullptr);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (step.inputs[i] < 0) continue;
    if (plan_->accelerators.empty()) {
      inputs[i] = ValueOf(step.inputs[i]);
    } else {
      ONWARD_ASSIGN_OR_RETURN(inputs[i], LateInput(step, static_cast<int>(i)));
    }
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

absl::Status Executor::RunSteps(const std::vector<BoundStep>& steps, size_t begin, size_t end,
                                const RunOptions& options) {
  for (size_t s = begin; s < end; ++s) {
    const BoundStep& b = steps[s];
    if (b.step->device != kHost) continue;
    if (options.cancel != nullptr && options.cancel->load(std::memory_order_relaxed)) {
      return absl::CancelledError("stopped");
    }
    ONWARD_ASSIGN_OR_RETURN(const bool due, Holds(*plan_, tensors_, b.step->guard));
    if (!due) continue;
    const int64_t start = options.on_step ? Now() : 0;
    if (b.step->late) {
      ONWARD_RETURN_IF_ERROR(RunLate(b, options));
    } else if (b.step->transfer) {
      CopyBytes(*b.inputs[0], b.outputs[0]);
    } else {
      ONWARD_RETURN_IF_ERROR(
          b.step->kernel.run({b.inputs, b.outputs, b.workspace, options.random, b.notes.get()}));
    }
    // What a body does is told step by step.
    if (options.on_step && b.control == nullptr) options.on_step(*b.step, Now() - start);
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
    Value result = ValueOf(id);
    const Tensor* tensor = result.tensor();
    // Whoever lets results stay elsewhere minds how long they last.
    const bool elsewhere = tensor != nullptr && tensor->place() != kHost;
    results_[i] = lasts || elsewhere ? std::move(result) : result.Owned();
  }
}

absl::Status Executor::Compute(absl::Span<const Value* const> inputs, Variables* variables,
                               const RunOptions& options) {
  try {
    EnterArena();
    if (devices_ == nullptr) {
      ONWARD_RETURN_IF_ERROR(BindSources(inputs, variables, nullptr));
      ONWARD_RETURN_IF_ERROR(RunSteps(compute_, 0, compute_.size(), options));
      KeepResults();
      return CheckFinite();
    }
    const absl::Status status = ComputeOnDevices(inputs, variables, options);
    if (!status.ok()) devices_->GiveUp();
    return status;
  } catch (const std::bad_alloc&) {
    if (devices_ != nullptr) devices_->GiveUp();
    return absl::ResourceExhaustedError("out of memory during a run");
  }
}

absl::Status Executor::ComputeOnDevices(absl::Span<const Value* const> inputs, Variables* variables,
                                        const RunOptions& options) {
  ONWARD_RETURN_IF_ERROR(devices_->Open());
  if (options.residents == nullptr) own_residents_->Forget();
  ONWARD_RETURN_IF_ERROR(BindSources(inputs, variables, ResidentsOf(options)));
  // Otherwise it is known behind the run which of them are due.
  if (plan_->commits_in_stretch) ONWARD_RETURN_IF_ERROR(CheckCopies(*variables));
  ONWARD_RETURN_IF_ERROR(devices_->Run(
      options, [&](size_t begin, size_t end) { return RunSteps(compute_, begin, end, options); }));
  KeepResults();
  const bool checks = !plan_->updates.empty() || !plan_->finite.empty();
  if (checks && !plan_->commits_in_stretch) {
    ONWARD_RETURN_IF_ERROR(devices_->CheckUpdates());
  }
  return CheckFinite();
}

absl::Status Executor::Stage(absl::Span<const Value* const> inputs) {
  return devices_ == nullptr ? absl::OkStatus() : devices_->Stage(inputs);
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
      Value result = last->results_[i];
      if (const Tensor* t = result.tensor(); t != nullptr && t->place() != kHost) {
        ONWARD_ASSIGN_OR_RETURN(result, plan_->queues->Fetch(*t));
      }
      outputs[last->plan_->outputs[i].first] = result.Owned();
    }
    // What has run ahead may have found a fault.
    if (plan_->queues != nullptr) ONWARD_RETURN_IF_ERROR(plan_->queues->Wait());
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
      node.Describe(), ": the values of this run have grown to ", SizeText(held),
      ", more than the ", SizeText(limit), " allowed; if the loop does end, allow more memory"));
}

}  // namespace onward
