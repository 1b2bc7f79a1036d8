// SPDX-License-Identifier: Apache-2.0
// Graph + concrete input shapes -> Plan.
#ifndef ONWARD_CORE_RUNTIME_COMPILE_H_
#define ONWARD_CORE_RUNTIME_COMPILE_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "core/graph/graph.h"
#include "core/runtime/plan.h"

namespace onward {

struct FeedType {
  DType dtype = DType::kUndefined;
  Shape shape;
  friend bool operator==(const FeedType&, const FeedType&) = default;
};

struct CompileOptions {
  const Device* device = nullptr;          // required
  const OperatorSet* operators = nullptr;  // required
  std::map<std::string, FeedType> feeds;   // every input without initializer
  // Initializers that may change between runs; the others are constants.
  absl::flat_hash_set<std::string> variables;
  // variable <- value, assigned after everything is computed.
  std::vector<std::pair<std::string, std::string>> updates;
  // Values to return; absent: the graph's outputs.
  std::optional<std::vector<std::string>> outputs;
  // Values whose elements must be finite, or nothing is assigned.
  std::vector<std::string> finite;
};

std::vector<std::string> WantedOutputs(const Graph& graph, const CompileOptions& options);

absl::StatusOr<std::shared_ptr<const Plan>> Compile(const Graph& graph,
                                                    const CompileOptions& options);

}  // namespace onward

#endif  // ONWARD_CORE_RUNTIME_COMPILE_H_
