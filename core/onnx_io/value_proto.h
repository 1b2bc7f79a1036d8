// SPDX-License-Identifier: Apache-2.0
// Values that are no tensors, as ONNX's messages hold them.
#ifndef ONWARD_CORE_ONNX_IO_VALUE_PROTO_H_
#define ONWARD_CORE_ONNX_IO_VALUE_PROTO_H_

#include <string>

#include "absl/status/statusor.h"
#include "core/onnx_io/external_data.h"
#include "core/tensor/value.h"
#include "onnx/onnx-data.pb.h"

namespace onward {

absl::StatusOr<Value> SequenceFromProto(const onnx::SequenceProto& proto,
                                        const ExternalData* external);
absl::StatusOr<Value> MapFromProto(const onnx::MapProto& proto, const ExternalData* external);
absl::StatusOr<Value> OptionalFromProto(const onnx::OptionalProto& proto,
                                        const ExternalData* external);
// Its places stay as they are written; SparseFromProto makes it dense.
absl::StatusOr<Value> SparseValueFromProto(const onnx::SparseTensorProto& proto,
                                           const ExternalData* external);

void SequenceToProto(const Sequence& sequence, const std::string& name, onnx::SequenceProto* proto);
void MapToProto(const Map& map, const std::string& name, onnx::MapProto* proto);
void OptionalToProto(const Value& value, const std::string& name, onnx::OptionalProto* proto);
void SparseToProto(const SparseTensor& sparse, const std::string& name,
                   onnx::SparseTensorProto* proto);

}  // namespace onward

#endif  // ONWARD_CORE_ONNX_IO_VALUE_PROTO_H_
