// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/plan/commit.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace onward {
namespace {

struct Target {
  int variable;  // value id
  PlanGuard guard;
};
using Targets = absl::flat_hash_map<int, Target>;  // by the id of the value it gets

// The variable that each output of a step may be written over, or nothing if
// the step has to stay in the compute phase.
Targets InPlaceTargets(const PlanStep& step, const Targets& updates, const Plan& plan,
                       const absl::flat_hash_set<int>& read_elsewhere) {
  Targets targets;
  if (step.late || !step.kernel.infallible || step.kernel.in_place.empty()) return targets;
  for (size_t o = 0; o < step.outputs.size(); ++o) {
    const int out = step.outputs[o];
    if (out < 0) continue;
    auto update = updates.find(out);
    if (update == updates.end() || read_elsewhere.contains(out) ||
        plan.values[out].layout != nullptr)
      return {};
    if (!targets.empty() && !(targets.begin()->second.guard == update->second.guard)) return {};
    // On an accelerator nothing is assigned but by what can be stopped there.
    const bool checked = step.device == kHost ? static_cast<bool>(step.kernel.would_be_finite)
                                              : static_cast<bool>(step.kernel.flag_infinite);
    if ((IsFloating(plan.values[out].dtype) || step.device != kHost) && !checked) return {};
    const bool over = std::any_of(step.kernel.in_place.begin(), step.kernel.in_place.end(),
                                  [&](const auto& pair) {
                                    return pair.first == static_cast<int>(o) &&
                                           pair.second < static_cast<int>(step.inputs.size()) &&
                                           step.inputs[pair.second] == update->second.variable;
                                  });
    if (!over) return {};
    targets[out] = update->second;
  }
  return targets;
}

}  // namespace

absl::Status PlanCommit(const std::vector<std::pair<std::string, std::string>>& updates,
                        const std::vector<PlanGuard>& guards,
                        const absl::flat_hash_map<std::string, int>& ids, Plan* plan,
                        const std::function<int(int)>& materialize) {
  Targets wanted;
  absl::flat_hash_map<std::string, int> variable_ids(plan->variables.begin(),
                                                     plan->variables.end());
  absl::flat_hash_map<int, int> uses;
  absl::flat_hash_set<std::string> listed;
  for (size_t i = 0; i < updates.size(); ++i) {
    const auto& [variable, value] = updates[i];
    if (listed.insert(variable).second) plan->updates.push_back(variable);
    auto it = variable_ids.find(variable);
    const int id = ids.at(value);
    if (++uses[id] == 1 && it != variable_ids.end()) wanted[id] = {it->second, guards[i]};
  }
  absl::flat_hash_set<int> read;
  for (const auto& [id, n] : uses) {
    if (n > 1) read.insert(id);
  }
  for (const PlanStep& step : plan->compute) read.insert(step.inputs.begin(), step.inputs.end());
  for (const PlanValue& v : plan->values) {
    if (v.root != static_cast<int>(&v - plan->values.data())) read.insert(v.root);
  }
  for (const auto& [name, id] : plan->outputs) read.insert(id);
  read.insert(plan->finite.begin(), plan->finite.end());
  // Conditions are looked at before anything is assigned.
  for (const PlanGuard& guard : guards) read.insert(guard.value);

  std::vector<Targets> targets(plan->compute.size());
  absl::flat_hash_map<int, int> commit_readers;  // variable -> candidates that read it
  for (size_t i = 0; i < plan->compute.size(); ++i) {
    targets[i] = InPlaceTargets(plan->compute[i], wanted, *plan, read);
    if (targets[i].empty()) continue;
    absl::flat_hash_set<int> roots;
    for (int id : plan->compute[i].inputs) {
      if (id >= 0) roots.insert(plan->values[id].root);
    }
    for (int root : roots) ++commit_readers[root];
  }
  // A variable that another commit step still reads may not be overwritten.
  std::vector<PlanStep> compute;
  for (size_t i = 0; i < plan->compute.size(); ++i) {
    const bool conflict = std::any_of(targets[i].begin(), targets[i].end(), [&](const auto& t) {
      return commit_readers[plan->values[t.second.variable].root] > 1;
    });
    if (targets[i].empty() || conflict) {
      compute.push_back(std::move(plan->compute[i]));
      continue;
    }
    for (const auto& [out, target] : targets[i]) {
      plan->values[out].root = target.variable;
      plan->values[out].storage = PlanValue::Storage::kVariable;
      plan->compute[i].guard = target.guard;
    }
    plan->commit.push_back(std::move(plan->compute[i]));
  }
  plan->compute = std::move(compute);

  for (size_t i = 0; i < updates.size(); ++i) {
    const auto& [variable, value] = updates[i];
    int id = ids.at(value);
    const PlanValue& v = plan->values[id];
    auto it = variable_ids.find(variable);
    if (it != variable_ids.end() && v.root == it->second) continue;  // written in place, or itself
    // The source must not change while other variables are assigned.
    if (plan->values[v.root].storage == PlanValue::Storage::kVariable ||
        plan->values[v.root].storage == PlanValue::Storage::kFeed) {
      id = materialize(id);
    }
    plan->copies.push_back({id, variable, guards[i]});
  }
  return absl::OkStatus();
}

}  // namespace onward
