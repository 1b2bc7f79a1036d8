// SPDX-License-Identifier: Apache-2.0
// Tensors of a message and the weights beside it. Internal to core/onnx_io.
#ifndef ONWARD_CORE_ONNX_IO_HOLD_H_
#define ONWARD_CORE_ONNX_IO_HOLD_H_

#include <functional>

#include "absl/status/status.h"
#include "core/onnx_io/model.h"
#include "onnx/onnx_pb.h"

namespace onward {

// Every tensor anywhere in the message: initializers, attributes, bodies, functions,
// training graphs. `visit` and `change` return whether to go on.
void ForEachTensor(const onnx::ModelProto& model,
                   const std::function<bool(const onnx::TensorProto&)>& visit);
void ForEachTensor(onnx::ModelProto* model, const std::function<bool(onnx::TensorProto*)>& change);

// Whether a tensor names a file that its data is in.
bool HasExternalData(const Model& model);

// Opens the files that tensors name, so that the model has its data whatever happens to
// them, and in whatever folder it is written; none names a file afterwards. The first
// error is returned; tensors whose data cannot be had stay as they are.
absl::Status HoldExternalData(Model* model);
// Takes large tensors out of the message, in whatever field they have their values.
absl::Status HoldLargeTensors(Model* model);

}  // namespace onward

#endif  // ONWARD_CORE_ONNX_IO_HOLD_H_
