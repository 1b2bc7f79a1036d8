// SPDX-License-Identifier: Apache-2.0
#include "core/ops/movement/through_bytes.h"

#include <memory>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/packed.h"

namespace onward {
namespace {

bool AnyPacked(absl::Span<const ValueSpec> specs) {
  for (const ValueSpec& spec : specs) {
    if (IsPacked(spec.dtype)) return true;
  }
  return false;
}

// A kernel on bytes and what it was made of.
struct ByteKernel {
  Node node;
  std::vector<Tensor> constants;
  Kernel inner;
  std::vector<DType> outputs;

  absl::Status Run(const KernelCall& call) const;
};

absl::Status ByteKernel::Run(const KernelCall& call) const {
  std::vector<Tensor> in(call.inputs.size()), out(call.outputs.size());
  std::vector<const Tensor*> in_pointers(call.inputs.begin(), call.inputs.end());
  std::vector<Tensor*> out_pointers(call.outputs.begin(), call.outputs.end());
  for (size_t i = 0; i < in.size(); ++i) {
    if (call.inputs[i] == nullptr || !IsPacked(call.inputs[i]->dtype())) continue;
    in[i] = Unpacked(*call.inputs[i]);
    in_pointers[i] = &in[i];
  }
  for (size_t i = 0; i < out.size(); ++i) {
    if (call.outputs[i] == nullptr || !IsPacked(outputs[i])) continue;
    if (call.outputs[i]->defined()) out[i] = Tensor(DType::kUint8, call.outputs[i]->shape());
    out_pointers[i] = &out[i];
  }
  ONWARD_RETURN_IF_ERROR(inner.run({in_pointers, out_pointers, call.workspace, call.random}));
  for (size_t i = 0; i < out.size(); ++i) {
    if (call.outputs[i] == nullptr || !IsPacked(outputs[i])) continue;
    if (!call.outputs[i]->defined()) *call.outputs[i] = Tensor(outputs[i], out[i].shape());
    PackCodes(out[i].data<uint8_t>(), 0, out[i].elements(), call.outputs[i]);
  }
  return absl::OkStatus();
}

std::vector<ValueSpec> AsBytes(absl::Span<const ValueSpec> specs, std::vector<Tensor>* constants) {
  std::vector<ValueSpec> bytes(specs.begin(), specs.end());
  constants->resize(specs.size());
  for (size_t i = 0; i < specs.size(); ++i) {
    bytes[i].layout = nullptr;
    if (!IsPacked(specs[i].dtype)) continue;
    bytes[i].dtype = DType::kUint8;
    if (specs[i].constant == nullptr) continue;
    (*constants)[i] = Unpacked(*specs[i].constant);
    bytes[i].constant = &(*constants)[i];
  }
  return bytes;
}

}  // namespace

KernelFactory ThroughBytes(KernelFactory factory) {
  return [factory = std::move(factory)](const KernelRequest& request) -> absl::StatusOr<Kernel> {
    if (!AnyPacked(request.inputs) && !AnyPacked(request.outputs)) return factory(request);
    auto state = std::make_shared<ByteKernel>();
    state->node = request.node;
    for (auto& [name, attribute] : state->node.attributes) {
      const Tensor* value = std::get_if<Tensor>(&attribute.value);
      if (value != nullptr && IsPacked(value->dtype())) attribute = Attribute(Unpacked(*value));
    }
    std::vector<Tensor> none;
    const std::vector<ValueSpec> in = AsBytes(request.inputs, &state->constants);
    const std::vector<ValueSpec> out = AsBytes(request.outputs, &none);
    for (const ValueSpec& output : request.outputs) state->outputs.push_back(output.dtype);
    ONWARD_ASSIGN_OR_RETURN(state->inner, factory({state->node, in, out, request.opsets}));
    Kernel kernel;
    kernel.workspace_bytes = state->inner.workspace_bytes;
    kernel.run = [state](const KernelCall& call) { return state->Run(call); };
    return kernel;
  };
}

}  // namespace onward
