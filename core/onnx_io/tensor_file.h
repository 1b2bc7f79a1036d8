// SPDX-License-Identifier: Apache-2.0
// Single tensors in files of their own (TensorProto, as backend tests have it).
#ifndef ONWARD_CORE_ONNX_IO_TENSOR_FILE_H_
#define ONWARD_CORE_ONNX_IO_TENSOR_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/tensor/tensor.h"

namespace onward {

absl::StatusOr<Tensor> ReadTensorFile(const std::string& path);
absl::Status WriteTensorFile(const Tensor& tensor, const std::string& name,
                             const std::string& path);

}  // namespace onward

#endif  // ONWARD_CORE_ONNX_IO_TENSOR_FILE_H_
