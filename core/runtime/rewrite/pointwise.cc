// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/rewrite/pointwise.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_join.h"
#include "core/runtime/plan/uses.h"

namespace onward {
namespace {

constexpr size_t kMaxSteps = 24;
constexpr size_t kMaxInputs = 16;

class PointwiseFuser {
 public:
  explicit PointwiseFuser(Plan* plan)
      : plan_(*plan), steps_(plan->compute), absorbed_(steps_.size(), false) {
    ForEachUse(plan_, [&](int id, int step, Use use) {
      if (use == Use::kWrite) {
        if (step < static_cast<int>(steps_.size())) producer_[id] = step;
      } else {
        readers_[plan_.values[id].root].push_back(step);
      }
    });
  }

  void Run() {
    for (int at = static_cast<int>(steps_.size()) - 1; at >= 0; --at) {
      if (!absorbed_[at] && Joins(at)) Grow(at);
    }
    std::vector<PlanStep> kept;
    for (size_t s = 0; s < steps_.size(); ++s) {
      if (!absorbed_[s]) kept.push_back(std::move(steps_[s]));
    }
    steps_ = std::move(kept);
  }

 private:
  bool Joins(int s) const {
    const PlanStep& step = steps_[s];
    if (step.late || step.kernel.pointwise == nullptr || step.outputs.size() != 1) return false;
    const auto numeric = [&](int id) { return id < 0 || plan_.values[id].dtype != DType::kString; };
    return std::all_of(step.inputs.begin(), step.inputs.end(), numeric) && numeric(step.outputs[0]);
  }

  const PlanValue& Result(int s) const { return plan_.values[steps_[s].outputs[0]]; }

  // Whether step p, whose result a step of the group reads, can run in it.
  bool CanAbsorb(int p, const std::set<int>& group, int anchor) const {
    if (absorbed_[p] || !Joins(p) || !(steps_[p].guard == steps_[anchor].guard)) return false;
    const PlanValue &result = Result(p), &last = Result(anchor);
    if (result.shape != last.shape || !SameLayout(result.layout, last.layout)) return false;
    const std::vector<int>& readers = readers_.at(result.root);
    return std::all_of(readers.begin(), readers.end(), [&](int r) {
      return r > anchor || (group.contains(r) && !ReadsViewOf(r, steps_[p].outputs[0]));
    });
  }

  // Whether the step reads the memory of `id` under another name: inside a chain
  // that memory is not written in time.
  bool ReadsViewOf(int s, int id) const {
    const int root = plan_.values[id].root;
    return std::any_of(steps_[s].inputs.begin(), steps_[s].inputs.end(), [&](int in) {
      return in >= 0 && in != id && plan_.values[in].root == root;
    });
  }

  void Grow(int anchor) {
    std::set<int> group = {anchor};
    for (bool grown = true; grown && group.size() < kMaxSteps;) {
      grown = false;
      for (auto it = group.rbegin(); it != group.rend() && !grown; ++it) {
        for (int id : steps_[*it].inputs) {
          auto producer = producer_.find(id);
          if (producer == producer_.end() || group.contains(producer->second) ||
              !CanAbsorb(producer->second, group, anchor)) {
            continue;
          }
          group.insert(producer->second);
          grown = true;
          break;
        }
      }
    }
    if (group.size() > 1) Replace(group, anchor);
  }

  void Replace(const std::set<int>& group, int anchor) {
    PlanStep fused;
    std::vector<ChainStep> chain;
    std::map<int, int> input_of;  // value -> input of the chain
    std::map<int, int> step_of;   // value -> step of the chain
    std::vector<ValueSpec> specs;
    std::vector<std::string> names;
    for (int s : group) {
      const PlanStep& step = steps_[s];
      ChainStep link{step.kernel.pointwise, {}, plan_.values[step.outputs[0]].dtype, -1};
      for (int input : step.kernel.pointwise->inputs) {
        const int id = step.inputs[input];
        if (auto inner = step_of.find(id); inner != step_of.end()) {
          link.operands.push_back(~inner->second);
          continue;
        }
        auto [it, inserted] = input_of.try_emplace(id, static_cast<int>(fused.inputs.size()));
        if (inserted) {
          fused.inputs.push_back(id);
          const PlanValue& v = plan_.values[id];
          specs.push_back({v.dtype, v.shape, v.layout, nullptr});
        }
        link.operands.push_back(it->second);
      }
      const std::vector<int>* readers = Readers(step.outputs[0]);
      const bool leaves = s == anchor || (readers != nullptr &&
                                          std::any_of(readers->begin(), readers->end(),
                                                      [&](int r) { return !group.contains(r); }));
      if (leaves) {
        link.output = static_cast<int>(fused.outputs.size());
        fused.outputs.push_back(step.outputs[0]);
      }
      step_of[step.outputs[0]] = static_cast<int>(chain.size());
      names.push_back(step.node.op_type);
      chain.push_back(std::move(link));
    }
    if (fused.inputs.size() > kMaxInputs) return;
    const Device& device = plan_.DeviceOf(steps_[anchor].device);
    auto kernel = device.MakeChain(chain, specs, *Result(anchor).shape, Result(anchor).layout);
    if (!kernel.ok()) return;
    fused.kernel = *std::move(kernel);
    fused.node = steps_[anchor].node;
    fused.device = steps_[anchor].device;
    fused.guard = steps_[anchor].guard;
    fused.why = steps_[anchor].why;
    fused.node.op_type = absl::StrJoin(names, "+");
    for (int s : group) absorbed_[s] = s != anchor;
    steps_[anchor] = std::move(fused);
  }

  const std::vector<int>* Readers(int id) const {
    auto it = readers_.find(plan_.values[id].root);
    return it == readers_.end() ? nullptr : &it->second;
  }

  Plan& plan_;
  std::vector<PlanStep>& steps_;
  std::vector<bool> absorbed_;
  absl::flat_hash_map<int, std::vector<int>> readers_;  // root -> steps
  absl::flat_hash_map<int, int> producer_;              // value -> step
};

}  // namespace

void FusePointwise(Plan* plan) { PointwiseFuser(plan).Run(); }

}  // namespace onward
