// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/plan/stretches.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"

namespace onward {
namespace {

constexpr size_t kSlotAlignment = 256;

size_t SlotAligned(size_t bytes) {
  return (bytes + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
}

bool CopiesIn(const Plan& plan, const PlanStep& step) {
  return step.transfer && plan.values[step.inputs[0]].device == kHost &&
         plan.values[step.outputs[0]].device != kHost;
}

bool CrossesBorder(const Plan& plan, const PlanStep& step) {
  return step.transfer && (plan.values[step.inputs[0]].device == kHost) !=
                              (plan.values[step.outputs[0]].device == kHost);
}

class Ordering {
 public:
  explicit Ordering(Plan* plan) : plan_(*plan), steps_(plan->compute), taken_(steps_.size()) {
    absl::flat_hash_map<int, int> producer;  // root value -> step
    needs_.resize(steps_.size());
    for (size_t s = 0; s < steps_.size(); ++s) {
      for (int id : steps_[s].inputs) {
        if (id < 0) continue;
        const auto it = producer.find(plan_.values[id].root);
        if (it != producer.end()) needs_[s].push_back(it->second);
      }
      for (int id : steps_[s].outputs) {
        if (id >= 0) producer[plan_.values[id].root] = static_cast<int>(s);
      }
    }
  }

  void Run() {
    std::vector<PlanGuard> guards = {PlanGuard{}};
    for (const PlanStep& step : steps_) {
      if (!absl::c_linear_search(guards, step.guard)) guards.push_back(step.guard);
    }
    for (const PlanGuard& guard : guards) TakeAll(guard);
    std::vector<PlanStep> steps;
    for (const int s : ordered_) steps.push_back(std::move(steps_[s]));
    steps_ = std::move(steps);
  }

 private:
  // What a guarded step reads has the same guard, or none.
  void TakeAll(const PlanGuard& guard) {
    const int devices = static_cast<int>(plan_.accelerators.size()) + 1;
    const size_t end = ordered_.size() + absl::c_count_if(steps_, [&](const PlanStep& step) {
                         return step.guard == guard;
                       });
    while (ordered_.size() < end) {
      for (int device = 0; device < devices; ++device) {
        for (const Kind kind : {Kind::kFeed, Kind::kCopyIn, Kind::kOther}) {
          Take(guard, device, kind);
        }
      }
    }
  }

  // What is fed comes to a device before all else in a run (FeedCopies), so its memory is in use
  // from there on: behind another copy it could be given memory that this one still fills.
  enum class Kind { kFeed, kCopyIn, kOther };
  Kind KindOf(const PlanStep& step) const {
    if (plan_.CopiesFeed(step)) return Kind::kFeed;
    return CopiesIn(plan_, step) ? Kind::kCopyIn : Kind::kOther;
  }

  // What is ready of a device: a pass takes steps behind those that it takes.
  void Take(const PlanGuard& guard, int device, Kind kind) {
    for (size_t s = 0; s < steps_.size(); ++s) {
      const bool ready = !taken_[s] && steps_[s].device == device && steps_[s].guard == guard &&
                         kind == KindOf(steps_[s]) &&
                         absl::c_all_of(needs_[s], [&](int before) { return taken_[before]; });
      if (!ready) continue;
      taken_[s] = true;
      ordered_.push_back(static_cast<int>(s));
    }
  }

  const Plan& plan_;
  std::vector<PlanStep>& steps_;
  std::vector<std::vector<int>> needs_;
  std::vector<bool> taken_;
  std::vector<int> ordered_;
};

// Whether the host need not look at anything before variables are assigned: what is checked is on
// the device that the last stretch is of, and all of it is assigned in every run.
bool CommitsInStretch(const Plan& plan) {
  if (plan.updates.empty() || plan.stretches.empty()) return false;
  const int device = plan.stretches.back().device;
  if (device == kHost) return false;
  const auto always = [](const auto& assignment) { return assignment.guard.always(); };
  if (!absl::c_all_of(plan.commit, always) || !absl::c_all_of(plan.copies, always)) return false;
  const auto checked_there = [&](int id) {
    const PlanValue& v = plan.values[id];
    return v.device == device || (v.device == kHost && !IsFloating(v.dtype));
  };
  return absl::c_all_of(plan.finite, checked_there) &&
         absl::c_all_of(plan.copies, [&](const PlanCopy& c) { return checked_there(c.from); }) &&
         absl::c_all_of(plan.commit, [&](const PlanStep& step) {
           return absl::c_all_of(step.outputs, [&](int id) { return id < 0 || checked_there(id); });
         });
}

}  // namespace

void OrderByDevice(Plan* plan) { Ordering(plan).Run(); }

void FindStretches(Plan* plan) {
  plan->stretches.clear();
  plan->slot_bytes = plan->fed_bytes = 0;
  size_t used = 0;
  bool all_copies_in = true;  // of the stretch so far
  for (int s = 0; s < static_cast<int>(plan->compute.size()); ++s) {
    PlanStep& step = plan->compute[s];
    // What comes from the host is put down there before a stretch begins.
    const bool copies_in = CopiesIn(*plan, step);
    if (plan->stretches.empty() || plan->stretches.back().device != step.device ||
        !(plan->stretches.back().guard == step.guard) || (copies_in && !all_copies_in)) {
      plan->stretches.push_back({step.device, s, s, step.guard});
      used = 0;
      all_copies_in = true;
    }
    all_copies_in &= copies_in;
    plan->stretches.back().end = s + 1;
    if (!CrossesBorder(*plan, step)) continue;
    size_t& end = plan->CopiesFeed(step) ? plan->fed_bytes : used;
    step.slot = end;
    end += SlotAligned(plan->values[step.outputs[0]].bytes());
    plan->slot_bytes = std::max(plan->slot_bytes, used);
  }
  plan->commits_in_stretch = CommitsInStretch(*plan);
}

}  // namespace onward
