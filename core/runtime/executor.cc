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
#include "core/runtime/evaluate.h"
#include "core/tensor/finite.h"

namespace onward {
namespace {

// Plans kept per session; beyond it the oldest is dropped (ragged batches).
constexpr size_t kMaxCachedPlans = 8;

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

Executor::Executor(std::shared_ptr<const Plan> plan)
    : plan_(std::move(plan)),
      arena_(DType::kUint8, Shape{static_cast<int64_t>(plan_->arena_bytes)}) {
  const size_t n = plan_->values.size();
  tensors_.resize(n);
  views_of_.resize(n);
  for (size_t i = 0; i < n; ++i) {
    const PlanValue& v = plan_->values[i];
    if (v.root != static_cast<int>(i)) views_of_[v.root].push_back(static_cast<int>(i));
    if (v.storage == PlanValue::Storage::kConstant) {
      tensors_[i] = v.constant;
    } else if (v.storage != PlanValue::Storage::kDynamic) {
      const PlanValue& root = plan_->values[v.root];
      void* data =
          root.storage == PlanValue::Storage::kArena ? arena_.data<char>() + root.offset : nullptr;
      tensors_[i] = Tensor(v.dtype, *v.shape, data, nullptr);
    }
  }
  Bind(plan_->compute, &compute_);
  Bind(plan_->commit, &commit_);
  for (BoundStep& b : commit_) {
    b.notes = std::make_unique<UpdateNotes>();
    b.bad = std::make_unique<bool[]>(b.outputs.size());
  }
}

void Executor::Bind(const std::vector<PlanStep>& steps, std::vector<BoundStep>* bound) {
  for (const PlanStep& step : steps) {
    BoundStep b{&step, {}, {}, arena_.data<char>() + step.workspace_offset};
    for (int id : step.inputs) b.inputs.push_back(id < 0 ? nullptr : &tensors_[id]);
    for (int id : step.outputs) b.outputs.push_back(id < 0 ? nullptr : &tensors_[id]);
    bound->push_back(std::move(b));
  }
}

absl::Status Executor::BindSources(const TensorMap& feeds, Variables* variables) {
  auto bind = [&](int id, const Tensor& tensor, const std::string& name) {
    const PlanValue& v = plan_->values[id];
    if (tensor.dtype() != v.dtype || tensor.shape() != *v.shape) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", name, "' is ", DTypeName(tensor.dtype()), tensor.shape().ToString(),
                       ", but the plan was made for ", DTypeName(v.dtype), v.shape->ToString()));
    }
    void* data = const_cast<void*>(tensor.raw());
    tensors_[id].Rebind(data);
    for (int view : views_of_[id]) tensors_[view].Rebind(data);
    return absl::OkStatus();
  };
  for (const auto& [name, id] : plan_->feeds) {
    auto it = feeds.find(name);
    if (it == feeds.end())
      return absl::InvalidArgumentError(absl::StrCat("input '", name, "' is not given"));
    ONWARD_RETURN_IF_ERROR(bind(id, it->second, name));
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
    ONWARD_RETURN_IF_ERROR(bind(id, it->second, name));
  }
  return absl::OkStatus();
}

absl::Status Executor::RunDynamic(const BoundStep& bound, const RunOptions& options) {
  std::vector<Tensor> inputs;
  for (const Tensor* t : bound.inputs) inputs.push_back(t == nullptr ? Tensor() : *t);
  const EvaluateContext context{plan_->device, plan_->operators, &plan_->opsets, options.random};
  ONWARD_ASSIGN_OR_RETURN(std::vector<Tensor> outputs,
                          EvaluateNode(bound.step->node, inputs, context));
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (bound.outputs[i] != nullptr) *bound.outputs[i] = std::move(outputs[i]);
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
    ONWARD_RETURN_IF_ERROR(b.step->dynamic ? RunDynamic(b, options)
                                           : b.step->kernel.run(CallOf(b, options.random)));
    if (options.on_step) options.on_step(*b.step, Now() - start);
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

absl::StatusOr<TensorMap> Executor::Run(const TensorMap& feeds, Variables* variables,
                                        const RunOptions& options) {
  try {
    ONWARD_RETURN_IF_ERROR(BindSources(feeds, variables));
    ONWARD_RETURN_IF_ERROR(RunSteps(compute_, options));
    ONWARD_RETURN_IF_ERROR(CheckFinite());
    TensorMap outputs;
    for (const auto& [name, id] : plan_->outputs) outputs[name] = tensors_[id].Clone();
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
    if (!plan_->updates.empty()) {
      const bool own = options.writer != nullptr && *options.writer == this;
      ONWARD_RETURN_IF_ERROR(CheckUpdates(*variables, own));
      if (options.writer != nullptr) *options.writer = nullptr;
    }
    RunOptions commit = options;
    commit.cancel = nullptr;
    ONWARD_RETURN_IF_ERROR(RunSteps(commit_, commit));
    for (const PlanCopy& copy : plan_->copies) {
      Tensor& target = variables->at(copy.variable);
      CopyBytes(tensors_[copy.from], &target);
    }
    if (!plan_->updates.empty() && options.writer != nullptr) *options.writer = this;
    return outputs;
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory during a run");
  }
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

absl::StatusOr<Executor*> Session::Prepare(const std::map<std::string, FeedType>& feeds) {
  for (auto& [types, executor] : executors_) {
    if (types == feeds) return executor.get();
  }
  CompileOptions options = options_;
  options.feeds = feeds;
  ONWARD_ASSIGN_OR_RETURN(std::shared_ptr<const Plan> plan, Compile(graph_, options));
  if (executors_.size() >= kMaxCachedPlans) executors_.erase(executors_.begin());
  try {
    executors_.emplace_back(feeds, std::make_unique<Executor>(std::move(plan)));
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        "out of memory for the plan's buffers; use a smaller batch");
  }
  return executors_.back().second.get();
}

absl::StatusOr<TensorMap> Session::Run(const TensorMap& feeds, Variables* variables,
                                       const RunOptions& options) {
  std::map<std::string, FeedType> types;
  for (const auto& [name, tensor] : feeds) types[name] = {tensor.dtype(), tensor.shape()};
  ONWARD_ASSIGN_OR_RETURN(Executor * executor, Prepare(types));
  return executor->Run(feeds, variables, options);
}

}  // namespace onward
