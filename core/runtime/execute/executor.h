// SPDX-License-Identifier: Apache-2.0
// Running a plan. An Executor owns the memory of one plan and what was prepared behind it.
#ifndef ONWARD_CORE_RUNTIME_EXECUTE_EXECUTOR_H_
#define ONWARD_CORE_RUNTIME_EXECUTE_EXECUTOR_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/runtime/compile/compile.h"
#include "core/runtime/plan/plan.h"

namespace onward {

using TensorMap = std::map<std::string, Tensor>;
using ValueMap = std::map<std::string, Value>;

ValueMap ToValues(const TensorMap& tensors);
// An error that names a value that is no tensor.
absl::StatusOr<TensorMap> ToTensors(ValueMap values);

// The mutable state: each tensor owns its memory and is written in place.
using Variables = absl::btree_map<std::string, Tensor>;

class DeviceRunner;
class Executor;
class Program;
class Residents;
struct BoundStep;

struct RunOptions {
  RandomState random;
  // Set from elsewhere to stop between two kernels; nothing is assigned then.
  const std::atomic<bool>* cancel = nullptr;
  // Called after each kernel with its node and nanoseconds (profiles).
  std::function<void(const PlanStep&, int64_t)> on_step;
  // Who assigned the variables last. An executor that finds itself there relies on what
  // it noted of them, and need not look at every element again to tell whether the new
  // values would be finite. Whoever changes a variable by other means sets it to null.
  const Executor** writer = nullptr;
  // The variables that devices hold. Null: they are copied in before a run and back after it.
  Residents* residents = nullptr;
  // Called once, if at all, when all that devices do in every run is queued and before the host
  // waits for it: for work that has nothing to do with this run.
  std::function<void()> meanwhile = nullptr;
  // HeldTensorBytes() before the run, which sets it; its bodies have it from there.
  std::optional<int64_t> held_before = std::nullopt;
};

// An error where values that grow while a run goes on (sequences, what loops carry and stack)
// have left the device's limit. `besides`: the UncountedBytes of one of them.
absl::Status CheckHeld(const Node& node, const Device& device, const RunOptions& options,
                       size_t besides);

// What plans compute in that never run at the same time.
struct Arena {
  Tensor memory;
};

class Executor {
 public:
  // In an arena of its own, or one that is made large enough. A plan for accelerators has its own.
  explicit Executor(std::shared_ptr<const Plan> plan, std::shared_ptr<Arena> arena = nullptr);
  ~Executor();
  const Plan& plan() const { return *plan_; }

  // Computes everything, what is left behind the plan too, then assigns variables. On
  // error nothing is assigned; a new value that is not finite is one. Outputs are copies
  // that the caller owns.
  absl::StatusOr<ValueMap> RunValues(const ValueMap& feeds, Variables* variables,
                                     const RunOptions& options);
  // The same where all is tensors.
  absl::StatusOr<TensorMap> Run(const TensorMap& feeds, Variables* variables,
                                const RunOptions& options);

  // The parts of a run, for programs: phase one of this plan alone, on inputs by their
  // PlanFeed::position (null: not given) ...
  absl::Status Compute(absl::Span<const Value* const> inputs, Variables* variables,
                       const RunOptions& options);
  // ... the values of plan().outputs, good until somebody uses the arena again (tensors that own
  // their memory for longer), on the host unless the plan was made to leave them elsewhere ...
  absl::Span<const Value> results() const { return results_; }
  // ... what they are to be fed to, or null ...
  Program* rest() const { return rest_.get(); }
  // ... and phase two of the last plan.
  absl::Status Commit(Variables* variables, const RunOptions& options);

  // Begins to copy what a later run is fed to the accelerators, while they compute. That run finds
  // it there if it is fed the same tensors, which do not change until then.
  absl::Status Stage(absl::Span<const Value* const> inputs);

 private:
  void Bind(const std::vector<PlanStep>& steps, std::vector<BoundStep>* bound);
  // Values and workspaces where the arena is now.
  void EnterArena();
  absl::Status BindSources(absl::Span<const Value* const> inputs, Variables* variables,
                           Residents* residents);
  void Point(int id, const Tensor& tensor);
  // The host's of steps [begin, end).
  absl::Status RunSteps(const std::vector<BoundStep>& steps, size_t begin, size_t end,
                        const RunOptions& options);
  absl::Status ComputeOnDevices(absl::Span<const Value* const> inputs, Variables* variables,
                                const RunOptions& options);
  absl::Status RunLate(const BoundStep& bound, const RunOptions& options);
  // An input of a late step: on the host, unless the step takes it from where it is.
  absl::StatusOr<Value> LateInput(const PlanStep& step, int i);
  // Phase two, once it is known to leave finite numbers.
  absl::Status Assign(Variables* variables, const RunOptions& options);
  // What this executor holds where the caller holds nothing, and nothing where he does.
  Residents* ResidentsOf(const RunOptions& options);
  Value ValueOf(int id) const;
  void KeepResults();
  absl::Status CheckFinite() const;
  // Whether the new values have the types of their variables.
  absl::Status CheckCopies(const Variables& variables) const;
  absl::Status CheckUpdates(Variables* variables, const RunOptions& options, bool notes_hold);
  absl::Status BlameUpdate(const Variables& variables);

  std::shared_ptr<const Plan> plan_;
  std::shared_ptr<Arena> arena_;
  void* entered_ = nullptr;                 // where the arena was then
  std::vector<Tensor> tensors_;             // one per plan value
  std::vector<Value> values_;               // of those stored as kValue
  std::vector<std::vector<int>> views_of_;  // root -> views that follow its pointer
  std::vector<BoundStep> compute_, commit_;
  std::vector<Value> results_;
  std::unique_ptr<Program> rest_;
  std::unique_ptr<Residents> own_residents_;
  std::unique_ptr<DeviceRunner> devices_;  // null where the plan has no accelerators
};

// Checks a feed against a declared input type; the message names both.
absl::Status CheckFeed(const NamedType& input, const Tensor& tensor);
absl::Status CheckFeed(const NamedType& input, const Value& value);

}  // namespace onward

#endif  // ONWARD_CORE_RUNTIME_EXECUTE_EXECUTOR_H_
