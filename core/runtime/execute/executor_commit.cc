// SPDX-License-Identifier: Apache-2.0
// Phase two of a run: variables are assigned, if all of them stay finite.
#include <algorithm>
#include <cstring>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/base/parallel.h"
#include "core/base/status.h"
#include "core/runtime/devices/residents.h"
#include "core/runtime/execute/bound_step.h"
#include "core/runtime/execute/device_runner.h"
#include "core/runtime/execute/guards.h"
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
  for (size_t i = 0; i < plan_->finite.size(); ++i) {
    const int id = plan_->finite[i];
    const bool finite =
        tensors_[id].place() == kHost ? AllFinite(tensors_[id]) : !devices_->BadValue(i);
    if (finite) continue;
    return absl::OutOfRangeError(
        absl::StrCat("'", plan_->values[id].name,
                     "' is not finite; nothing was updated (try a smaller learning rate, "
                     "or look at the data)"));
  }
  return absl::OkStatus();
}

absl::Status Executor::CheckUpdates(Variables* variables, const RunOptions& options,
                                    bool notes_hold) {
  bool finite = devices_ == nullptr || !devices_->AnyBad();
  for (const BoundStep& b : commit_) {
    std::fill_n(b.bad.get(), b.outputs.size(), false);
    // What others wrote since is not known to a step that sits this run out.
    if (!notes_hold) b.notes->magnitudes.clear();
    ONWARD_ASSIGN_OR_RETURN(const bool due, Holds(*plan_, tensors_, b.step->guard));
    if (!due || b.step->device != kHost || !b.step->kernel.would_be_finite) continue;
    b.notes->hold = notes_hold;
    finite &= b.step->kernel.would_be_finite({b.inputs, b.outputs, b.workspace, {}, b.notes.get()},
                                             b.bad.get());
  }
  for (const PlanCopy& copy : plan_->copies) {
    ONWARD_ASSIGN_OR_RETURN(const bool due, Holds(*plan_, tensors_, copy.guard));
    if (due && tensors_[copy.from].place() == kHost) finite &= AllFinite(tensors_[copy.from]);
  }
  if (finite) return absl::OkStatus();
  if (devices_ != nullptr) ONWARD_RETURN_IF_ERROR(ResidentsOf(options)->Fetch(variables));
  return BlameUpdate(*variables);
}

absl::Status Executor::BlameUpdate(const Variables& variables) {
  absl::flat_hash_set<std::string> bad;
  for (size_t s = 0; s < commit_.size(); ++s) {
    const BoundStep& b = commit_[s];
    for (size_t o = 0; o < b.outputs.size(); ++o) {
      const bool is_bad = b.step->device == kHost ? b.bad[o] : devices_->BadOutput(s, o);
      if (is_bad) bad.insert(plan_->values[plan_->values[b.step->outputs[o]].root].name);
    }
  }
  for (size_t i = 0; i < plan_->copies.size(); ++i) {
    const PlanCopy& copy = plan_->copies[i];
    ONWARD_ASSIGN_OR_RETURN(const bool due, Holds(*plan_, tensors_, copy.guard));
    if (!due) continue;
    const Tensor& from = tensors_[copy.from];
    const bool is_bad = from.place() == kHost ? !AllFinite(from) : devices_->BadCopy(i);
    if (is_bad) bad.insert(copy.variable);
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

absl::Status Executor::CheckCopies(const Variables& variables) const {
  for (const PlanCopy& copy : plan_->copies) {
    ONWARD_ASSIGN_OR_RETURN(const bool due, Holds(*plan_, tensors_, copy.guard));
    if (!due) continue;
    const Tensor &from = tensors_[copy.from], &target = variables.at(copy.variable);
    if (from.dtype() == target.dtype() && from.shape() == target.shape()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the new value of '", copy.variable, "' is ", DTypeName(from.dtype()),
                     from.shape().ToString(), ", but the variable is ", DTypeName(target.dtype()),
                     target.shape().ToString()));
  }
  return absl::OkStatus();
}

absl::Status Executor::Commit(Variables* variables, const RunOptions& options) {
  if (plan_->updates.empty()) return absl::OkStatus();
  ONWARD_RETURN_IF_ERROR(CheckCopies(*variables));
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
  if (devices_ != nullptr && !plan_->commits_in_stretch) {
    const absl::Status assigned = devices_->Assign();
    if (!assigned.ok()) devices_->GiveUp();
    ONWARD_RETURN_IF_ERROR(assigned);
  }
  // Nothing of this can fail.
  ONWARD_RETURN_IF_ERROR(RunSteps(commit_, 0, commit_.size(), options));
  for (const PlanCopy& copy : plan_->copies) {
    ONWARD_ASSIGN_OR_RETURN(const bool due, Holds(*plan_, tensors_, copy.guard));
    if (!due || tensors_[copy.from].place() != kHost) continue;
    CopyBytes(tensors_[copy.from], &variables->at(copy.variable));
  }
  Residents* const residents = ResidentsOf(options);
  if (plan_->accelerators.empty() || residents == nullptr) return absl::OkStatus();
  // A variable that was not due is as new here and there as it was.
  for (const BoundStep& b : commit_) {
    ONWARD_ASSIGN_OR_RETURN(const bool due, Holds(*plan_, tensors_, b.step->guard));
    for (size_t o = 0; due && o < b.outputs.size(); ++o) {
      if (b.outputs[o] == nullptr) continue;
      const std::string& name = plan_->values[plan_->values[b.step->outputs[o]].root].name;
      b.step->device == kHost ? residents->WroteHere(name) : residents->WroteThere(name);
    }
  }
  for (const PlanCopy& copy : plan_->copies) {
    ONWARD_ASSIGN_OR_RETURN(const bool due, Holds(*plan_, tensors_, copy.guard));
    if (!due) continue;
    tensors_[copy.from].place() == kHost ? residents->WroteHere(copy.variable)
                                         : residents->WroteThere(copy.variable);
  }
  return residents == own_residents_.get() ? residents->Fetch(variables) : absl::OkStatus();
}

}  // namespace onward
