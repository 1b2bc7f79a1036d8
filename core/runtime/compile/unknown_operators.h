// SPDX-License-Identifier: Apache-2.0
// Operators that cannot run: nobody defines them, or the device has no kernel for them.
#ifndef ONWARD_CORE_RUNTIME_COMPILE_UNKNOWN_OPERATORS_H_
#define ONWARD_CORE_RUNTIME_COMPILE_UNKNOWN_OPERATORS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/device/device.h"
#include "core/graph/graph.h"
#include "core/graph/operator_set.h"

namespace onward {

// An operator of a graph that cannot run.
struct MissingOperator {
  std::string name;                // "com.example.Thing"
  int version = 0;                 // of its domain, as imported; 0: it is not
  bool defined = false;            // it has a schema: only the kernel is missing
  std::vector<std::string> nodes;  // that call it, in quotes
};

// Every operator that nobody defines, in bodies too, by name.
std::vector<MissingOperator> FindUnknown(const Graph& graph, const OperatorSet& operators,
                                         const Device& device);
// Every operator of a typed graph that is defined, but has neither kernel nor function, by
// name. What bodies call is left out: they may never run.
std::vector<MissingOperator> FindWithoutKernel(const Graph& graph, const OperatorSet& operators,
                                               const Device& device);

// "nodes 'a', 'b' and 3 more (com.example.Thing), version 2"
std::string Describe(const MissingOperator& missing);

// All of them in one error, with the remedy; ok where there are none.
absl::Status CheckOperatorsKnown(const Graph& graph, const OperatorSet& operators,
                                 const Device& device);
absl::Status CheckKernelsExist(const Graph& graph, const OperatorSet& operators,
                               const Device& device);

}  // namespace onward

#endif  // ONWARD_CORE_RUNTIME_COMPILE_UNKNOWN_OPERATORS_H_
