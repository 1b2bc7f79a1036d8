// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/executor.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/base/parallel.h"
#include "core/base/status.h"
#include "core/runtime/control/control.h"
#include "core/runtime/late_node.h"
#include "core/runtime/program.h"
#include "core/tensor/finite.h"
#include "core/tensor/held.h"

namespace onward {
namespace {

int64_t Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void CopyBytes(const Tensor& from, Tensor* to) {
  constexpr int64_t kGrain = 1 << 18;
  const char* source = static_cast<const char*>(from.raw());
  char* target = static_cast<char*>(to->raw());
  ParallelFor(static_cast<int64_t>(to->bytes()), kGrain, [&](int64_t begin, int64_t end) {
    std::memcpy(target + begin, source + begin, end - begin);
  });
}

// " (nor are those of 2 other variables)"
std::string Others(size_t count) {
  if (count == 0) return "";
  return absl::StrCat(" (nor ", count == 1 ? "is that of " : "are those of ", count,
                      " other variable", count == 1 ? ")" : "s)");
}

}  // namespace

struct Executor::BoundStep {
  const PlanStep* step;
  std::vector<const Tensor*> inputs;
  std::vector<Tensor*> outputs;
  void* workspace;
  // Of commit steps.
  std::unique_ptr<UpdateNotes> notes = nullptr;
  std::unique_ptr<bool[]> bad = nullptr;  // per output
  // Of late steps.
  std::unique_ptr<LateNode> late = nullptr;
  std::unique_ptr<ControlFlow> control = nullptr;
};

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
    if (v.storage == PlanValue::Storage::kConstant) {
      // Without an owner, so that nobody takes it for a new tensor.
      tensors_[i] = Tensor(v.constant.dtype(), v.constant.shape(),
                           const_cast<void*>(v.constant.raw()), nullptr);
      continue;
    }
    const PlanValue& root = plan_->values[v.root];
    void* data = nullptr;
    if (root.storage == PlanValue::Storage::kArena) data = arena_.data<char>() + root.offset;
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

void Executor::Point(int id, const Tensor& tensor) {
  void* data = const_cast<void*>(tensor.raw());
  tensors_[id].Rebind(data);
  for (int view : views_of_[id]) tensors_[view].Rebind(data);
}

absl::Status Executor::BindSources(absl::Span<const Value* const> inputs, Variables* variables) {
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
    Point(id, it->second);
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

KernelCall Executor::CallOf(const BoundStep& b, const RandomState& random) {
  return {b.inputs, b.outputs, b.workspace, random, b.notes.get()};
}

absl::Status Executor::RunSteps(const std::vector<BoundStep>& steps, const RunOptions& options) {
  for (const BoundStep& b : steps) {
    if (options.cancel != nullptr && options.cancel->load(std::memory_order_relaxed)) {
      return absl::CancelledError("stopped");
    }
    const int64_t start = options.on_step ? Now() : 0;
    ONWARD_RETURN_IF_ERROR(b.step->late ? RunLate(b, options)
                                        : b.step->kernel.run(CallOf(b, options.random)));
    // What a body does is told step by step.
    if (options.on_step && b.control == nullptr) options.on_step(*b.step, Now() - start);
  }
  return absl::OkStatus();
}

absl::Status Executor::CheckFinite() const {
  for (int id : plan_->finite) {
    if (!AllFinite(tensors_[id])) {
      return absl::OutOfRangeError(
          absl::StrCat("'", plan_->values[id].name,
                       "' is not finite; nothing was updated (try a smaller learning rate, "
                       "or look at the data)"));
    }
  }
  return absl::OkStatus();
}

absl::Status Executor::CheckUpdates(const Variables& variables, bool notes_hold) {
  bool finite = true;
  for (const BoundStep& b : commit_) {
    if (!b.step->kernel.would_be_finite) continue;
    b.notes->hold = notes_hold;
    std::fill_n(b.bad.get(), b.outputs.size(), false);
    finite &= b.step->kernel.would_be_finite(CallOf(b, {}), b.bad.get());
  }
  for (const PlanCopy& copy : plan_->copies) finite &= AllFinite(tensors_[copy.from]);
  return finite ? absl::OkStatus() : BlameUpdate(variables);
}

absl::Status Executor::BlameUpdate(const Variables& variables) const {
  absl::flat_hash_set<std::string> bad;
  for (const BoundStep& b : commit_) {
    for (size_t o = 0; o < b.outputs.size(); ++o) {
      if (b.bad[o]) bad.insert(plan_->values[plan_->values[b.step->outputs[o]].root].name);
    }
  }
  for (const PlanCopy& copy : plan_->copies) {
    if (!AllFinite(tensors_[copy.from])) bad.insert(copy.variable);
  }
  // Where one was bad before, it is the cause of the others.
  const auto old = absl::c_find_if(plan_->updates, [&](const std::string& name) {
    return bad.contains(name) && !AllFinite(variables.at(name));
  });
  if (old != plan_->updates.end()) {
    return absl::OutOfRangeError(
        absl::StrCat("'", *old,
                     "' holds NaN or infinity already before the step; nothing was updated (go on "
                     "from an earlier file; if the values are meant, do not train this tensor)"));
  }
  const auto first =
      absl::c_find_if(plan_->updates, [&](const std::string& name) { return bad.contains(name); });
  CheckInvariant(first != plan_->updates.end(), "only updates are checked");
  return absl::OutOfRangeError(
      absl::StrCat("the new value of '", *first, "' is not finite", Others(bad.size() - 1),
                   "; nothing was updated (try a smaller learning rate, or look at the data)"));
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
    ONWARD_RETURN_IF_ERROR(BindSources(inputs, variables));
    ONWARD_RETURN_IF_ERROR(RunSteps(compute_, options));
    KeepResults();
    return CheckFinite();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory during a run");
  }
}

absl::Status Executor::Commit(Variables* variables, const RunOptions& options) {
  if (plan_->updates.empty()) return absl::OkStatus();
  for (const PlanCopy& copy : plan_->copies) {
    const Tensor& target = variables->at(copy.variable);
    if (tensors_[copy.from].dtype() != target.dtype() ||
        tensors_[copy.from].shape() != target.shape()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the new value of '", copy.variable, "' is ", DTypeName(tensors_[copy.from].dtype()),
          tensors_[copy.from].shape().ToString(), ", but the variable is ",
          DTypeName(target.dtype()), target.shape().ToString()));
    }
  }
  const bool own = options.writer != nullptr && *options.writer == this;
  ONWARD_RETURN_IF_ERROR(CheckUpdates(*variables, own));
  if (options.writer != nullptr) *options.writer = nullptr;
  RunOptions commit = options;
  commit.cancel = nullptr;
  ONWARD_RETURN_IF_ERROR(RunSteps(commit_, commit));
  for (const PlanCopy& copy : plan_->copies) {
    Tensor& target = variables->at(copy.variable);
    CopyBytes(tensors_[copy.from], &target);
  }
  if (options.writer != nullptr) *options.writer = this;
  return absl::OkStatus();
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

