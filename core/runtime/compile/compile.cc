// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/compile/compile.h"

#include <algorithm>
#include <new>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "core/base/size_text.h"
#include "core/base/status.h"
#include "core/graph/infer.h"
#include "core/graph/verify.h"
#include "core/runtime/compile/behind_data.h"
#include "core/runtime/compile/compiler.h"
#include "core/runtime/compile/plan_family.h"
#include "core/runtime/compile/unknown_operators.h"
#include "core/runtime/devices/islands.h"
#include "core/runtime/devices/queues.h"
#include "core/runtime/plan/commit.h"
#include "core/runtime/plan/place.h"
#include "core/runtime/plan/recompute.h"
#include "core/runtime/plan/stretches.h"
#include "core/runtime/rewrite/conditional_updates.h"
#include "core/runtime/rewrite/fuse.h"
#include "core/runtime/rewrite/merge_updates.h"
#include "core/runtime/rewrite/pointwise.h"

namespace onward {
namespace {

absl::Status RefuseFallbacks(const Plan& plan) {
  const std::vector<const PlanStep*> steps = plan.Fallbacks();
  if (steps.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(steps.size(), steps.size() == 1 ? " node" : " nodes", " cannot run on ",
                   plan.accelerators[0]->name(), ", as --require-device demands; the first is ",
                   steps[0]->node.Describe(), ": ", steps[0]->why));
}

}  // namespace

Compiler::Compiler(const Graph& graph, const CompileOptions& options,
                   const absl::flat_hash_set<std::string>& kept_on_host)
    : graph_(graph),
      options_(options),
      builder_(options),
      plan_(builder_.plan()),
      kept_on_host_(kept_on_host),
      updates_(options.updates),
      conditions_(options.conditions) {
  plan_.opsets = graph.opsets;
  operators_ = options.operators;
  if (options.element_types != nullptr && !options.element_types->empty()) {
    operators_ = &known_.emplace(*operators_, options.device->kernels(), *options.element_types);
  }
  if (options.family != nullptr) arrangements_ = &options.family->arrangements;
  context_ = {options.device, operators_, &plan_.opsets, {}, arrangements_};
}

absl::StatusOr<std::shared_ptr<const Plan>> Compiler::Run() {
  const std::vector<std::string> wanted = WantedOutputs(graph_, options_);
  std::vector<std::string> needed = wanted;
  needed.insert(needed.end(), options_.finite.begin(), options_.finite.end());
  ONWARD_RETURN_IF_ERROR(
      OpenConditionalUpdates({needed.begin(), needed.end()}, &graph_, &updates_, &conditions_));
  for (const auto& [variable, value] : updates_) needed.push_back(value);
  for (const auto& [value, condition] : conditions_) needed.push_back(condition.value);
  keep_ = options_.variables;
  keep_.insert(needed.begin(), needed.end());
  // From here on, what is needed is known, and initializers are not fed.
  graph_.outputs.clear();
  std::erase_if(graph_.inputs,
                [&](const NamedType& in) { return graph_.initializers.contains(in.name); });
  ReadThroughIdentities(&graph_);
  // Variables that are assigned have to reach the last plan, also where nothing reads them.
  std::vector<std::string> here = needed;
  for (const auto& [variable, value] : updates_) here.push_back(variable);
  Prune(&graph_, here);
  if (options_.nodes_before == 0) {
    ONWARD_RETURN_IF_ERROR(CheckOperatorsKnown(graph_, *options_.operators, *options_.device));
  }
  rest_ = TakeNodesBehindData(options_, &graph_);
  for (const Node& node : rest_) {
    of_rest_.insert(node.outputs.begin(), node.outputs.end());
    for (std::string& name : AllInputs(node)) here.push_back(std::move(name));
  }
  keep_.insert(here.begin(), here.end());
  ONWARD_RETURN_IF_ERROR(InferConcreteTypes());
  Rewrite();
  Prune(&graph_, here);
  readers_.emplace(&graph_, keep_);
  ONWARD_RETURN_IF_ERROR(AddSources(here));
  ONWARD_RETURN_IF_ERROR(AddNodes());
  if (rest_.empty() && !LooksAtLateValues()) {
    ONWARD_RETURN_IF_ERROR(AddOutputs(wanted));
    ONWARD_ASSIGN_OR_RETURN(const std::vector<PlanGuard> guards, Guards());
    ONWARD_RETURN_IF_ERROR(PlanCommit(updates_, guards, builder_.ids(), &plan_,
                                      [this](int id) { return builder_.Materialize(id); }));
    MergeUpdates(context_, &plan_);
    GuardComputation(&plan_);
  } else {
    ONWARD_RETURN_IF_ERROR(AddRest(wanted, needed));
  }
  if (options_.accelerators.empty()) {
    FusePointwise(&plan_);
    return PlanMemory();
  }
  islands_ = NotWorthTheirCopies(plan_);
  FusePointwise(&plan_);
  OrderByDevice(&plan_);
  auto plan = PlanMemory();
  FindStretches(&plan_);
  return plan;
}

void Compiler::Rewrite() {
  if (AllHave("FusedConv")) FuseFollowers(keep_, arrangements_, &graph_);
  if (AllHave("FusedBatchNormalization")) FuseBatchNormalization(keep_, &graph_);
  if (AllHave("MaxPoolWinners")) KeepWinnersOfPools(keep_, &graph_);
  if (AllHave("GatherGradRows")) UpdateRowsOnly(keep_, *options_.operators, &graph_);
  JoinPads(keep_, &graph_);
}

bool Compiler::AllHave(const char* op) const {
  const auto has = [&](const Device* device) {
    return device->kernels().Find(op, kOnwardDomain) != nullptr;
  };
  return has(options_.device) && absl::c_all_of(options_.accelerators, has);
}

absl::Status Compiler::InferConcreteTypes() {
  for (NamedType& in : graph_.inputs) {
    auto it = options_.feeds.find(in.name);
    if (it != options_.feeds.end()) in.type = it->second.type();
  }
  graph_.types.clear();
  ONWARD_RETURN_IF_ERROR(InferKnownTypes(&graph_, *operators_));
  if (options_.element_types != nullptr && !known_.has_value()) {
    for (const auto& [name, type] : graph_.types) {
      if (type.is_tensor() && type.known()) options_.element_types->emplace(name, type.dtype);
    }
  }
  return absl::OkStatus();
}

absl::Status Compiler::AddSources(const std::vector<std::string>& needed) {
  for (const auto& [name, tensor] : graph_.initializers) {
    if (!options_.variables.contains(name)) {
      builder_.AddConstant(name, tensor);
      continue;
    }
    const int id =
        builder_.AddSource(name, tensor.dtype(), tensor.shape(), PlanValue::Storage::kVariable);
    builder_.value(id).device = HomeOf(tensor);
    plan_.variables.emplace_back(name, id);
  }
  absl::flat_hash_set<std::string> read(needed.begin(), needed.end());
  for (const Node& node : graph_.nodes) {
    for (std::string& v : AllInputs(node)) read.insert(std::move(v));
  }
  for (const auto& [input, value] : options_.twins) {
    if (read.contains(value)) read.insert(input);
  }
  for (int i = 0; i < static_cast<int>(graph_.inputs.size()); ++i) {
    const NamedType& in = graph_.inputs[i];
    if (builder_.Find(in.name) >= 0 || !read.contains(in.name)) continue;
    auto it = options_.feeds.find(in.name);
    if (it == options_.feeds.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("input '", in.name, "' (", in.type.ToString(), ") is not given"));
    }
    const FeedType& type = it->second;
    const int id =
        type.held == nullptr
            ? builder_.AddSource(in.name, type.dtype, type.shape, PlanValue::Storage::kFeed)
            : builder_.AddSource(in.name, DType::kUndefined, std::nullopt,
                                 PlanValue::Storage::kValue);
    builder_.value(id).device = type.place;
    plan_.feeds.push_back({in.name, id, i});
  }
  for (const auto& [input, value] : options_.twins) {
    const int twin = builder_.Find(input), id = builder_.Find(value);
    if (twin < 0 || id < 0) continue;
    builder_.Twin(id, twin);
    builder_.value(twin).name = value;
  }
  return absl::OkStatus();
}

