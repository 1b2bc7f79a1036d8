// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/execute/program.h"

#include <algorithm>
#include <new>
#include <utility>

#include "core/base/status.h"

namespace onward {
namespace {

// Plans kept per program; beyond it the one not used for longest is dropped.
constexpr size_t kMaxCachedPlans = 16;

}  // namespace

FeedType FeedType::Of(const Value& value) {
  if (const Tensor* t = value.tensor()) return {t->dtype(), t->shape(), nullptr, t->place()};
  return {DType::kUndefined, {}, std::make_shared<const ValueType>(value.type())};
}

bool FeedType::Matches(const Value& value) const {
  if (const Tensor* t = value.tensor()) {
    return t->dtype() == dtype && t->place() == place && t->shape() == shape;
  }
  return held != nullptr && *held == value.type();
}

Program::Program(std::shared_ptr<const Graph> graph, CompileOptions options)
    : graph_(std::move(graph)), options_(std::move(options)) {
  ShareQueues(&options_);
  for (const NamedType& in : graph_->FeedInputs()) inputs_.push_back(in.name);
}

Executor* Program::Found(size_t entry) {
  std::rotate(entries_.begin(), entries_.begin() + static_cast<int64_t>(entry),
              entries_.begin() + static_cast<int64_t>(entry) + 1);
  return entries_.front().executor.get();
}

std::shared_ptr<ElementTypes> Program::ElementTypesFor(const std::vector<FeedType>& types) {
  std::vector<DType> feeds;
  for (const FeedType& type : types) {
    if (type.held != nullptr) return nullptr;
    feeds.push_back(type.dtype);
  }
  if (element_types_ == nullptr) {
    element_types_ = std::make_shared<ElementTypes>();
    element_types_of_ = std::move(feeds);
    return element_types_;
  }
  return feeds == element_types_of_ ? element_types_ : nullptr;
}

Executor* Program::Find(absl::Span<const Value* const> inputs) {
  const auto matches = [&](const Entry& entry) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const FeedType& type = entry.types[i];
      const bool given = type.dtype != DType::kUndefined || type.held != nullptr;
      if (inputs[i] == nullptr ? given : !type.Matches(*inputs[i])) return false;
    }
    return true;
  };
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (matches(entries_[i])) return Found(i);
  }
  return nullptr;
}

absl::StatusOr<Executor*> Program::Prepare(absl::Span<const Value* const> inputs) {
  if (Executor* found = Find(inputs)) return found;
  std::vector<FeedType> types;
  for (const Value* input : inputs) {
    types.push_back(input == nullptr ? FeedType{} : FeedType::Of(*input));
  }
  return Prepare(std::move(types));
}

// Sizes that grow from run to run leave plans behind that nobody asks for again.
void Program::MakeRoomFor(const Plan& plan) {
  size_t bytes = plan.arena_bytes;
  for (const Entry& entry : entries_) bytes += entry.executor->plan().arena_bytes;
  while (!entries_.empty() &&
         (entries_.size() >= kMaxCachedPlans || bytes > plan.device->memory_limit())) {
    bytes -= entries_.back().executor->plan().arena_bytes;
    entries_.pop_back();
  }
}

absl::StatusOr<Executor*> Program::Prepare(std::vector<FeedType> types) {
  const auto same = [](const FeedType& a, const FeedType& b) {
    const bool held =
        a.held == nullptr || b.held == nullptr ? a.held == b.held : *a.held == *b.held;
    return a.dtype == b.dtype && a.place == b.place && a.shape == b.shape && held;
  };
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (std::ranges::equal(entries_[i].types, types, same)) return Found(i);
  }
  CompileOptions options = options_;
  options.element_types = ElementTypesFor(types);
  for (size_t i = 0; i < types.size(); ++i) {
    const bool given = types[i].dtype != DType::kUndefined || types[i].held != nullptr;
    if (given) options.feeds[inputs_[i]] = types[i];
  }
  ONWARD_ASSIGN_OR_RETURN(std::shared_ptr<const Plan> plan, Compile(*graph_, options));
  MakeRoomFor(*plan);
  try {
    entries_.insert(entries_.begin(),
                    Entry{std::move(types), std::make_unique<Executor>(std::move(plan))});
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        "out of memory for the plan's buffers; use a smaller batch");
  }
  return entries_.front().executor.get();
}

absl::StatusOr<absl::Span<const Value>> Program::Run(absl::Span<const Value* const> inputs,
                                                     Variables* variables,
                                                     const RunOptions& options) {
  ONWARD_ASSIGN_OR_RETURN(Executor * executor, Prepare(inputs));
  ONWARD_ASSIGN_OR_RETURN(executor, RunChain(executor, inputs, variables, options));
  return executor->results();
}

absl::StatusOr<Executor*> RunChain(Executor* executor, absl::Span<const Value* const> inputs,
                                   Variables* variables, const RunOptions& options) {
  ONWARD_RETURN_IF_ERROR(executor->Compute(inputs, variables, options));
  while (Program* rest = executor->rest()) {
    std::vector<const Value*> handed;
    for (const Value& v : executor->results()) handed.push_back(&v);
    ONWARD_ASSIGN_OR_RETURN(executor, rest->Prepare(handed));
    ONWARD_RETURN_IF_ERROR(executor->Compute(handed, variables, options));
  }
  ONWARD_RETURN_IF_ERROR(executor->Commit(variables, options));
  return executor;
}

}  // namespace onward
