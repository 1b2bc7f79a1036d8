// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/plan/place.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/runtime/plan/memory_plan.h"
#include "core/runtime/plan/uses.h"

namespace onward {
namespace {

int RootOf(const Plan& plan, int id) {
  while (plan.values[id].root != id) id = plan.values[id].root;
  return id;
}

// The input of the step that output o may be written over, or -1.
int InputToOverwrite(const Plan& plan, const PlanStep& step, int o, int at,
                     const std::vector<int>& last_use) {
  const PlanValue& out = plan.values[step.outputs[o]];
  for (const auto& [output, input] : step.kernel.in_place) {
    if (output != o || input >= static_cast<int>(step.inputs.size()) || step.inputs[input] < 0)
      continue;
    const int id = step.inputs[input], root = RootOf(plan, id);
    const PlanValue& in = plan.values[id];
    if (plan.values[root].storage != PlanValue::Storage::kArena || last_use[root] != at) continue;
    if (in.bytes() != out.bytes() || plan.values[root].bytes() != out.bytes()) continue;
    // Another operand in the same memory may be read out of step.
    const auto same = std::count_if(step.inputs.begin(), step.inputs.end(), [&](int other) {
      return other >= 0 && RootOf(plan, other) == root;
    });
    if (same == 1) return root;
  }
  return -1;
}

// Gives what is in the memory of one device its place in the arena there.
MemoryPlan PlaceOn(int device, Plan* plan) {
  std::vector<Lifetime> buffers;
  absl::flat_hash_map<int, int> buffer_of;  // root value -> index
  ForEachUse(*plan, [&](int id, int at, Use use) {
    if (use == Use::kShape) return;
    const PlanValue& root = plan->values[plan->values[id].root];
    if (root.storage != PlanValue::Storage::kArena || root.device != device) return;
    auto [it, inserted] = buffer_of.try_emplace(root.root, static_cast<int>(buffers.size()));
    if (inserted) buffers.push_back({root.bytes(), at, at, 0});
    buffers[it->second].last = std::max(buffers[it->second].last, at);
  });
  std::vector<std::pair<PlanStep*, int>> workspaces;
  int at = 0;
  for (std::vector<PlanStep>* steps : {&plan->compute, &plan->commit}) {
    for (PlanStep& step : *steps) {
      if (step.kernel.workspace_bytes > 0 && step.device == device) {
        workspaces.emplace_back(&step, static_cast<int>(buffers.size()));
        buffers.push_back({step.kernel.workspace_bytes, at, at, 0});
      }
      ++at;
    }
  }
  const MemoryPlan memory = PlaceBuffers(&buffers);
  for (const auto& [root, index] : buffer_of) plan->values[root].offset = buffers[index].offset;
  for (const auto& [step, index] : workspaces) step->workspace_offset = buffers[index].offset;
  return memory;
}

}  // namespace

void ShareBuffers(Plan* plan) {
  std::vector<int> last_use(plan->values.size(), -1);
  ForEachUse(*plan, [&](int id, int at, Use use) {
    if (use == Use::kShape) return;
    int& last = last_use[RootOf(*plan, id)];
    last = std::max(last, at);
  });
  for (size_t at = 0; at < plan->compute.size(); ++at) {
    PlanStep& step = plan->compute[at];
    if (step.late) continue;
    for (size_t o = 0; o < step.outputs.size(); ++o) {
      const int out = step.outputs[o];
      if (out < 0 || plan->values[out].root != out ||
          plan->values[out].storage != PlanValue::Storage::kArena) {
        continue;
      }
      const int root =
          InputToOverwrite(*plan, step, static_cast<int>(o), static_cast<int>(at), last_use);
      if (root < 0) continue;
      plan->values[out].root = root;
      last_use[root] = last_use[out];
    }
  }
  for (size_t id = 0; id < plan->values.size(); ++id) {
    plan->values[id].root = RootOf(*plan, static_cast<int>(id));
  }
}

void PlaceValues(Plan* plan) {
  const MemoryPlan host = PlaceOn(kHost, plan);
  plan->arena_bytes = host.arena_bytes;
  plan->live_bytes = host.live_bytes;
  plan->accelerator_bytes.clear();
  for (int d = 1; d <= static_cast<int>(plan->accelerators.size()); ++d) {
    plan->accelerator_bytes.push_back(PlaceOn(d, plan).arena_bytes);
  }
}

}  // namespace onward
