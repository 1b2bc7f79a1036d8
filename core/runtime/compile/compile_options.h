// SPDX-License-Identifier: Apache-2.0
// What a graph is compiled for.
#ifndef ONWARD_CORE_RUNTIME_COMPILE_COMPILE_OPTIONS_H_
#define ONWARD_CORE_RUNTIME_COMPILE_COMPILE_OPTIONS_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "core/device/device.h"
#include "core/graph/operator_set.h"
#include "core/runtime/compile/known_types.h"
#include "core/tensor/value.h"

namespace onward {

struct Plan;
struct PlanFamily;
class Queues;

// The type of what is fed.
struct FeedType {
  DType dtype = DType::kUndefined;  // of a tensor; undefined: it is something else
  Shape shape;
  std::shared_ptr<const ValueType> held = nullptr;  // what it is, if no tensor
  int place = 0;                                    // Tensor::place

  static FeedType Of(const Value& value);
  bool Matches(const Value& value) const;
  ValueType type() const { return held == nullptr ? ValueType::Of(dtype, shape) : *held; }
};

// Values that are assigned only where a scalar bool, another value of the graph, is `when`.
struct UpdateCondition {
  std::string value;
  bool when = true;
};
using UpdateConditions = std::map<std::string, UpdateCondition>;

struct CompileOptions {
  const Device* device = nullptr;  // required; works in the host's memory
  // Wanted before `device`, in this order; they have memory of their own.
  std::vector<const Device*> accelerators = {};
  // What plans around this one use, too; null: it has its own.
  std::shared_ptr<Queues> queues = nullptr;
  // A node that none of them can run is an error; small integers and what is not worth its
  // copies stay on the host all the same.
  bool require_accelerator = false;
  // Told of every plan that was made. May be null.
  std::function<void(const Plan&)> planned = nullptr;
  const OperatorSet* operators = nullptr;  // required
  std::map<std::string, FeedType> feeds;   // every input without initializer
  // Initializers that may change between runs; the others are constants.
  absl::flat_hash_set<std::string> variables;
  // variable <- value, assigned after everything is computed.
  std::vector<std::pair<std::string, std::string>> updates;
  UpdateConditions conditions;  // of some of these values
  // Values to return; absent: the graph's outputs.
  std::optional<std::vector<std::string>> outputs;
  // Of these, what may be left on the device that computes it.
  absl::flat_hash_set<std::string> anywhere;
  // Inputs that are the same as another value of the graph (an input or a variable), only in
  // another device's memory: input -> value.
  std::map<std::string, std::string> twins;
  // Values whose elements must be finite, or nothing is assigned.
  std::vector<std::string> finite;
  // Told of a constant after a kernel was made for a node that reads it: kernels that keep
  // an arrangement of their own do not look at it again. May be null.
  std::function<void(const void* data, size_t bytes)> looked_at;
  // Element types of the graph's values, for compiling it again with feeds of the same ones:
  // taken from here, or where it is empty, put there. May be null.
  std::shared_ptr<ElementTypes> element_types = nullptr;
  // Null: the plan has none.
  std::shared_ptr<PlanFamily> family = nullptr;
  // Nodes of the graphs that the plans before this one left (Continuation).
  int64_t nodes_before = 0;
};

}  // namespace onward

#endif  // ONWARD_CORE_RUNTIME_COMPILE_COMPILE_OPTIONS_H_
