// SPDX-License-Identifier: Apache-2.0
// Optionals: nothing, or what they hold.
#include "core/ops/sequence/value_kernel.h"

namespace onward {
namespace {

absl::Status Optional(const Node&, const ValueCall& call) {
  return Give(call, 0, HasInput(call, 0) ? call.inputs[0]->Owned() : Value());
}

absl::Status OptionalHasElement(const Node&, const ValueCall& call) {
  return Give(call, 0, Tensor::Scalar<bool>(HasInput(call, 0) && !call.inputs[0]->empty()));
}

absl::Status OptionalGetElement(const Node& node, const ValueCall& call) {
  if (!HasInput(call, 0) || call.inputs[0]->empty()) {
    return NodeError(node, "takes the element of an empty optional");
  }
  return Give(call, 0, call.inputs[0]->Owned());
}

}  // namespace

void RegisterOptionalKernels(KernelTable& table) {
  AddOnValues(table, "Optional", Optional);
  AddOnValues(table, "OptionalHasElement", OptionalHasElement);
  AddOnValues(table, "OptionalGetElement", OptionalGetElement);
}

}  // namespace onward