absl::Status Compiler::AddOutputs(const std::vector<std::string>& wanted) {
  auto place = [&](const std::string& name) -> absl::StatusOr<int> {
    const int id = builder_.Find(name);
    if (id < 0) {
      return absl::InvalidArgumentError(absl::StrCat("output '", name, "' is not produced"));
    }
    builder_.Name(name, builder_.Plain(id));
    return builder_.Find(name);
  };
  for (const std::string& name : wanted) {
    ONWARD_ASSIGN_OR_RETURN(int id, place(name));
    plan_.outputs.emplace_back(name, options_.anywhere.contains(name) ? id : builder_.OnHost(id));
  }
  for (const std::string& name : options_.finite) {
    ONWARD_ASSIGN_OR_RETURN(int id, place(name));
    plan_.finite.push_back(id);
  }
  for (const auto& [variable, value] : updates_) {
    ONWARD_ASSIGN_OR_RETURN(const int id, place(value));
    // What crosses to another device does so before anything is assigned.
    const int home = builder_.Find(variable);
    builder_.Name(value, builder_.At(id, home < 0 ? kHost : builder_.value(home).device));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<PlanGuard>> Compiler::Guards() {
  std::vector<PlanGuard> guards(updates_.size());
  absl::flat_hash_map<int, int> copies;  // of conditions that are variables
  for (size_t i = 0; i < guards.size(); ++i) {
    const auto it = conditions_.find(updates_[i].second);
    if (it == conditions_.end()) continue;
    const UpdateCondition& condition = it->second;
    const int found = builder_.Find(condition.value);
    if (found < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("condition '", condition.value, "' is not produced"));
    }
    int id = builder_.OnHost(builder_.Plain(found));
    // A variable may be assigned itself, before others that depend on what it was.
    if (builder_.value(builder_.value(id).root).storage == PlanValue::Storage::kVariable) {
      const auto [copy, fresh] = copies.try_emplace(id, -1);
      if (fresh) copy->second = builder_.Materialize(id);
      id = copy->second;
    }
    const PlanValue& v = builder_.value(id);
    if (v.shape.has_value() && (v.dtype != DType::kBool || v.shape->elements() != 1)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the condition '", condition.value, "' of an If is ",
                       ValueType::Of(v.dtype, *v.shape).ToString(), ", not one bool"));
    }
    guards[i] = {id, condition.when};
  }
  return guards;
}

