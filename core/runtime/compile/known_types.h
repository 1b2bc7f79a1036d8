// SPDX-License-Identifier: Apache-2.0
// Types of a graph that is compiled again for other shapes. The first time the standard types
// every node, and judges it; from then on element types are known, and shapes come from the
// rules beside the kernels.
#ifndef ONWARD_CORE_RUNTIME_COMPILE_KNOWN_TYPES_H_
#define ONWARD_CORE_RUNTIME_COMPILE_KNOWN_TYPES_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/device/kernel.h"
#include "core/graph/operator_set.h"

namespace onward {

// Of the values of one graph, by name.
using ElementTypes = absl::flat_hash_map<std::string, DType>;

// What the given operators say, but for the types of calls whose inputs all have shapes and
// whose outputs have known element types.
class KnownTypes : public OperatorSet {
 public:
  // All of these outlive it.
  KnownTypes(const OperatorSet& operators, const KernelTable& kernels, const ElementTypes& known)
      : operators_(operators), kernels_(kernels), known_(known) {}

  absl::StatusOr<std::vector<ValueType>> Infer(
      const Node& node, absl::Span<const InputFact> inputs,
      const std::map<std::string, int>& opsets) const override;
  std::vector<std::string> BrokenDemands(const Node& node, absl::Span<const InputFact> inputs,
                                         const std::map<std::string, int>& opsets) const override {
    return operators_.BrokenDemands(node, inputs, opsets);
  }
  absl::StatusOr<std::optional<Function>> FunctionBody(
      const Node& node, absl::Span<const InputFact> inputs,
      const std::map<std::string, int>& opsets) const override {
    return operators_.FunctionBody(node, inputs, opsets);
  }
  bool ShapeOnly(const Node& node, int input) const override {
    return operators_.ShapeOnly(node, input);
  }
  const FunctionTraits* Traits(const Node& node) const override { return operators_.Traits(node); }
  int SinceVersion(const Node& node, const std::map<std::string, int>& opsets) const override {
    return operators_.SinceVersion(node, opsets);
  }

 private:
  std::optional<std::vector<ValueType>> ByRule(const Node& node, absl::Span<const InputFact> inputs,
                                               const std::map<std::string, int>& opsets) const;

  const OperatorSet& operators_;
  const KernelTable& kernels_;
  const ElementTypes& known_;
};

}  // namespace onward

#endif  // ONWARD_CORE_RUNTIME_COMPILE_KNOWN_TYPES_H_