ValueMap ToValues(const TensorMap& tensors) { return ValueMap(tensors.begin(), tensors.end()); }

absl::StatusOr<TensorMap> ToTensors(ValueMap values) {
  TensorMap tensors;
  for (auto& [name, value] : values) {
    if (value.tensor() == nullptr) {
      return absl::UnimplementedError(
          absl::StrCat("'", name, "' is ", value.ToString(), ", not a tensor"));
    }
    tensors.emplace_hint(tensors.end(), name, std::move(*value.tensor()));
  }
  return tensors;
}

absl::Status CheckFeed(const NamedType& input, const Tensor& tensor) {
  const ValueType given = ValueType::Of(tensor.dtype(), tensor.shape());
  auto mismatch = [&] {
    return absl::InvalidArgumentError(absl::StrCat("input '", input.name, "' must be ",
                                                   input.type.ToString(), ", but ",
                                                   given.ToString(), " was given"));
  };
  if (input.type.dtype != DType::kUndefined && input.type.dtype != tensor.dtype())
    return mismatch();
  if (!input.type.has_rank) return absl::OkStatus();
  if (input.type.rank() != tensor.shape().rank()) return mismatch();
  for (int i = 0; i < tensor.shape().rank(); ++i) {
    if (input.type.dims[i].known() && input.type.dims[i].value != tensor.shape()[i])
      return mismatch();
  }
  return absl::OkStatus();
}

absl::Status CheckFeed(const NamedType& input, const Value& value) {
  if (value.tensor() != nullptr && input.type.is_tensor()) {
    return CheckFeed(input, *value.tensor());
  }
  const ValueType& declared = input.type;
  const bool optional = declared.kind == ValueType::Kind::kOptional;
  if (value.empty() && optional) return absl::OkStatus();
  const ValueType* wanted = optional ? declared.element.get() : &declared;
  const ValueType given = value.type();
  if (wanted == nullptr || (wanted->kind == given.kind && wanted->leaf() == given.leaf())) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("input '", input.name, "' must be ",
                                                 declared.ToString(), ", but ", value.ToString(),
                                                 " was given"));
}

}  // namespace onward
