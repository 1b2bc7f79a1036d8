// SPDX-License-Identifier: Apache-2.0
#include "core/ops/sequence/value_kernel.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace onward {

void AddOnValues(KernelTable& table, std::string_view op, ValueKernel kernel,
                 std::string_view domain) {
  KernelTable::Entry entry{"reference", 1,
                           [kernel](const KernelRequest& r) -> absl::StatusOr<Kernel> {
                             Kernel made;
                             made.run_values = [kernel, node = r.node](const ValueCall& call) {
                               return kernel(node, call);
                             };
                             return made;
                           },
                           "all"};
  entry.on_values = true;
  table.Add(op, std::move(entry), domain);
}

absl::StatusOr<const Tensor*> TensorAtInput(const Node& node, const ValueCall& call, int i) {
  if (HasInput(call, i) && call.inputs[i]->tensor() != nullptr) return call.inputs[i]->tensor();
  return NodeError(node, absl::StrCat("input ", i, " must be a tensor, got ",
                                      HasInput(call, i) ? call.inputs[i]->ToString() : "nothing"));
}

absl::Status Give(const ValueCall& call, int i, Value value) {
  if (i < static_cast<int>(call.outputs.size()) && call.outputs[i] != nullptr) {
    *call.outputs[i] = std::move(value);
  }
  return absl::OkStatus();
}

}  // namespace onward
