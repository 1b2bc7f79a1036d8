// SPDX-License-Identifier: Apache-2.0
// Single values in files of their own, as backend tests have them: a TensorProto, a
// SequenceProto, an OptionalProto, a MapProto or a SparseTensorProto.
#ifndef ONWARD_CORE_ONNX_IO_VALUE_FILE_H_
#define ONWARD_CORE_ONNX_IO_VALUE_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/tensor/value.h"

namespace onward {

absl::StatusOr<Tensor> ReadTensorFile(const std::string& path);
absl::Status WriteTensorFile(const Tensor& tensor, const std::string& name,
                             const std::string& path);

// Such files do not say which message they hold: `type` (of the graph's input or output)
// does.
absl::StatusOr<Value> ReadValueFile(const std::string& path, const ValueType& type);
// The message that readers of a value declared as `type` expect.
absl::Status WriteValueFile(const Value& value, const ValueType& type, const std::string& name,
                            const std::string& path);

}  // namespace onward

#endif  // ONWARD_CORE_ONNX_IO_VALUE_FILE_H_
