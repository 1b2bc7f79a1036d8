// SPDX-License-Identifier: Apache-2.0
// One node at a time: choosing and preparing a kernel, and running it straight
// away. Compile uses the first half; constant folding and values whose shape
// depends on data use both.
#ifndef ONWARD_CORE_RUNTIME_COMPILE_EVALUATE_H_
#define ONWARD_CORE_RUNTIME_COMPILE_EVALUATE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/device/device.h"
#include "core/graph/operator_set.h"

namespace onward {

struct EvaluateContext {
  const Device* device = nullptr;
  const OperatorSet* operators = nullptr;
  const std::map<std::string, int>* opsets = nullptr;
  RandomState random;
  Arrangements* arrangements = nullptr;  // what is made of constants is shared through them
};

// The first table entry that serves the request. NotFound: no entry does, and
// the message says why each declined.
absl::StatusOr<Kernel> ChooseKernel(const KernelRequest& request, const EvaluateContext& context);

// Output specs from inferred types; sizes beyond the device's memory are errors.
absl::StatusOr<std::vector<ValueSpec>> OutputSpecs(const Node& node,
                                                   const std::vector<ValueType>& types,
                                                   const EvaluateContext& context);

// A node's kernel for inputs of these types, and what it gives.
struct PreparedNode {
  Kernel kernel;
  std::vector<ValueSpec> outputs;
};

// `constants`: values of inputs that the kernel may rely on, null where there is none.
// NotFound: there is no kernel for it.
absl::StatusOr<PreparedNode> PrepareNode(const Node& node, absl::Span<const Tensor* const> inputs,
                                         absl::Span<const Tensor* const> constants,
                                         const EvaluateContext& context);
// Outputs are new tensors.
absl::StatusOr<std::vector<Tensor>> RunPrepared(const PreparedNode& prepared,
                                                absl::Span<const Tensor* const> inputs,
                                                const EvaluateContext& context);

// Runs one node on constants; its outputs have these types. Operators without a kernel run
// through their function body.
absl::StatusOr<std::vector<Tensor>> EvaluateNode(const Node& node,
                                                 absl::Span<const InputFact> constants,
                                                 const std::vector<ValueType>& types,
                                                 const EvaluateContext& context);

}  // namespace onward

#endif  // ONWARD_CORE_RUNTIME_COMPILE_EVALUATE_H_