absl::StatusOr<std::shared_ptr<const Plan>> Compiler::PlanMemory() {
  const size_t limit = options_.device->memory_limit(), resident = ResidentBytes(kHost);
  const size_t room = limit - std::min(limit, resident);
  const Plan unplaced = plan_;
  ShareBuffers(&plan_);
  PlaceValues(&plan_);
  const size_t wanted = plan_.arena_bytes;
  // Placing leaves gaps, so a little less than the room is aimed at.
  for (size_t aim = room; plan_.arena_bytes > room && aim > room / 2; aim -= room / 10) {
    plan_ = unplaced;
    RecomputeToFit(aim, &plan_);
    ShareBuffers(&plan_);
    PlaceValues(&plan_);
  }
  ONWARD_RETURN_IF_ERROR(CheckAccelerators());
  if (plan_.arena_bytes <= room) return builder_.shared();
  return absl::ResourceExhaustedError(absl::StrCat(
      "one run needs ", SizeText(wanted + resident), " of memory, ",
      SizeText(plan_.arena_bytes + resident), " if values are computed again, more than the ",
      SizeText(limit), " allowed; use a smaller batch"));
}

absl::Status Compiler::CheckAccelerators() const {
  for (int d = 1; d <= static_cast<int>(plan_.accelerators.size()); ++d) {
    const size_t bytes = plan_.accelerator_bytes[d - 1] + ResidentBytes(d);
    const size_t limit = plan_.DeviceOf(d).memory_limit();
    if (bytes <= limit) continue;
    return absl::ResourceExhaustedError(
        absl::StrCat("one run needs ", SizeText(bytes), " on ", plan_.DeviceOf(d).name(),
                     ", more than the ", SizeText(limit), " there; use a smaller batch"));
  }
  return absl::OkStatus();
}

size_t Compiler::ResidentBytes(int device) const {
  size_t bytes = 0;
  for (const PlanValue& v : plan_.values) {
    const bool resident =
        v.storage == PlanValue::Storage::kVariable || v.storage == PlanValue::Storage::kConstant;
    if (resident && v.device == device && v.root == &v - plan_.values.data() &&
        v.shape.has_value()) {
      bytes += v.bytes();
    }
  }
  return bytes;
}

std::vector<std::string> WantedOutputs(const Graph& graph, const CompileOptions& options) {
  if (options.outputs.has_value()) return *options.outputs;
  std::vector<std::string> names;
  for (const NamedType& out : graph.outputs) names.push_back(out.name);
  return names;
}

void ShareQueues(CompileOptions* options) {
  if (options->accelerators.empty() || options->queues != nullptr) return;
  options->queues = std::make_shared<Queues>(options->accelerators);
}

absl::StatusOr<std::shared_ptr<const Plan>> Compile(const Graph& graph,
                                                    const CompileOptions& given) {
  CompileOptions shared;
  if (!given.accelerators.empty() && given.queues == nullptr) {
    shared = given;
    ShareQueues(&shared);
  }
  const CompileOptions& options = shared.queues == nullptr ? given : shared;
  ONWARD_RETURN_IF_ERROR(options.device->Usable());
  try {
    const absl::flat_hash_set<std::string> kept_on_host;
    Compiler compiler(graph, options, kept_on_host);
    auto plan = compiler.Run();
    if (plan.ok() && !compiler.islands().empty()) {
      plan = Compiler(graph, options, compiler.islands()).Run();
    }
    if (plan.ok() && options.require_accelerator) {
      ONWARD_RETURN_IF_ERROR(RefuseFallbacks(**plan));
    }
    if (plan.ok() && options.planned) options.planned(**plan);
    return plan;
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory while preparing the graph");
  }
}

}  // namespace onward
