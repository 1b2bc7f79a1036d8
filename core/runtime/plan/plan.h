// SPDX-License-Identifier: Apache-2.0
// A compiled graph: every kernel prepared, every buffer placed. Immutable; an
// Executor runs it.
#ifndef ONWARD_CORE_RUNTIME_PLAN_PLAN_H_
#define ONWARD_CORE_RUNTIME_PLAN_PLAN_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/device/device.h"
#include "core/graph/operator_set.h"

namespace onward {

struct Continuation;
struct Control;
class Queues;

inline constexpr int kHost = 0;

struct PlanValue {
  enum class Storage {
    kFeed,      // the caller's tensor
    kVariable,  // a tensor of Variables
    kConstant,  // `constant`
    kArena,     // bytes at `offset` of the arena
    kOwned,     // memory of its own (strings)
    kValue,     // known at run time only: what a late step makes, or a feed that is no tensor
  };
  std::string name;
  DType dtype = DType::kUndefined;
  std::optional<Shape> shape;
  Layout layout;
  Storage storage = Storage::kArena;
  Tensor constant;  // on the host, wherever the value is
  // Whose memory it is in: Plan::DeviceOf(device).
  int device = kHost;
  size_t offset = 0;
  // The value whose memory this one is (itself, unless it is a view or is
  // written over a variable).
  int root = -1;

  size_t bytes() const { return layout != nullptr ? layout->bytes() : TensorBytes(dtype, *shape); }
};

// Something happens in some runs only: where the bool `value` is `when`.
struct PlanGuard {
  int value = -1;  // on the host; -1: always
  bool when = true;

  bool always() const { return value < 0; }
  friend bool operator==(const PlanGuard&, const PlanGuard&) = default;
};

struct PlanStep {
  Node node;  // for messages and profiles; late steps prepare a kernel for it
  Kernel kernel;
  std::vector<int> inputs;   // value ids, -1 = omitted
  std::vector<int> outputs;  // value ids, -1 = not wanted
  size_t workspace_offset = 0;
  int device = kHost;  // where it runs
  // Copies its input into its output, of whichever devices; there is no kernel. Between the host
  // and an accelerator it goes by pinned memory, at `slot`: of the copies that are fed, if it
  // copies what is fed, else of the stretch.
  bool transfer = false;
  size_t slot = 0;
  std::string why;  // it does not run on the accelerator that is wanted
  // Its outputs are Values, made when it runs: by `control`, by kernel.run_values, or by
  // a kernel for the tensors that have come (LateNode).
  bool late = false;
  std::shared_ptr<const Control> control = nullptr;  // If, Loop, Scan
  bool bodies_there = false;  // its bodies are for the accelerators, and it takes values from there
  PlanGuard guard = {};
};

// Steps of the compute phase that follow each other on one device, all of them done in a run or
// none. An accelerator does those of a stretch without the host, so that they are recorded once and
// queued as a whole.
struct Stretch {
  int device = kHost;
  int begin = 0, end = 0;
  PlanGuard guard = {};
};

// A value that the caller gives: input `position` of the graph's inputs without initializer.
struct PlanFeed {
  std::string name;
  int id;
  int position;
};

struct PlanCopy {
  int from;  // value id
  std::string variable;
  PlanGuard guard = {};
};

struct Plan {
  const Device* device = nullptr;  // the host's
  std::vector<const Device*> accelerators;
  const OperatorSet* operators = nullptr;
  std::map<std::string, int> opsets;
  std::vector<PlanValue> values;
  // Phase one: may fail, changes no variable.
  std::vector<PlanStep> compute;
  // Phase two: element-wise writes over variables that cannot fail, then copies. It is
  // entered only if all of it will leave finite numbers.
  std::vector<PlanStep> commit;
  std::vector<PlanCopy> copies;
  // The variables that are assigned, in the order of the file.
  std::vector<std::string> updates;
  std::vector<PlanFeed> feeds;
  std::vector<std::pair<std::string, int>> variables;  // in the order of names
  // What is returned; where there is a rest, what that is fed.
  std::vector<std::pair<std::string, int>> outputs;
  // Values that must be finite before anything is committed.
  std::vector<int> finite;
  // All of `compute`, in order; none where there are no accelerators.
  std::vector<Stretch> stretches;
  // The last stretch decides by itself whether anything is assigned, and does it: the whole step
  // ends there. Otherwise the host has a say.
  bool commits_in_stretch = false;
  // Pinned memory of the host: of one stretch, and for what is fed.
  size_t slot_bytes = 0, fed_bytes = 0;
  size_t arena_bytes = 0;                 // on the host
  std::vector<size_t> accelerator_bytes;  // arenas of the accelerators
  size_t folded_bytes = 0;                // of constants that were computed for this plan
  // The most bytes of live values at any step: what a perfect plan would use.
  size_t live_bytes = 0;
  int reorders = 0;
  // What is left to do behind values whose types only data can tell.
  std::shared_ptr<const Continuation> rest;
  // What the plans around this one use, too. Null where there are no accelerators.
  std::shared_ptr<Queues> queues;

  // Whether anything of it is on an accelerator.
  bool UsesAccelerators() const;
  const Device& DeviceOf(int id) const { return id == kHost ? *device : *accelerators[id - 1]; }
  // Steps that a device that was wanted could not run.
  std::vector<const PlanStep*> Fallbacks() const;
  // Whether a transfer copies what is fed from the host to an accelerator.
  bool CopiesFeed(const PlanStep& step) const;
  int HomeOf(const std::string& variable) const;  // value id; -1: the plan does not read it
  std::string ToText() const;
};

}  // namespace onward

#endif  // ONWARD_CORE_RUNTIME_PLAN_PLAN_H_
