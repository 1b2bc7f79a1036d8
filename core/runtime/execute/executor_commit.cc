// SPDX-License-Identifier: Apache-2.0
// Phase two of a run: variables are assigned, if all of them stay finite.
#include <algorithm>
#include <cstring>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/base/parallel.h"
#include "core/base/status.h"
#include "core/runtime/devices/accelerators.h"
#include "core/runtime/devices/residents.h"
#include "core/runtime/execute/bound_step.h"
#include "core/tensor/finite.h"

namespace onward {
namespace {

// " (nor are those of 2 other variables)"
std::string Others(size_t count) {
  if (count == 0) return "";
  return absl::StrCat(" (nor ", count == 1 ? "is that of " : "are those of ", count,
                      " other variable", count == 1 ? ")" : "s)");
}

}  // namespace

void CopyBytes(const Tensor& from, Tensor* to) {
  constexpr int64_t kGrain = 1 << 18;
  const char* source = static_cast<const char*>(from.raw());
  char* target = static_cast<char*>(to->raw());
  ParallelFor(static_cast<int64_t>(to->bytes()), kGrain, [&](int64_t begin, int64_t end) {
    std::memcpy(target + begin, source + begin, end - begin);
  });
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

absl::StatusOr<bool> Executor::IsFinite(int id) {
  const int device = plan_->values[id].device;
  if (device == kHost) return AllFinite(tensors_[id]);
  if (!IsFloating(tensors_[id].dtype())) return true;
  return accelerators_->stream(device).AllFinite(tensors_[id]);
}

absl::Status Executor::CheckUpdates(Variables* variables, const RunOptions& options,
                                    bool notes_hold) {
  bool finite = true;
  for (const BoundStep& b : commit_) {
    std::fill_n(b.bad.get(), b.outputs.size(), false);
    // What others wrote since is not known to a step that sits this run out.
    if (!notes_hold) b.notes->magnitudes.clear();
    ONWARD_ASSIGN_OR_RETURN(const bool due, Holds(b.step->guard));
    if (!due || !b.step->kernel.would_be_finite) continue;
    b.notes->hold = notes_hold;
    finite &= b.step->kernel.would_be_finite(CallOf(b, {}), b.bad.get());
  }
  for (const PlanCopy& copy : plan_->copies) {
    ONWARD_ASSIGN_OR_RETURN(const bool due, Holds(copy.guard));
    if (!due) continue;
    ONWARD_ASSIGN_OR_RETURN(const bool good, IsFinite(copy.from));
    finite &= good;
  }
  if (finite) return absl::OkStatus();
  if (accelerators_ != nullptr) {
    ONWARD_RETURN_IF_ERROR(ResidentsOf(options)->Fetch(variables));
  }
  return BlameUpdate(*variables);
}

absl::Status Executor::BlameUpdate(const Variables& variables) {
  absl::flat_hash_set<std::string> bad;
  for (const BoundStep& b : commit_) {
    for (size_t o = 0; o < b.outputs.size(); ++o) {
      if (b.bad[o]) bad.insert(plan_->values[plan_->values[b.step->outputs[o]].root].name);
    }
  }
  for (const PlanCopy& copy : plan_->copies) {
    ONWARD_ASSIGN_OR_RETURN(const bool due, Holds(copy.guard));
    if (!due) continue;
    ONWARD_ASSIGN_OR_RETURN(const bool good, IsFinite(copy.from));
    if (!good) bad.insert(copy.variable);
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

absl::Status Executor::Commit(Variables* variables, const RunOptions& options) {
  if (plan_->updates.empty()) return absl::OkStatus();
  for (const PlanCopy& copy : plan_->copies) {
    ONWARD_ASSIGN_OR_RETURN(const bool due, Holds(copy.guard));
    if (!due) continue;
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
  ONWARD_RETURN_IF_ERROR(CheckUpdates(variables, options, own));
  if (options.writer != nullptr) *options.writer = nullptr;
  RunOptions commit = options;
  commit.cancel = nullptr;
  ONWARD_RETURN_IF_ERROR(Assign(variables, commit));
  if (options.writer != nullptr) *options.writer = this;
  return absl::OkStatus();
}

absl::Status Executor::Assign(Variables* variables, const RunOptions& options) {
  if (accelerators_ != nullptr) ONWARD_RETURN_IF_ERROR(AssignOnAccelerators(variables));
  // Nothing of this can fail.
  ONWARD_RETURN_IF_ERROR(RunSteps(commit_, options, kHost));
  for (const PlanCopy& copy : plan_->copies) {
    ONWARD_ASSIGN_OR_RETURN(const bool due, Holds(copy.guard));
    if (due && StaysOnHost(copy)) CopyBytes(tensors_[copy.from], &variables->at(copy.variable));
  }
  if (accelerators_ == nullptr) return absl::OkStatus();
  for (const std::string& name : plan_->updates) {
    const int id = HomeOf(name);
    if (id >= 0 && plan_->values[id].device != kHost) ResidentsOf(options)->Wrote(name);
  }
  return options.residents == nullptr ? own_residents_->Fetch(variables) : absl::OkStatus();
}

bool Executor::StaysOnHost(const PlanCopy& copy) const {
  const int home = HomeOf(copy.variable);
  return plan_->values[copy.from].device == kHost &&
         (home < 0 || plan_->values[home].device == kHost);
}

absl::Status Executor::AssignOnAccelerators(Variables* variables) {
  ONWARD_RETURN_IF_ERROR(accelerators_->WaitForAll());
  ONWARD_RETURN_IF_ERROR(accelerators_->Begin());
  absl::Status queued;
  // It was asked before, so that it has an answer.
  const auto due = [&](const PlanGuard& guard) { return Holds(guard).value_or(false); };
  for (const BoundStep& b : commit_) {
    if (b.step->device == kHost || !queued.ok() || !due(b.step->guard)) continue;
    queued = b.step->kernel.run(CallOf(b, {}));
  }
  for (const PlanCopy& copy : plan_->copies) {
    if (StaysOnHost(copy) || !queued.ok() || !due(copy.guard)) continue;
    const int home = HomeOf(copy.variable);
    const int to = home < 0 ? kHost : plan_->values[home].device;
    Tensor& target = to == kHost ? variables->at(copy.variable) : tensors_[home];
    queued = accelerators_->Copy(tensors_[copy.from], plan_->values[copy.from].device, &target, to);
  }
  const absl::Status ended = accelerators_->End(queued.ok());
  ONWARD_RETURN_IF_ERROR(queued.ok() ? ended : queued);
  return accelerators_->WaitForAll();
}

int Executor::HomeOf(const std::string& variable) const {
  const auto it = std::lower_bound(
      plan_->variables.begin(), plan_->variables.end(), variable,
      [](const auto& entry, const std::string& name) { return entry.first < name; });
  return it == plan_->variables.end() || it->first != variable ? -1 : it->second;
}

}  // namespace onward
