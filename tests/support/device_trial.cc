// SPDX-License-Identifier: Apache-2.0
#include "tests/support/device_trial.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "environment/environment.h"

namespace onward {

absl::StatusOr<std::unique_ptr<const Device>> OpenDevice(const std::string& library,
                                                         const DeviceOptions& options) {
  void* const opened = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) return absl::NotFoundError(dlerror());
  const auto function =
      reinterpret_cast<DevicePluginFunction>(dlsym(opened, "onward_device_plugin"));
  if (function == nullptr) return absl::NotFoundError(absl::StrCat(library, " is no plugin"));
  const DevicePlugin* const plugin = function();
  if (plugin->abi != kDeviceAbi) return absl::InternalError("another version of the interface");
  return plugin->make(options);
}

absl::StatusOr<Tensor> NewOnDevice(const Device& device, DType dtype, const Shape& shape) {
  ONWARD_ASSIGN_OR_RETURN(std::shared_ptr<void> memory, device.Allocate(TensorBytes(dtype, shape)));
  void* const raw = memory.get();
  return Tensor(dtype, shape, raw, std::move(memory));
}

absl::StatusOr<Tensor> ToDevice(const Device& device, Stream& stream, const Tensor& tensor) {
  ONWARD_ASSIGN_OR_RETURN(Tensor copy, NewOnDevice(device, tensor.dtype(), tensor.shape()));
  ONWARD_RETURN_IF_ERROR(stream.CopyIn(copy.raw(), tensor.raw(), tensor.bytes()));
  return copy;
}

absl::StatusOr<Tensor> FromDevice(Stream& stream, const Tensor& tensor) {
  Tensor copy(tensor.dtype(), tensor.shape());
  ONWARD_RETURN_IF_ERROR(stream.CopyOut(copy.raw(), tensor.raw(), tensor.bytes()));
  ONWARD_RETURN_IF_ERROR(stream.Synchronize());
  return copy;
}

DeviceTrial::DeviceTrial(const Device& device, Stream& stream, const KernelTable::Entry& entry,
                         const KernelInputs& inputs)
    : device_(device), stream_(stream), inputs_(inputs) {
  std::vector<ValueSpec> in(inputs.values.size());
  for (size_t i = 0; i < in.size(); ++i) {
    const Tensor& t = inputs.values[i];
    if (t.defined()) in[i] = {t.dtype(), t.shape(), nullptr, inputs.constant[i] ? &t : nullptr};
  }
  kernel_ = entry.factory({inputs.node, in, inputs.outputs, TrialOpsets()});
}

std::vector<std::pair<int, int>> DeviceTrial::overwrites() const {
  std::vector<std::pair<int, int>> pairs;
  for (const auto& [output, input] : kernel_->in_place) {
    if (output >= static_cast<int>(inputs_.outputs.size()) ||
        input >= static_cast<int>(inputs_.values.size())) {
      continue;
    }
    const ValueSpec& out = inputs_.outputs[output];
    const Tensor& in = inputs_.values[input];
    if (!in.defined() || !out.present() || !out.shape.has_value()) continue;
    if (in.bytes() == TensorBytes(out.dtype, *out.shape)) pairs.emplace_back(output, input);
  }
  return pairs;
}

absl::StatusOr<std::vector<Tensor>> DeviceTrial::Run(int output, int over_input) {
  std::vector<Tensor> in(inputs_.values.size()), out(inputs_.outputs.size());
  std::vector<const Tensor*> in_pointers(in.size());
  std::vector<Tensor*> out_pointers(out.size());
  for (size_t i = 0; i < in.size(); ++i) {
    const Tensor& t = inputs_.values[i];
    if (!t.defined()) continue;
    if (DefaultEnvironment().operators().ShapeOnly(inputs_.node, static_cast<int>(i))) {
      ONWARD_ASSIGN_OR_RETURN(in[i], NewOnDevice(device_, t.dtype(), t.shape()));
    } else {
      ONWARD_ASSIGN_OR_RETURN(in[i], ToDevice(device_, stream_, t));
    }
    in_pointers[i] = &in[i];
  }
  for (size_t i = 0; i < out.size(); ++i) {
    const ValueSpec& spec = inputs_.outputs[i];
    if (!spec.present()) continue;
    out_pointers[i] = &out[i];
    if (static_cast<int>(i) == output) {
      out[i] = Tensor(spec.dtype, *spec.shape, in[over_input].raw(),
                      std::make_shared<Tensor>(in[over_input]));
    } else {
      ONWARD_ASSIGN_OR_RETURN(out[i], NewOnDevice(device_, spec.dtype, *spec.shape));
    }
  }
  ONWARD_ASSIGN_OR_RETURN(const std::shared_ptr<void> workspace,
                          device_.Allocate(kernel_->workspace_bytes));
  KernelCall call{in_pointers, out_pointers, workspace.get(), {}};
  call.stream = stream_.native();
  ONWARD_RETURN_IF_ERROR(kernel_->run(call));
  std::vector<Tensor> results(out.size());
  for (size_t i = 0; i < out.size(); ++i) {
    if (out_pointers[i] == nullptr) continue;
    ONWARD_ASSIGN_OR_RETURN(results[i], FromDevice(stream_, out[i]));
  }
  ONWARD_RETURN_IF_ERROR(stream_.Synchronize());
  return results;
}

}  // namespace onward
