// SPDX-License-Identifier: Apache-2.0
// A node whose outputs have shapes that only data can tell: its kernel is prepared for
// what arrives, and kept.
#ifndef ONWARD_CORE_RUNTIME_EXECUTE_LATE_NODE_H_
#define ONWARD_CORE_RUNTIME_EXECUTE_LATE_NODE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/runtime/compile/evaluate.h"
#include "core/runtime/plan/plan.h"

namespace onward {

class LateNode {
 public:
  // Both outlive it.
  LateNode(const Node& node, const Plan& plan) : node_(node), plan_(plan) {}

  absl::Status Run(const ValueCall& call, const RandomState& random);

 private:
  // What a kernel was prepared for: types, and the contents of inputs as small as a
  // shape, a number of elements or a list of axes. Those contents decide shapes, so
  // that a kernel is made for each.
  struct Entry {
    std::vector<std::string> key;   // by input
    std::vector<Tensor> constants;  // the small ones; the kernel may point at them
    PreparedNode prepared;
  };
  absl::StatusOr<const Entry*> Prepare(const std::vector<const Tensor*>& inputs,
                                       const EvaluateContext& context);

  const Node& node_;
  const Plan& plan_;
  std::vector<Entry> entries_;  // the one used last comes first
};

}  // namespace onward

#endif  // ONWARD_CORE_RUNTIME_EXECUTE_LATE_NODE_H_
