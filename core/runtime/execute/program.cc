// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/execute/program.h"

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

#include "core/base/status.h"
#include "core/runtime/compile/plan_family.h"

namespace onward {
namespace {

// Plans that a program keeps in any case; the one not used for longest is dropped first.
constexpr size_t kFewestPlans = 16;
// More are kept while all plans of the family take less than this.
constexpr size_t kMostBytes = size_t{64} << 20;
// What a step takes: its node, kernel and values.
constexpr size_t kStepBytes = 4096;

size_t BytesOf(const Plan& plan) {
  return (plan.compute.size() + plan.commit.size() + 1) * kStepBytes + plan.folded_bytes;
}

size_t Mixed(size_t seed, size_t value) {
  return (seed ^ value) * size_t{0x9e3779b97f4a7c15} + (seed >> 29);
}

// Alike for equal types; all that is no tensor counts as one kind.
size_t SignatureOf(size_t seed, DType dtype, const Shape& shape) {
  seed = Mixed(seed, static_cast<size_t>(dtype));
  for (const int64_t d : shape) seed = Mixed(seed, static_cast<size_t>(d));
  return seed;
}

size_t SignatureOf(const std::vector<FeedType>& types) {
  size_t signature = 0;
  for (const FeedType& t : types) signature = SignatureOf(signature, t.dtype, t.shape);
  return signature;
}

size_t SignatureOf(absl::Span<const Value* const> inputs) {
  size_t signature = 0;
  for (const Value* input : inputs) {
    const Tensor* t = input == nullptr ? nullptr : input->tensor();
    signature = t == nullptr ? SignatureOf(signature, DType::kUndefined, {})
                             : SignatureOf(signature, t->dtype(), t->shape());
  }
  return signature;
}

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
    : graph_(std::move(graph)), options_(std::move(options)), inner_(options_.family != nullptr) {
  ShareQueues(&options_);
  if (!inner_) options_.family = std::make_shared<PlanFamily>();
  for (const NamedType& in : graph_->FeedInputs()) inputs_.push_back(in.name);
}

Program::~Program() {
  while (!entries_.empty()) DropLast();
  if (inner_) options_.family->kept_bytes -= arena_->memory.bytes();
}

Executor* Program::Find(size_t signature, absl::FunctionRef<bool(const Entry&)> matches) {
  if (!entries_.empty() && entries_.front().signature == signature && matches(entries_.front())) {
    return entries_.front().executor.get();
  }
  const auto [begin, end] = by_signature_.equal_range(signature);
  for (auto it = begin; it != end; ++it) {
    if (!matches(*it->second)) continue;
    entries_.splice(entries_.begin(), entries_, it->second);
    return entries_.front().executor.get();
  }
  return nullptr;
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
  return Find(SignatureOf(inputs), [&](const Entry& entry) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const FeedType& type = entry.types[i];
      const bool given = type.dtype != DType::kUndefined || type.held != nullptr;
      if (inputs[i] == nullptr ? given : !type.Matches(*inputs[i])) return false;
    }
    return true;
  });
}

absl::StatusOr<Executor*> Program::Prepare(absl::Span<const Value* const> inputs) {
  if (Executor* found = Find(inputs)) return found;
  std::vector<FeedType> types;
  for (const Value* input : inputs) {
    types.push_back(input == nullptr ? FeedType{} : FeedType::Of(*input));
  }
  return Prepare(std::move(types));
}

void Program::DropLast() {
  const auto last = std::prev(entries_.end());
  const auto [begin, end] = by_signature_.equal_range(last->signature);
  by_signature_.erase(
      std::find_if(begin, end, [&](const auto& entry) { return entry.second == last; }));
  options_.family->kept_bytes -= last->bytes;
  entries_.pop_back();
}

// Sizes that grow from run to run leave plans behind that nobody may ask for again.
void Program::MakeRoomFor(const Plan& plan) {
  if (!plan.UsesAccelerators()) {
    const size_t fresh = BytesOf(plan);
    while (entries_.size() >= kFewestPlans && options_.family->kept_bytes + fresh > kMostBytes) {
      DropLast();
    }
    return;
  }
  // Each has an arena of its own.
  size_t arenas = plan.arena_bytes;
  for (const Entry& entry : entries_) arenas += entry.executor->plan().arena_bytes;
  while (!entries_.empty() &&
         (entries_.size() >= kFewestPlans || arenas > plan.device->memory_limit())) {
    arenas -= entries_.back().executor->plan().arena_bytes;
    DropLast();
  }
}

absl::StatusOr<Executor*> Program::Prepare(std::vector<FeedType> types) {
  const auto same = [](const FeedType& a, const FeedType& b) {
    const bool held =
        a.held == nullptr || b.held == nullptr ? a.held == b.held : *a.held == *b.held;
    return a.dtype == b.dtype && a.place == b.place && a.shape == b.shape && held;
  };
  const size_t signature = SignatureOf(types);
  const auto matches = [&](const Entry& entry) {
    return std::ranges::equal(entry.types, types, same);
  };
  if (Executor* found = Find(signature, matches)) return found;
  CompileOptions options = options_;
  options.element_types = ElementTypesFor(types);
  for (size_t i = 0; i < types.size(); ++i) {
    const bool given = types[i].dtype != DType::kUndefined || types[i].held != nullptr;
    if (given) options.feeds[inputs_[i]] = types[i];
  }
  ONWARD_ASSIGN_OR_RETURN(std::shared_ptr<const Plan> plan, Compile(*graph_, options));
  const size_t bytes = BytesOf(*plan);
  MakeRoomFor(*plan);
  const size_t arena = arena_->memory.bytes();
  try {
    entries_.push_front(
        {signature, std::move(types), bytes, std::make_unique<Executor>(std::move(plan), arena_)});
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        "out of memory for the plan's buffers; use a smaller batch");
  }
  by_signature_.emplace(signature, entries_.begin());
  options_.family->kept_bytes += bytes;
  if (inner_) options_.family->kept_bytes += arena_->memory.bytes() - arena;
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
